"""The session that everything is measured with, the same everywhere, and how it is compacted."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, ClassVar

from cutbank import Block, ToolCall, ToolResult
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

Piece = dict[str, Any]
KEPT, TURN = 50, 14
SUMMARY = "This is what left the view. " * 70


def turns(seed: int, pairs: int | None = None) -> Iterator[list[Piece]]:
    """A prompt, an answer and 3-8 calls with their results, for ever; the same everywhere.

    Results are log-normal with a median of 1.5 KB and a p99 of 60 KB; arguments are a seventh.
    Piece by piece the text compresses to 0.45, about as the text of real sessions does.
    """
    dice = random.Random(seed)  # noqa: S311 - nothing here is secret
    words = ["".join(dice.choices("aeioulnrstdkmp", k=dice.randint(2, 9))) for _ in range(4_000)]
    marks = (" ", " ", " ", " ", "\n", ", ", ". ", " = ", "(", ")\n    ", ": ", '"', "/", "_")
    often = [1 / rank for rank in range(1, 4_001)]  # as words are: a few are most of them
    told = dice.choices(words, often, k=200_000)
    pool = "".join(word + dice.choice(marks) for word in told)

    def text(middle: float, spread: float) -> str:
        length = min(16 + int(dice.lognormvariate(math.log(middle), spread)), 512 * 1024)
        start = dice.randrange(len(pool) - length)
        return pool[start : start + length]

    for turn in count(1):
        said: list[Piece] = [
            {"kind": "user", "text": text(300, 0.8)},
            {"kind": "assistant", "text": text(400, 0.7)},
        ]
        for _ in range(pairs or dice.randint(3, 8)):
            call = {"tool_call_id": f"call_{dice.getrandbits(96):024x}"}
            arguments = json.dumps({"path": dice.choice(words), "body": text(225, 1.586)})
            said.append({"kind": "tool_call", "name": "bash", "text": arguments, **call})
            said.append({"kind": "tool_result", "text": text(1_500, 1.586), **call})
        at = datetime.fromtimestamp(1_760_000_000 + turn, UTC).isoformat()
        yield [{**piece, "turn": turn, "timestamp": at} for piece in said]


def as_block(piece: Piece) -> Block | ToolCall | ToolResult:
    call, text = piece.get("tool_call_id", ""), piece["text"]
    match piece["kind"]:
        case "tool_call":
            return ToolCall(tool_call_id=call, name=piece["name"], arguments=text)
        case "tool_result":
            return ToolResult(tool_call_id=call, content=text)
        case kind:
            return Block.user(text) if kind == "user" else Block.assistant(text)


@dataclass(frozen=True)
class KeepNewest:
    """A policy that keeps the newest 50 blocks."""

    name: ClassVar[str] = "keep-newest"

    def plan(self, window: Window) -> Plan:
        return Plan(window.items[-KEPT].position, "measured", summary_tokens=len(SUMMARY))


@dataclass(frozen=True)
class SaysTheSame:
    """A summarizer that costs nothing."""

    name: str = "measured"

    def summarize(self, _: Material) -> Draft:
        return Draft(SUMMARY)
