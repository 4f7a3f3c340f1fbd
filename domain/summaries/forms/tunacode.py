"""Writes the summaries of seed 002: one request for all that leaves, with tool results clipped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...blocks import ToolCall
from ...item import Item
from ...messages import Role, group_messages
from ..plain_parts import list_text_parts
from ..summarizer import Material, SummaryPart, SummaryRequest

CLIPPED_MARK = "...[truncated]"
_LABELS = {
    Role.USER: "[User]:",
    Role.ASSISTANT: "[Assistant]:",
    Role.DEVELOPER: "[Developer]:",
    Role.TOOL_RESULT: "[Tool Result]:",
}


@dataclass(frozen=True)
class TunacodeTemplate:
    """A summary in sections, new or updated; a split turn is summarized with the rest."""

    sections: tuple[str, ...] = (
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
    turn_sections: tuple[str, ...] = ()
    clips_results_at: int = 500
    """The characters of a tool result that the summarizer is shown."""

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        """Return one request; a blank earlier summary counts as none."""
        previous = (material.previous or "").strip() or None
        return (
            SummaryRequest(SummaryPart.HISTORY, material.removed_items, material.budget, previous),
        )

    def render_conversation(self, items: Sequence[Item]) -> str:
        """Return a line for each message and each tool call, without blank ones."""
        return "\n".join(
            line
            for message in group_messages(items)
            for line in self._iter_lines(message.role, message.items)
        )

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:  # noqa: ARG002
        return texts[SummaryPart.HISTORY].strip()

    def _iter_lines(self, role: Role, items: Sequence[Item]) -> Iterator[str]:
        text = " ".join(part for item in items for part in list_text_parts(item.block)).strip()
        if role is Role.TOOL_RESULT and len(text) > self.clips_results_at:
            text = text[: self.clips_results_at] + CLIPPED_MARK
        if text:
            yield f"{_LABELS[role]} {text}"
        for item in items:
            if isinstance(item.block, ToolCall):
                arguments = json.dumps(item.block.parse_arguments(), sort_keys=True)
                yield f"[Tool Call]: {item.block.name}({arguments})"
