"""Names what left and says nothing of it: the end of every chain of fallbacks."""

from collections import Counter
from dataclasses import dataclass

from .summarizer import Draft, Material

_MAX_RANGES_CHARS = 400
"""Characters; what stands for a history of scattered survivors must stay small."""


@dataclass(frozen=True)
class ListingSummarizer:
    """Counts and handles only, so there is nothing in it that could be wrong or fail."""

    name: str = "listing"

    def summarize(self, material: Material) -> Draft:
        kinds = Counter(item.kind.value for item in material.removed_items)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        ranges = str(material.covers)
        if len(ranges) > _MAX_RANGES_CHARS and material.covers:
            ranges = f"#{material.covers.runs[0][0]}-{material.covers.runs[-1][1]}"
        return Draft(text=f"Earlier blocks left the view ({counts}). Recall them: {ranges}.")
