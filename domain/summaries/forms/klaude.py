"""How klaude-code has summaries asked for and put together, first, later, and by its document."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ...blocks import Kind, ToolCall
from ...compaction_events import Digest
from ...digest import Touch, touched
from ...item import Item
from ...messages import Message, Role, messages_of
from ..extraction.file_lists import MODIFIED, READ, as_line
from ..summariser import Asked, Material, Part
from .klaude_files import by_arguments, by_name

LEAD = "The conversation history before this point was compacted into the following summary:"
NO_HISTORY = "No prior history."
CUT_OFF = "...(truncated)"
MOST_OF_CALL, MOST_OF_RESULT = 2_000, 4_000
"""Characters that are shown of a call's arguments and of a tool's result."""


class Way(StrEnum):
    """Whose way a summary has."""

    DOCUMENT = "document"
    AS_SHIPPED = "as-shipped"
    LATER = "later"


class Files(StrEnum):
    """By what a call is taken to read or modify files."""

    TABLES = "tables"
    """The tools that cutbank knows, whoever wrote them."""
    NAME = "name"
    ARGUMENTS = "arguments"


_TOUCHES = {Files.TABLES: touched, Files.NAME: by_name, Files.ARGUMENTS: by_arguments}


@dataclass(frozen=True)
class KlaudeForm:
    """A summary of the history, and apart from it one of the beginning of the task that was cut.

    The lists of files close it. Where only such a beginning leaves, what stood for the history
    before goes on standing for it.
    """

    files: Files = Files.TABLES
    turn_heading: str = "Task Context (current task)"
    is_always_framed: bool = True
    """Whether every summary says that it is one, and not only those of a task that was cut."""
    strips_reminders: bool = True
    """Whether what a program put between a user's words is kept from the writer."""
    has_own_turn_budget: bool = False
    """Whether the beginning of a task may take as much again as the history, and not its half."""
    always_updates: bool = False
    """Whether the history is always asked for as an update, be there a summary before it or not,
    and even where nothing of it leaves."""

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

    def touches(self, call: ToolCall) -> Touch:
        """The files that a call reads or modifies."""
        return _TOUCHES[self.files](call)

    def parts(self, material: Material) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """The history, and what the user asked for last where the cut parts that."""
        gone = material.gone
        asked = next(
            (
                message
                for message in reversed(messages_of(gone))
                if message.role is Role.USER and message.position in material.prefix
            ),
            None,
        )
        start = asked.begins if asked else len(gone)
        return gone[:start], gone[start:]

    def asked(self, material: Material) -> tuple[Asked, ...]:
        history, beginning = self.parts(material)
        previous = _bare(material.previous)
        requests: list[Asked] = []
        is_asked = bool(history) or not beginning or (self.always_updates and previous is not None)
        budget = material.budget
        if is_asked and beginning and not material.turn_budget:
            budget -= budget // 2
        if is_asked:
            if previous is None and self.always_updates:
                previous = ""
            requests.append(Asked(Part.HISTORY, history, budget, previous))
        if beginning:
            requests.append(Asked(Part.TURN, beginning, material.turn_budget or budget))
        return tuple(requests)

    def said(self, items: Sequence[Item]) -> str:
        return "\n\n".join(line for message in messages_of(items) for line in self._lines(message))

    def joined(self, texts: Mapping[Part, str], material: Material) -> str:
        history = texts.get(Part.HISTORY)
        if history is None:
            nothing = NO_HISTORY if self.always_updates else ""
            history = _bare(material.previous) or nothing
        if Part.TURN in texts:
            history += f"\n\n---\n\n**{self.turn_heading}:**\n\n{texts[Part.TURN]}"
        if Part.TURN in texts or self.is_always_framed:
            history = f"{LEAD}\n\n\n<summary>{history}\n\n</summary>"
        return history + file_tags(material.digest)

    def _lines(self, message: Message) -> Iterator[str]:
        """A message under its labels. An answer shows even where it is empty."""
        match message.role:
            case Role.USER:
                heard = self._heard(_text(message, Kind.USER, Kind.DOCUMENT)) or _images(message)
                lines = [("User", heard)] if heard else []
            case Role.DEVELOPER:
                heard = self._heard(_text(message, Kind.DEVELOPER))
                lines = [("Developer", heard)] if heard else []
            case Role.TOOL_RESULT:
                result = _within(message.items[0].block.text, MOST_OF_RESULT)
                lines = [("Tool result", result)] if result else []
            case _:
                spoken = (("Assistant thinking", Kind.THINKING), ("Assistant", Kind.ASSISTANT))
                lines = [
                    (label, _text(message, kind))
                    for label, kind in spoken
                    if any(item.kind is kind for item in message.items)
                ]
                if message.calls:
                    lines.append(("Assistant tool calls", "; ".join(map(_called, message.calls))))
        yield from (f"[{label}]: {text}" for label, text in lines)

    def _heard(self, text: str) -> str:
        return _REMINDER.sub("", text).strip() if self.strips_reminders else text


FORMS: Mapping[str, KlaudeForm] = MappingProxyType(
    {
        Way.DOCUMENT: KlaudeForm(),
        Way.AS_SHIPPED: KlaudeForm(
            files=Files.NAME,
            turn_heading="Task Context (split task)",
            is_always_framed=False,
            has_own_turn_budget=True,
            strips_reminders=False,
            always_updates=True,
        ),
        Way.LATER: KlaudeForm(
            files=Files.ARGUMENTS, is_always_framed=False, has_own_turn_budget=True
        ),
    }
)
"""Forms by whose way they are."""


def file_tags(digest: Digest) -> str:
    """The lists of files as they close a summary; nothing for a list that is empty."""
    lists = ((READ, digest.read_files), (MODIFIED, digest.modified_files))
    return "".join(
        "\n\n" + "\n".join([f"<{tag}>", *map(as_line, paths), f"</{tag}>"])
        for tag, paths in lists
        if paths
    )


def _bare(previous: str | None) -> str | None:
    """An earlier summary without its frame and its lists, which the next one gets anew."""
    if previous is None:
        return None
    text = _LISTS.sub("", previous)
    framed = _FRAMED.fullmatch(text)
    return framed[1] if framed else text


def _text(message: Message, *kinds: Kind) -> str:
    return "\n".join(
        item.block.text for item in message.items if item.kind in kinds and item.block.text
    )


def _images(message: Message) -> str:
    return " ".join("[image]" for item in message.items if item.kind is Kind.IMAGE)


def _called(item: Item) -> str:
    call = item.block
    assert isinstance(call, ToolCall), "calls of a message are tool calls"
    return f"{call.name}({_within(call.arguments, MOST_OF_CALL)})"


def _within(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + CUT_OFF


_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_LISTS = re.compile(rf"(?:\n\n<({READ}|{MODIFIED})>\n.*?\n</\1>)+\s*\Z", re.DOTALL)
_FRAMED = re.compile(rf"{re.escape(LEAD)}\s*<summary>(.*)\n\n</summary>", re.DOTALL)
