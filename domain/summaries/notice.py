"""Writes a notice that blocks left: the text of policies that prune without a summary."""

import re
from dataclasses import dataclass

from ..messages import group_messages
from .summarizer import Draft, Material

NOTICE_SECTION = "Pruned"
HIDDEN_TEXT = "[Blocks were hidden, and are not shown.]"
"""The text if nothing else replaces what left."""


def _write_notice(messages: int) -> str:
    """Return the notice for users and models (S1.29)."""
    old = "message" if messages == 1 else "messages"
    return f"Removed {messages:,} old {old} to stay within context limits"


@dataclass(frozen=True)
class NoticeSummarizer:
    """One line below the earlier summary: how many messages were removed so far.

    The view names the handles of everything that left next to it. It cannot fail.
    """

    name: str = "notice"

    def summarize(self, material: Material) -> Draft:
        told = material.previous_sections.get(NOTICE_SECTION, "")
        above = (material.previous or "").removesuffix(told).rstrip()
        counted = _COUNT.search(told)
        before = int(counted[1].replace(",", "")) if counted else 0
        line = (
            "[Context Pruned: "
            f"{_write_notice(before + len(group_messages(material.removed_items)))}]"
        )
        text = f"{above}\n\n{line}" if above else line
        return Draft(text, {**material.previous_sections, NOTICE_SECTION: line})


_COUNT = re.compile(r"Removed ([\d,]{1,15})\b")
