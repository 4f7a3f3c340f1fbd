"""What every format must keep of a session: who said what, what was called and what came back."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cutbank.adapters.transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingPart,
)
from cutbank.domain.blocks import Block, BlockKind, Media, ToolCall, ToolResult
from cutbank.projections.rendering import summary_message

_REMINDER = re.compile(r"\s*<system-reminder>(.*)</system-reminder>\s*", re.DOTALL)
_MARK = re.compile(r"\[(?:image|document|tool|from the tool call)[: ][^\]]*\]")
"""What stands for an image, a document, a tool or a result where the target holds none."""
_ABANDONED = re.compile(r"\s*\[abandoned: [^\]]*\]\s*")
_NOT_SHOWN = "[the source does not show the summary that it made]"
"""Where a source keeps its summary to itself: this is told of it, and nothing is lost with it."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_SPEAKERS = {
    BlockKind.USER: "user",
    BlockKind.ASSISTANT: "assistant",
    BlockKind.DEVELOPER: "developer",
}


@dataclass
class Heard:
    """A session without what formats may say in their own way: spaces, marks, names of ids."""

    texts: dict[str, str] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    """The words of documents: where those have no place, they stand among the user's."""
    order: list[str] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    results: list[str | None] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)


def heard(parts: Iterable[OutgoingPart]) -> Heard:
    found = Heard()
    open_calls: dict[str, int] = {}
    for part in parts:
        match part:
            case OutgoingCall():
                pass
            case OutgoingCompaction(summary=summary):
                if summary:
                    _sum_up(found, summary.text)
            case OutgoingBlock(is_retracted=True) | OutgoingBlock(is_cancelled_result=True):
                pass
            case OutgoingBlock(block=ToolCall() as call):
                open_calls[call.tool_call_id] = len(found.calls)
                found.calls.append((_NOT_IN_NAMES.sub("_", call.name)[:64], call.parse_arguments()))
                found.results.append(None)
                _next(found, "call")
            case OutgoingBlock(block=ToolResult() as result):
                known = open_calls.pop(result.tool_call_id)
                is_answer = not _ABANDONED.fullmatch(result.text)
                found.results[known] = _plain(result.text) if is_answer else None
            case OutgoingBlock(block=Block(kind=BlockKind.DEVELOPER, name="summary", text=text)):
                told = summary_message.parse_summary_message(text)
                _sum_up(found, told.text if told else text)
            case OutgoingBlock(
                block=Block(kind=BlockKind.DOCUMENT, media=Media(mime="text/plain", data=data))
            ):
                found.documents.append(_plain(data.decode()))
            case OutgoingBlock(block=Block(kind=kind, text=text)) if speaker := _SPEAKERS.get(kind):
                if kind is BlockKind.DEVELOPER and (marked := _REMINDER.fullmatch(text)):
                    text = marked[1]
                _say(found, speaker, text)
    return found


def _sum_up(found: Heard, text: str) -> None:
    if text != _NOT_SHOWN:
        found.summaries.append(_plain(text))


def _say(found: Heard, speaker: str, text: str) -> None:
    if words := _plain(text):
        found.texts[speaker] = f"{found.texts.get(speaker, '')} {words}".strip()
        _next(found, speaker)


def _next(found: Heard, speaker: str) -> None:
    """A model's words may stand before the calls of the same message or after them."""
    if speaker == "developer":
        return
    who, *calls = found.order[-1].split() if found.order else [""]
    if speaker == "user":
        if who != "user":
            found.order.append("user")
        return
    if who != "model":
        found.order.append("model")
        calls = []
    found.order[-1] = " ".join(["model", *calls, *(["call"] if speaker == "call" else [])])


def _plain(text: str) -> str:
    return " ".join(_MARK.sub(" ", text).split())
