"""Writes klaude-code's summaries in three versions: its document, as first shipped, and later."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ...blocks import Kind, ToolCall
from ...compaction_events import Digest
from ...digest import TouchedPaths, find_touched_files
from ...item import Item
from ...messages import Message, Role, group_messages
from ..extraction.file_lists import MODIFIED_TAG, READ_TAG, escape_path
from ..summarizer import Material, SummaryPart, SummaryRequest
from .klaude_files import find_touches_by_arguments, find_touches_by_name

SUMMARY_INTRODUCTION = (
    "The conversation history before this point was compacted into the following summary:"
)
_NO_HISTORY = "No prior history."
_TRUNCATED_MARK = "...(truncated)"
_MAX_CALL_CHARS, _MAX_RESULT_CHARS = 2_000, 4_000
"""The most characters shown of a call's arguments and of a tool's result."""


class KlaudeVersion(StrEnum):
    """The version of klaude-code whose summaries are copied."""

    DOCUMENT = "document"
    AS_SHIPPED = "as-shipped"
    LATER = "later"


class FileRule(StrEnum):
    """How the files that a call touches are found."""

    TABLES = "tables"
    """By the tools that cutbank knows."""
    NAME = "name"
    ARGUMENTS = "arguments"


_TOUCHES = {
    FileRule.TABLES: find_touched_files,
    FileRule.NAME: find_touches_by_name,
    FileRule.ARGUMENTS: find_touches_by_arguments,
}


@dataclass(frozen=True)
class KlaudeTemplate:
    """A summary of the history, and a separate one of a task's beginning that was cut off.

    The lists of files come last. If only such a beginning leaves, the earlier summary of the
    history stays.
    """

    file_rule: FileRule = FileRule.TABLES
    turn_heading: str = "Task Context (current task)"
    is_always_framed: bool = True
    """Whether every summary is introduced as one, or only that of a cut task."""
    strips_reminders: bool = True
    """Whether text that a program inserted into a user's message is hidden from the summarizer."""
    has_own_turn_budget: bool = False
    """Whether the beginning of a task may take as much as the history, or half of it."""
    always_updates: bool = False
    """Whether every request for the history is an update, even without a summary or new history."""

    sections = (
        "Goal",
        "Constraints & Preferences",
        "Progress: Done",
        "Progress: In Progress",
        "Progress: Blocked",
        "Key Decisions",
        "Next Steps",
        "Critical Context",
    )
    turn_sections = ("Original Request", "Early Progress", "Context for Suffix")

    def find_touches(self, call: ToolCall) -> TouchedPaths:
        return _TOUCHES[self.file_rule](call)

    def split_parts(self, material: Material) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """Return the history, and the user's last message if the cut splits its turn."""
        gone = material.removed_items
        asked = next(
            (
                message
                for message in reversed(group_messages(gone))
                if message.role is Role.USER and message.position in material.prefix
            ),
            None,
        )
        start = asked.start if asked else len(gone)
        return gone[:start], gone[start:]

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        history, beginning = self.split_parts(material)
        previous = _strip_frame(material.previous)
        requests: list[SummaryRequest] = []
        is_asked = bool(history) or not beginning or (self.always_updates and previous is not None)
        budget = material.budget
        if is_asked and beginning and not material.turn_budget:
            budget -= budget // 2
        if is_asked:
            if previous is None and self.always_updates:
                previous = ""
            requests.append(SummaryRequest(SummaryPart.HISTORY, history, budget, previous))
        if beginning:
            requests.append(
                SummaryRequest(SummaryPart.TURN, beginning, material.turn_budget or budget)
            )
        return tuple(requests)

    def render_conversation(self, items: Sequence[Item]) -> str:
        return "\n\n".join(
            line for message in group_messages(items) for line in self._iter_lines(message)
        )

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        history = texts.get(SummaryPart.HISTORY)
        if history is None:
            nothing = _NO_HISTORY if self.always_updates else ""
            history = _strip_frame(material.previous) or nothing
        if SummaryPart.TURN in texts:
            history += f"\n\n---\n\n**{self.turn_heading}:**\n\n{texts[SummaryPart.TURN]}"
        if SummaryPart.TURN in texts or self.is_always_framed:
            history = f"{SUMMARY_INTRODUCTION}\n\n\n<summary>{history}\n\n</summary>"
        return history + _write_file_tags(material.digest)

    def _iter_lines(self, message: Message) -> Iterator[str]:
        """Yield a message under its labels. An answer shows even if it is empty."""
        match message.role:
            case Role.USER:
                heard = self._strip_reminders(
                    _join_text(message, Kind.USER, Kind.DOCUMENT)
                ) or _write_images(message)
                lines = [("User", heard)] if heard else []
            case Role.DEVELOPER:
                heard = self._strip_reminders(_join_text(message, Kind.DEVELOPER))
                lines = [("Developer", heard)] if heard else []
            case Role.TOOL_RESULT:
                result = _shorten(message.items[0].block.text, _MAX_RESULT_CHARS)
                lines = [("Tool result", result)] if result else []
            case _:
                spoken = (("Assistant thinking", Kind.THINKING), ("Assistant", Kind.ASSISTANT))
                lines = [
                    (label, _join_text(message, kind))
                    for label, kind in spoken
                    if any(item.kind is kind for item in message.items)
                ]
                if message.calls:
                    lines.append(
                        ("Assistant tool calls", "; ".join(map(_write_call, message.calls)))
                    )
        yield from (f"[{label}]: {text}" for label, text in lines)

    def _strip_reminders(self, text: str) -> str:
        return _REMINDER.sub("", text).strip() if self.strips_reminders else text


