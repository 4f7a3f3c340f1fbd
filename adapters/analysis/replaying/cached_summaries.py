"""Provides a model's summaries for replays from a cache, which only grows on request."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ....domain.errors import MissingSummariesError
from ....domain.summaries.summarizer import Draft, Material
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file, make_cache_key

SummaryCache = CheckedCache[Draft]
"""The texts that models wrote, by a digest of the request."""

_REMEDY = "name another file with --cache, which replays take"
_DRAFT = TypeAdapter(Draft)


def open_summary_cache(path: Path | None) -> SummaryCache:
    """Open the cache in that file, or in the user's cache folder. Raises CacheFileError."""
    return CheckedCache(path or find_cache_file("summaries.db"), _DRAFT, _REMEDY)


@dataclass
class CachedSummaries:
    """Cached summaries of a model; missing ones are requested if that is allowed.

    The key covers all inputs of the text: what leaves, the earlier summary, the form and wording,
    the model, and the budget.
    """

    model: str
    wording: Any
    """Other instructions for the model, as JSON; a change of it asks for other texts."""
    cache: SummaryCache
    ask_model: Callable[[Material], Draft] | None = None
    """None if no model may be asked."""
    name: str = "llm"

    def summarize(self, material: Material) -> Draft:
        """Return the draft. Raises MissingSummariesError, or SummarizerFailedError as the model
        does.
        """
        key = make_cache_key([self.name, self.model, self.wording, _material_to_json(material)])
        known = self.cache.get(key)
        if known is not None:
            return known
        if self.ask_model is None:
            raise MissingSummariesError(
                f"a summary of {material.covers} by {self.model} is not in the cache "
                f"{self.cache.path}: `replay --allow-llm` asks for what is missing"
            )
        draft = self.ask_model(material)
        self.cache.put(key, draft)
        return draft


def _material_to_json(material: Material) -> Any:
    """Return all parts of a material that a text depends on, as JSON."""
    template = material.template
    return {
        "budget": [material.budget, material.turn_budget],
        "gone": [
            [item.position, item.turn, item.block.model_dump(mode="json", exclude={"origin"})]
            for item in material.removed_items
        ],
        "covers": material.covers.runs,
        "prefix": material.prefix.runs,
        "previous": material.previous,
        "sections": material.previous_sections,
        "digest": material.digest.model_dump(mode="json"),
        "instructions": material.instructions,
        "form": template and f"{type(template).__module__}.{template!r}",
    }
