"""Names what left and says nothing of it: the end of every chain of fallbacks."""

from collections import Counter
from dataclasses import dataclass

from .summariser import Draft, Material

LONGEST_RANGES = 400
"""Characters; what stands for a history of scattered survivors must stay small."""


@dataclass(frozen=True)
class Listing:
    """Counts and handles only, so there is nothing in it that could be wrong or fail."""

    name: str = "listing"

    def summarise(self, material: Material) -> Draft:
        kinds = Counter(item.kind.value for item in material.gone)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        ranges = str(material.covers)
        if len(ranges) > LONGEST_RANGES and material.covers:
            ranges = f"#{material.covers.runs[0][0]}-{material.covers.runs[-1][1]}"
        return Draft(text=f"Earlier blocks left the view ({counts}). Recall them: {ranges}.")