KLAUDE_TEMPLATES: Mapping[str, KlaudeTemplate] = MappingProxyType(
    {
        KlaudeVersion.DOCUMENT: KlaudeTemplate(),
        KlaudeVersion.AS_SHIPPED: KlaudeTemplate(
            file_rule=FileRule.NAME,
            turn_heading="Task Context (split task)",
            is_always_framed=False,
            has_own_turn_budget=True,
            strips_reminders=False,
            always_updates=True,
        ),
        KlaudeVersion.LATER: KlaudeTemplate(
            file_rule=FileRule.ARGUMENTS, is_always_framed=False, has_own_turn_budget=True
        ),
    }
)


def _write_file_tags(digest: Digest) -> str:
    lists = ((READ_TAG, digest.read_files), (MODIFIED_TAG, digest.modified_files))
    return "".join(
        "\n\n" + "\n".join([f"<{tag}>", *map(escape_path, paths), f"</{tag}>"])
        for tag, paths in lists
        if paths
    )


def _strip_frame(previous: str | None) -> str | None:
    """Return an earlier summary without its frame and its lists, which the next one adds again."""
    if previous is None:
        return None
    text = _LISTS.sub("", previous)
    framed = _FRAMED.fullmatch(text)
    return framed[1] if framed else text


def _join_text(message: Message, *kinds: Kind) -> str:
    return "\n".join(
        item.block.text for item in message.items if item.kind in kinds and item.block.text
    )


def _write_images(message: Message) -> str:
    return " ".join("[image]" for item in message.items if item.kind is Kind.IMAGE)


def _write_call(item: Item) -> str:
    call = item.block
    assert isinstance(call, ToolCall), "calls of a message are tool calls"
    return f"{call.name}({_shorten(call.arguments, _MAX_CALL_CHARS)})"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _TRUNCATED_MARK


_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_LISTS = re.compile(rf"(?:\n\n<({READ_TAG}|{MODIFIED_TAG})>\n.*?\n</\1>)+\s*\Z", re.DOTALL)
_FRAMED = re.compile(rf"{re.escape(SUMMARY_INTRODUCTION)}\s*<summary>(.*)\n\n</summary>", re.DOTALL)
