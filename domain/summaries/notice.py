"""Says that blocks left, and no more of them: the text of policies that prune and never sum up."""

import re
from dataclasses import dataclass

from ..messages import messages_of
from .summariser import Draft, Material

SECTION = "Pruned"
HIDDEN = "[Blocks were hidden, and are not shown.]"
"""Where nothing else stands for anything that left."""


def removed(messages: int) -> str:
    """What people and models are told of it (S1.29)."""
    old = "message" if messages == 1 else "messages"
    return f"Removed {messages:,} old {old} to stay within context limits"


@dataclass(frozen=True)
class Notice:
    """One line below whatever stood for earlier blocks: how many messages were removed so far.

    The view names the handles of all that left beside it. It needs nothing and cannot fail.
    """

    name: str = "notice"

    def summarise(self, material: Material) -> Draft:
        told = material.previous_sections.get(SECTION, "")
        above = (material.previous or "").removesuffix(told).rstrip()
        counted = _COUNT.search(told)
        before = int(counted[1].replace(",", "")) if counted else 0
        line = f"[Context Pruned: {removed(before + len(messages_of(material.gone)))}]"
        text = f"{above}\n\n{line}" if above else line
        return Draft(text, {**material.previous_sections, SECTION: line})


_COUNT = re.compile(r"Removed ([\d,]{1,15})\b")
