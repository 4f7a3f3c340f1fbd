"""Writes klaude-code's summaries in three versions: its document, as first shipped, and later."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from pydantic import JsonValue

from ..blocks import BlockKind, ToolCall
from ..digest import TouchedPaths, find_touched_files, read_arguments
from ..item import Message, Role, WindowItem, group_messages
from .layout import MODIFIED_TAG, READ_TAG, escape_path
from .summarizer import Material, SummaryPart, SummaryRequest
from .templates import (
    NO_HISTORY_TEXT,
    TURN_SECTIONS,
    DocumentTemplate,
    append_files,
    append_turn,
    make_requests,
)

SUMMARY_INTRODUCTION = (
    "The conversation history before this point was compacted into the following summary:"
)
_MAX_CALL_CHARS, _MAX_RESULT_CHARS = 2_000, 4_000
"""The most characters shown of a call's arguments and of a tool's result."""
_READ_TOOLS = frozenset({"read"})
_WRITE_TOOLS = frozenset({"write", "edit", "apply_patch"})
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_LISTS = re.compile(rf"(?:\n\n<({READ_TAG}|{MODIFIED_TAG})>\n.*?\n</\1>)+\s*\Z", re.DOTALL)
_FRAMED = re.compile(rf"{re.escape(SUMMARY_INTRODUCTION)}\s*<summary>(.*)\n\n</summary>", re.DOTALL)


class KlaudeVersion(StrEnum):
    """The version of klaude-code whose summaries are copied."""

    DOCUMENT = "document"
    AS_SHIPPED = "as-shipped"
    LATER = "later"


def find_touches_by_name(call: ToolCall) -> TouchedPaths:
    """Return the files of the first version: four tools are known, and others touch nothing."""
    if call.name not in _READ_TOOLS | _WRITE_TOOLS:
        return TouchedPaths()
    return TouchedPaths(_find_path(read_arguments(call)), modifies=call.name in _WRITE_TOOLS)


def find_touches_by_arguments(call: ToolCall) -> TouchedPaths:
    """Return the files of the later version, in which the arguments alone decide."""
    given = read_arguments(call)
    patch = given.get("patch")
    has_changes = (
        {"old", "new"} <= given.keys()
        or "content" in given
        or (isinstance(patch, str) and "*** Begin Patch" in patch)
        or isinstance(given.get("edits"), list)
    )
    return TouchedPaths(_find_path(given), modifies=has_changes)


def _find_path(given: Mapping[str, JsonValue]) -> tuple[str, ...]:
    named = (given.get("file_path"), given.get("path"))
    return tuple(path for path in named if isinstance(path, str) and path.strip())[:1]


@dataclass(frozen=True)
class KlaudeTemplate(DocumentTemplate):
    """A summary of the history, and a separate one of a task's beginning that was cut off.

    The lists of files come last. If only such a beginning leaves, the earlier summary of the
    history stays.
    """

    find_touches: Callable[[ToolCall], TouchedPaths] = field(default=find_touched_files, repr=False)
    """Returns the files that a call touches. Its name would differ in each process."""
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
    turn_sections = TURN_SECTIONS

    def split_parts(
        self, material: Material
    ) -> tuple[tuple[WindowItem, ...], tuple[WindowItem, ...]]:
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
        is_update = self.always_updates and previous is not None
        if beginning and not (history or is_update):
            return make_requests(material, None, beginning, None)
        if beginning and not material.turn_budget:
            material = replace(material, budget=material.budget - material.budget // 2)
        if self.always_updates:
            previous = previous or ""
        return make_requests(material, history, beginning, previous)

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        text = texts.get(SummaryPart.HISTORY)
        if text is None:
            nothing = NO_HISTORY_TEXT if self.always_updates else ""
            text = _strip_frame(material.previous) or nothing
        text = append_turn(text, f"{self.turn_heading}:", texts)
        if SummaryPart.TURN in texts or self.is_always_framed:
            text = f"{SUMMARY_INTRODUCTION}\n\n\n<summary>{text}\n\n</summary>"
        read, modified = material.digest.read_files, material.digest.modified_files
        return append_files(text, [*map(escape_path, read)], [*map(escape_path, modified)])

    def iter_texts(self, message: Message) -> Iterator[tuple[str, str]]:
        """Yield a message's texts under their labels. An answer shows even if it is empty."""
        match message.role:
            case Role.USER:
                text = self._strip_reminders(
                    _join_text(message, BlockKind.USER, BlockKind.DOCUMENT)
                )
                images = sum(item.kind is BlockKind.IMAGE for item in message.items)
                if text or images:
                    yield "User", text or " ".join(["[image]"] * images)
            case Role.DEVELOPER:
                if text := self._strip_reminders(_join_text(message, BlockKind.DEVELOPER)):
                    yield "Developer", text
            case Role.TOOL_RESULT:
                if text := _shorten(message.items[0].block.text, _MAX_RESULT_CHARS):
                    yield "Tool result", text
            case _:
                kinds = {item.kind for item in message.items}
                if BlockKind.THINKING in kinds:
                    yield "Assistant thinking", _join_text(message, BlockKind.THINKING)
                if BlockKind.ASSISTANT in kinds:
                    yield "Assistant", _join_text(message, BlockKind.ASSISTANT)
                if message.calls:
                    yield "Assistant tool calls", "; ".join(map(_write_call, message.calls))

    def _strip_reminders(self, text: str) -> str:
        return _REMINDER.sub("", text).strip() if self.strips_reminders else text


KLAUDE_TEMPLATES: Mapping[str, KlaudeTemplate] = MappingProxyType(
    {
        KlaudeVersion.DOCUMENT: KlaudeTemplate(),
        KlaudeVersion.AS_SHIPPED: KlaudeTemplate(
            find_touches=find_touches_by_name,
            turn_heading="Task Context (split task)",
            is_always_framed=False,
            has_own_turn_budget=True,
            strips_reminders=False,
            always_updates=True,
        ),
        KlaudeVersion.LATER: KlaudeTemplate(
            find_touches=find_touches_by_arguments,
            is_always_framed=False,
            has_own_turn_budget=True,
        ),
    }
)


def _strip_frame(previous: str | None) -> str | None:
    """Return an earlier summary without its frame and its lists, which the next one adds again."""
    if previous is None:
        return None
    text = _LISTS.sub("", previous)
    framed = _FRAMED.fullmatch(text)
    return framed[1] if framed else text


def _join_text(message: Message, *kinds: BlockKind) -> str:
    return "\n".join(
        item.block.text for item in message.items if item.kind in kinds and item.block.text
    )


def _write_call(item: WindowItem) -> str:
    call = item.block
    assert isinstance(call, ToolCall), "calls of a message are tool calls"
    return f"{call.name}({_shorten(call.arguments, _MAX_CALL_CHARS)})"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}...(truncated)"
