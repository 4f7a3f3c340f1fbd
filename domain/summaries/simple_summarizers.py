"""Writes summaries that describe nothing: a list of what left, a notice, a text of a size."""

import re
from collections import Counter
from dataclasses import dataclass

from ..messages import group_messages
from ..token_estimate import CHARS_PER_TOKEN
from .gate import compute_max_useful_tokens
from .summarizer import Draft, Material

_MAX_RANGES_CHARS = 400
"""The longest list of ranges, so that scattered ranges stay small."""


@dataclass(frozen=True)
class ListingSummarizer:
    """Counts and handles only, so nothing can be wrong or fail."""

    name: str = "listing"

    def summarize(self, material: Material) -> Draft:
        kinds = Counter(item.kind.value for item in material.removed_items)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        ranges = str(material.covers)
        if len(ranges) > _MAX_RANGES_CHARS and material.covers:
            ranges = f"#{material.covers.runs[0][0]}-{material.covers.runs[-1][1]}"
        return Draft(text=f"Earlier blocks left the view ({counts}). Recall them: {ranges}.")


NOTICE_SECTION = "Pruned"
HIDDEN_TEXT = "[Blocks were hidden, and are not shown.]"
"""The text if nothing else replaces what left."""


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
        removed = before + len(group_messages(material.removed_items))
        old = f"{removed:,} old {'message' if removed == 1 else 'messages'}"
        line = f"[Context Pruned: Removed {old} to stay within context limits]"
        text = f"{above}\n\n{line}" if above else line
        return Draft(text, {**material.previous_sections, NOTICE_SECTION: line})


_COUNT = re.compile(r"Removed ([\d,]{1,15})\b")


@dataclass(frozen=True)
class SizedSummarizer:
    """A text of about `tokens` tokens that no other summary of the session has."""

    tokens: int
    name: str = "sized"

    def summarize(self, material: Material) -> Draft:
        most = min(self.tokens, material.budget, compute_max_useful_tokens(material))
        # The number of covered positions grows with each summary.
        text = f"{len(material.covers)} " + "blocks " * most
        return Draft(text[: CHARS_PER_TOKEN * most])
