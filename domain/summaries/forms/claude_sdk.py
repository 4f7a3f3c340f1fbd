"""Writes the summary of seed 004: one request for all that leaves, with each message shortened."""

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
"""The five subjects that a summary has to preserve."""


@dataclass(frozen=True)
class ClaudeSdkTemplate:
    """A split turn's beginning is summarized with the rest, so there is one answer."""

    max_message_chars: int = 2_000
    """The most characters shown of a message."""
    shows_calls: bool = True
    """Whether to show tool calls, which the document does not mention."""

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
        """Return the answer itself, or the earlier summary if there was no request."""
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
