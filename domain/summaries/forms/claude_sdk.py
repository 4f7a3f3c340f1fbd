"""One request for all that leaves, each message shortened behind its role: seed 004's summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...blocks import Kind, ToolCall
from ...item import Item
from ...messages import Message, Role, messages_of
from ..summariser import Asked, Material, Part

LABELS = {
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.TOOL_RESULT: "tool",
    Role.DEVELOPER: "system",
}
SECTIONS = (
    "Decisions and their reasons",
    "Files and changes to code",
    "Open questions and pending tasks",
    "Preferences and constraints of the user",
    "Tool outputs that still matter",
)
"""The five things that a summary has to preserve."""


@dataclass(frozen=True)
class ClaudeSdkForm:
    """The beginning of a split turn is summed up with the rest; there is one answer."""

    shown: int = 2_000
    """Characters of a message that are shown."""
    shows_calls: bool = True
    """Whether tool calls are shown, which the document's messages say nothing of."""

    @property
    def sections(self) -> tuple[str, ...]:
        return SECTIONS

    @property
    def turn_sections(self) -> tuple[str, ...]:
        return ()

    def asked(self, material: Material) -> tuple[Asked, ...]:
        if not material.gone:
            return ()
        return (Asked(Part.HISTORY, material.gone, material.budget, material.previous),)

    def said(self, items: Sequence[Item]) -> str:
        return "".join(self._message(message) for message in messages_of(items))

    def joined(self, texts: Mapping[Part, str], material: Material) -> str:
        """The answer itself; where nothing was asked, what stood for earlier blocks."""
        return texts.get(Part.HISTORY, material.previous or "")

    def _message(self, message: Message) -> str:
        pieces = [piece for item in message.items if (piece := self._piece(item))]
        text = "\n".join(pieces)
        shortened = f"{text[: self.shown]}..." if len(text) > self.shown else text
        return f"[{LABELS[message.role]}]: {shortened}\n\n"

    def _piece(self, item: Item) -> str:
        if isinstance(item.block, ToolCall):
            return f"{item.block.name}({item.block.arguments})" if self.shows_calls else ""
        return "" if item.kind is Kind.THINKING else item.block.text
