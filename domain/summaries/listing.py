"""Lists what left without describing it: the last resort of every chain of summarizers."""

from collections import Counter
from dataclasses import dataclass

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
