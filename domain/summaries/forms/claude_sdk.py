"""One request for all that leaves, each message shortened behind its role: seed 004's summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...blocks import Kind, ToolCall
from ...item import Item
from ...messages import Message, Role, group_messages
from ..summarizer import Material, SummaryPart, SummaryRequest

_LABELS = {
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
class ClaudeSdkTemplate:
    """The beginning of a split turn is summed up with the rest; there is one answer."""

    max_message_chars: int = 2_000
    """Characters of a message that are shown."""
    shows_calls: bool = True
    """Whether tool calls are shown, which the document's messages say nothing of."""

    @property
    def sections(self) -> tuple[str, ...]:
        return SECTIONS

    @property
    def turn_sections(self) -> tuple[str, ...]:
        return ()

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        if not material.removed_items:
            return ()
        return (
            SummaryRequest(
                SummaryPart.HISTORY, material.removed_items, material.budget, material.previous
            ),
        )

    def render_conversation(self, items: Sequence[Item]) -> str:
        return "".join(self._render_message(message) for message in group_messages(items))

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        """The answer itself; where nothing was asked, what stood for earlier blocks."""
        return texts.get(SummaryPart.HISTORY, material.previous or "")

    def _render_message(self, message: Message) -> str:
        pieces = [piece for item in message.items if (piece := self._render_piece(item))]
        text = "\n".join(pieces)
        shortened = (
            f"{text[: self.max_message_chars]}..." if len(text) > self.max_message_chars else text
        )
        return f"[{_LABELS[message.role]}]: {shortened}\n\n"

    def _render_piece(self, item: Item) -> str:
        if isinstance(item.block, ToolCall):
            return f"{item.block.name}({item.block.arguments})" if self.shows_calls else ""
        return "" if item.kind is Kind.THINKING else item.block.text
