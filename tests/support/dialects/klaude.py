"""A compaction as klaude-code writes it: the entry of its history, and its events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from cutbank.domain.blocks import Kind, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest, Trigger
from cutbank.domain.item import Item
from cutbank.domain.messages import Message, Role, group_messages

PREVIEW = 30
"""Characters of a message that a brief shows."""


class Reason(StrEnum):
    """What klaude-code calls a trigger; what sessions do at rest is one of cutbank's own."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"


REASONS: Mapping[Trigger, Reason] = {
    Trigger.THRESHOLD: Reason.THRESHOLD,
    Trigger.OVERFLOW: Reason.OVERFLOW,
    Trigger.MANUAL: Reason.MANUAL,
    # A program that compacts by itself does it for the threshold, be that near or passed.
    Trigger.IDLE: Reason.THRESHOLD,
}


@dataclass(frozen=True, slots=True)
class Compacted:
    """What klaude-code knows of a compaction once it is done."""

    trigger: Trigger
    summary: str
    first_kept_index: int
    """Where the kept messages begin, among the messages and entries of the whole history."""
    tokens_before: int
    digest: Digest
    history: Sequence[Item]
    """All messages that there were; the last of them are kept."""
    first_kept: int
    """The position from which on they are."""
    created_at: datetime


def kept_items_brief(
    kept: Sequence[Item], history: Iterable[Item], *, capitalised: bool
) -> list[dict[str, Any]]:
    """What stays, a line for each message that says something and each tool of a run of results.

    The calls stand in the `history`. `capitalised` writes the names of tools as titles, as the
    program did at first.
    """
    names = {_id(item): item.block.name for item in history if isinstance(item.block, ToolCall)}
    brief: list[dict[str, Any]] = []
    for is_result, run in groupby(group_messages(kept), key=_is_result):
        if is_result:
            tools = (names.get(_id(message.items[0]), "tool") for message in run)
            brief += _counted(name.capitalize() if capitalised else name for name in tools)
        else:
            brief += _previews(run)
    return brief


def entry(compacted: Compacted, *, capitalised: bool = False) -> dict[str, Any]:
    """The `CompactionEntry` that is appended to a history."""
    return {
        "summary": compacted.summary,
        "first_kept_index": compacted.first_kept_index,
        "tokens_before": compacted.tokens_before,
        "details": details(compacted.digest),
        "kept_items_brief": _brief(compacted, capitalised),
        "created_at": compacted.created_at.isoformat(),
    }


def details(digest: Digest) -> dict[str, list[str]]:
    """The files of an entry; a modified file is not listed as read."""
    return {
        "read_files": list(digest.read_files),
        "modified_files": list(digest.modified_files),
    }


def start_event(trigger: Trigger) -> dict[str, Any]:
    """What a program is told when a compaction begins."""
    return {"reason": REASONS[trigger].value}


def end_event(
    trigger: Trigger, done: Compacted | None, *, will_retry: bool = False, capitalised: bool = False
) -> dict[str, Any]:
    """What it is told at the end; `done` is None where the compaction came to nothing."""
    return {
        "reason": REASONS[trigger].value,
        "aborted": done is None,
        "will_retry": will_retry,
        "tokens_before": done.tokens_before if done else None,
        "kept_from_index": done.first_kept_index if done else None,
        "summary": done.summary if done else None,
        "kept_items_brief": _brief(done, capitalised) if done else [],
    }


def _brief(compacted: Compacted, capitalised: bool) -> list[dict[str, Any]]:
    kept = [item for item in compacted.history if item.position >= compacted.first_kept]
    return kept_items_brief(kept, compacted.history, capitalised=capitalised)


def _is_result(message: Message) -> bool:
    return message.role is Role.TOOL_RESULT


def _counted(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    for name, count in counts.items():
        yield {"item_type": name, "count": count, "preview": ""}


def _previews(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role is Role.DEVELOPER:
            continue
        said = {Kind.USER, Kind.DOCUMENT, Kind.ASSISTANT}
        text = "\n".join(item.block.text for item in message.items if item.kind in said).strip()
        is_user = message.role is Role.USER
        if text or is_user:
            label = "User" if is_user else "Assistant"
            yield {"item_type": label, "count": 1, "preview": _preview(text)}


def _preview(text: str) -> str:
    return text if len(text) <= PREVIEW else f"{text[:PREVIEW]}..."


def _id(item: Item) -> str:
    block = item.block
    return block.tool_call_id if isinstance(block, ToolCall | ToolResult) else ""
