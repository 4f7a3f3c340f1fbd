"""Seed 002's summaries: one request for all that leaves, in which tool results are clipped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...blocks import ToolCall
from ...item import Item
from ...messages import Role, messages_of
from ..plain_parts import parts_of
from ..summariser import Asked, Material, Part

CLIPPED = "...[truncated]"
LABELS = {
    Role.USER: "[User]:",
    Role.ASSISTANT: "[Assistant]:",
    Role.DEVELOPER: "[Developer]:",
    Role.TOOL_RESULT: "[Tool Result]:",
}


@dataclass(frozen=True)
class TunacodeForm:
    """A summary in sections, written afresh or brought up to date; a split turn is one with it."""

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
    """Characters of a tool result that the writer is shown."""

    def asked(self, material: Material) -> tuple[Asked, ...]:
        """One request; a blank summary from before is none."""
        previous = (material.previous or "").strip() or None
        return (Asked(Part.HISTORY, material.gone, material.budget, previous),)

    def said(self, items: Sequence[Item]) -> str:
        """A line for each message and each tool call; what is blank is left out."""
        return "\n".join(
            line
            for message in messages_of(items)
            for line in self._lines(message.role, message.items)
        )

    def joined(self, texts: Mapping[Part, str], material: Material) -> str:  # noqa: ARG002
        return texts[Part.HISTORY].strip()

    def _lines(self, role: Role, items: Sequence[Item]) -> Iterator[str]:
        text = " ".join(part for item in items for part in parts_of(item.block)).strip()
        if role is Role.TOOL_RESULT and len(text) > self.clips_results_at:
            text = text[: self.clips_results_at] + CLIPPED
        if text:
            yield f"{LABELS[role]} {text}"
        for item in items:
            if isinstance(item.block, ToolCall):
                arguments = json.dumps(item.block.parsed(), sort_keys=True)
                yield f"[Tool Call]: {item.block.name}({arguments})"
