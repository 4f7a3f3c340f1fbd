"""cutbank in a benchmark of many stores, where `base.Adapter` says what a store is asked for.

Copy or link it to that benchmark's `adapters/ours.py`, name `adapters.ours:Ours` (FULL) and
`adapters.ours:OursNormal` in its registry, and put a folder that holds this checkout under the name
`cutbank` on PYTHONPATH.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from base import Adapter  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

from cutbank import Block, CompactionOptions, ToolCall, ToolResult
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

Piece = dict[str, Any]


class Ours(Adapter):  # type: ignore[misc]  # that benchmark's own class is not here
    """One session in one file, with the store's defaults: each append is durable."""

    name, durable, compacts = "cutbank", "fsync", True
    synchronous = "FULL"

    def open(self) -> None:
        self.store = open_store(Path(self.dir, "cutbank.db"), synchronous=self.synchronous)
        self.session = self.store.session("benchmark")

    def append(self, piece: Piece) -> None:
        self.session.append(_block(piece))

    def append_turn(self, pieces: list[Piece]) -> None:
        self.session.append(*map(_block, pieces))

    def compact(self, upto: int, summary: str) -> None:
        self.session.compact(KeepFrom(upto), options=CompactionOptions(summarizers=[Says(summary)]))

    def load(self, last: int | None) -> list[Piece]:
        if last is None:
            everything = self.session.recall(Ranges.span(1, self.session.position))
            return [_message(one.block) for one in everything]
        view = self.session.view()
        said = [_message(entry.block) for entry in view.entries]
        return [{"role": "user", "content": view.summary.text}, *said] if view.summary else said

    def close(self) -> None:
        self.store.close()


class OursNormal(Ours):
    """Without an fsync for each commit."""

    name, durable, synchronous = "cutbank, NORMAL", "wal-normal", "NORMAL"


@dataclass(frozen=True)
class KeepFrom:
    """A policy that keeps what follows the first `upto` blocks, or the nearest legal cut."""

    upto: int
    name: ClassVar[str] = "keep-from"

    def plan(self, window: Window) -> Plan:
        return Plan(window.items[self.upto].position, "measured", summary_tokens=1_000)


@dataclass(frozen=True)
class Says:
    """A summarizer that says what it was given."""

    text: str
    name: str = "measured"

    def summarize(self, _: Material) -> Draft:
        return Draft(self.text)


def _block(piece: Piece) -> Block | ToolCall | ToolResult:
    match piece["kind"]:
        case "tool_call":
            call, name, arguments = piece["call_id"], piece["name"], piece["args"]
            return ToolCall(tool_call_id=call, name=name, arguments=arguments)
        case "tool_result":
            return ToolResult(tool_call_id=piece["call_id"], content=piece["text"])
        case _:
            by_user = piece["role"] == "user"
            return Block.user(piece["text"]) if by_user else Block.assistant(piece["text"])


def _message(block: Any) -> Piece:
    match block:
        case ToolCall(tool_call_id=call, name=name):
            function = {"id": call, "name": name, "arguments": block.arguments}
            return {"role": "assistant", "tool_call": function}
        case ToolResult(tool_call_id=call):
            return {"role": "tool", "tool_call_id": call, "content": block.text}
        case _:
            return {"role": str(block.kind), "content": block.text}
