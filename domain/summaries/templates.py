"""Requests, shows and joins summaries as the documents of pi, tunacode and the Claude SDK do."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..item import Message, Role, WindowItem, group_messages
from .layout import MODIFIED_TAG, READ_TAG
from .summarizer import Material, SummaryPart, SummaryRequest

TURN_SECTIONS = ("Original Request", "Early Progress", "Context for Suffix")
"""The headings for a split turn's beginning, in all documents that summarize it separately."""
NO_HISTORY_TEXT = "No prior history."
"""The text above a split turn's beginning if there is no earlier history."""


class DocumentTemplate:
    """One request for all that leaves, also of a split turn, which shows texts with labels."""

    turn_sections: tuple[str, ...] = ()
    joiner: ClassVar[str] = "\n\n"
    """The text between two labeled texts."""

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        """Return one request; a blank earlier summary counts as none."""
        previous = (material.previous or "").strip() or None
        return make_requests(material, material.removed_items or None, (), previous)

    def render_conversation(self, items: Sequence[WindowItem]) -> str:
        return self.joiner.join(
            f"[{label}]: {text}"
            for message in group_messages(items)
            for label, text in self.iter_texts(message)
        )

    def iter_texts(self, message: Message) -> Iterator[tuple[str, str]]:
        """Yield the texts of a message with their labels."""
        raise NotImplementedError

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        """Return the answer itself, or the earlier summary if there was no request."""
        return texts.get(SummaryPart.HISTORY, material.previous or "").strip()


@dataclass(frozen=True)
class ClaudeSdkTemplate(DocumentTemplate):
    """The summary of seed 004, with each message shortened."""

    joiner = ""

    max_message_chars: int = 2_000
    """The most characters shown of a message."""
    shows_calls: bool = True
    """Whether to show tool calls, which the document does not mention."""

    sections = (
        "Decisions and their reasons",
        "Files and changes to code",
        "Open questions and pending tasks",
        "Preferences and constraints of the user",
        "Tool outputs that still matter",
    )

    def iter_texts(self, message: Message) -> Iterator[tuple[str, str]]:
        text = "\n".join(filter(None, map(self._render_piece, message.items)))
        if len(text) > self.max_message_chars:
            text = f"{text[: self.max_message_chars]}..."
        yield _CLAUDE_SDK_LABELS[message.role], f"{text}\n\n"

    def _render_piece(self, item: WindowItem) -> str:
        if isinstance(item.block, ToolCall):
            return f"{item.block.name}({item.block.arguments})" if self.shows_calls else ""
        return "" if item.kind is BlockKind.THINKING else item.block.text


_CLAUDE_SDK_LABELS = {
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.TOOL_RESULT: "tool",
    Role.DEVELOPER: "system",
}


@dataclass(frozen=True)
class TunacodeTemplate(DocumentTemplate):
    """The summary of seed 002: a line for each message and each tool call, without blank ones."""

    joiner = "\n"

    sections = (
        "Goal",
        "Constraints & Preferences",
        "Progress: Done",
        "Progress: In Progress",
        "Key Decisions",
        "Next Steps",
        "Files Touched: Read",
        "Files Touched: Modified",
        "Critical Context",
    )

    def iter_texts(self, message: Message) -> Iterator[tuple[str, str]]:
        parts = (part for item in message.items for part in list_text_parts(item.block))
        text = " ".join(parts).strip()
        if message.role is Role.TOOL_RESULT and len(text) > _TUNACODE_RESULT_CHARS:
            text = f"{text[:_TUNACODE_RESULT_CHARS]}...[truncated]"
        if text:
            yield _TUNACODE_LABELS[message.role], text
        for item in message.items:
            if isinstance(item.block, ToolCall):
                arguments = json.dumps(item.block.parse_arguments(), sort_keys=True)
                yield "Tool Call", f"{item.block.name}({arguments})"


_TUNACODE_RESULT_CHARS = 500
"""The characters of a tool result that the summarizer is shown."""
_TUNACODE_LABELS = {
    Role.USER: "User",
    Role.ASSISTANT: "Assistant",
    Role.DEVELOPER: "Developer",
    Role.TOOL_RESULT: "Tool Result",
}


def list_text_parts(block: AnyBlock) -> tuple[str, ...]:
    """Return the texts of a block, in order; an image is its address or a placeholder.

    A tool call has none; callers format its arguments themselves.
    """
    if isinstance(block, ToolCall):
        return ()
    if isinstance(block, Block):
        shown = (_name_media(block.media),) if block.media is not None else ()
        return (block.text, *shown) if block.text or not shown else shown
    if isinstance(block.content, str):
        return (block.content,)
    return tuple(text for part in block.content if (text := _read_part(part)) is not None)


def _read_part(part: ResultPart) -> str | None:
    if isinstance(part, NativePart):
        return None  # only its provider can read it
    return part.text if isinstance(part, Text) else _name_media(part)


def _name_media(media: Media) -> str:
    return media.url or f"[{media.type}]"


@dataclass(frozen=True)
class PiTemplate(DocumentTemplate):
    """pi-mono's summary of a checkpoint: the history, a split turn's beginning, lists of files."""

    keeps_previous: bool = True
    """Whether to keep the earlier summary if only a turn's beginning leaves; pi loses it."""

    sections = (
        "Goal",
        "Constraints & Preferences",
        "Progress",
        "Progress: Done",
        "Progress: In Progress",
        "Progress: Blocked",
        "Key Decisions",
        "Next Steps",
        "Critical Context",
    )
    turn_sections = TURN_SECTIONS

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        gone, prefix = material.removed_items, material.prefix
        history = tuple(item for item in gone if item.position not in prefix)
        turn = tuple(item for item in gone if item.position in prefix)
        # Even without history: an update of a summary is a request all the same.
        has_history = bool(history) or not turn
        return make_requests(material, history if has_history else None, turn, material.previous)

    def iter_texts(self, message: Message) -> Iterator[tuple[str, str]]:
        yield from ((label, text) for label, text in _iter_pi_texts(message) if text)

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        text = texts.get(SummaryPart.HISTORY)
        if text is None:
            text = (material.previous if self.keeps_previous else None) or NO_HISTORY_TEXT
            # The lists of files are written again, for everything that left.
            text = _PI_LISTS.sub("", text)
        text = append_turn(text, "Turn Context (split turn):", texts)
        return append_files(text, material.digest.read_files, material.digest.modified_files)


_PI_LISTS = re.compile(r"(?:\n\n<(read|modified)-files>\n[^<>]*\n</\1-files>)+\Z")
_PI_RESULT_UNITS = 2_000
"""The UTF-16 units of a tool's answer that the summarizer is shown."""
_COMPACT_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def make_requests(
    material: Material,
    history: tuple[WindowItem, ...] | None,
    turn: tuple[WindowItem, ...],
    previous: str | None,
) -> tuple[SummaryRequest, ...]:
    """Return a request for the history, if it is not None, and one for a split turn's beginning."""
    turn_budget = material.turn_budget or material.budget
    of_turn = (SummaryRequest(SummaryPart.TURN, turn, turn_budget),) if turn else ()
    if history is None:
        return of_turn
    return (SummaryRequest(SummaryPart.HISTORY, history, material.budget, previous), *of_turn)


def append_turn(text: str, heading: str, texts: Mapping[SummaryPart, str]) -> str:
    """Return a summary with that of a split turn's beginning below it, if there is one."""
    turn = texts.get(SummaryPart.TURN)
    return text if turn is None else f"{text}\n\n---\n\n**{heading}**\n\n{turn}"


def append_files(text: str, read: Sequence[str], modified: Sequence[str]) -> str:
    """Return a summary with the lists of files, if they are not empty, in tags below it."""
    lists = {READ_TAG: read, MODIFIED_TAG: modified}
    tags = ["\n".join([f"<{tag}>", *lists[tag], f"</{tag}>"]) for tag in lists if lists[tag]]
    return "\n\n".join([text, *tags])


def _iter_pi_texts(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the texts of a message with their labels."""
    blocks = [item.block for item in message.items]
    if message.role is Role.ASSISTANT:
        for label, kind in (
            ("Assistant thinking", BlockKind.THINKING),
            ("Assistant", BlockKind.ASSISTANT),
        ):
            yield label, "\n".join(block.text for block in blocks if block.kind is kind)
        calls = (block for block in blocks if isinstance(block, ToolCall))
        yield "Assistant tool calls", "; ".join(map(_write_pi_call, calls))
        return
    text = "".join(map(_read_plain_text, blocks))
    is_result = message.role is Role.TOOL_RESULT
    yield ("Tool result", _shorten_units(text)) if is_result else ("User", text)


def _read_plain_text(block: AnyBlock) -> str:
    if not isinstance(block, ToolResult) or isinstance(block.content, str):
        return block.text
    return "".join(part.text for part in block.content if isinstance(part, Text))


def _write_pi_call(call: ToolCall) -> str:
    arguments = call.parse_arguments().items()
    words = ", ".join(f"{name}={_COMPACT_JSON.encode(value)}" for name, value in arguments)
    return f"{call.name}({words})"


def _shorten_units(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    left_out = len(units) // 2 - _PI_RESULT_UNITS
    if left_out <= 0:
        return text
    shown = units[: 2 * _PI_RESULT_UNITS].decode("utf-16-le", "surrogatepass")
    return f"{shown}\n\n[... {left_out} more characters truncated]"
