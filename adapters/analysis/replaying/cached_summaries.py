"""Provides a model's summaries for replays from a cache, which only grows on request."""

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ....domain.errors import MissingSummariesError, SummarizerFailedError
from ....domain.models import ModelFacts
from ....domain.session_events import Usage
from ....domain.summaries.summarizer import Draft, Material
from ....domain.token_estimate import estimate_text
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file, make_cache_key

AskModel = Callable[[Material], Draft]
SummaryCache = CheckedCache[Draft]
"""The texts that models wrote, by a digest of the request."""
_PROMPT_TOKENS = 1_500
"""About how many tokens a prompt adds to its material, for price estimates."""

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
    ask_model: AskModel | None = None
    """None if no model may be asked."""
    facts: ModelFacts | None = None
    """The prices of the model, if known."""
    count_missing: bool = False
    """Whether to continue at a missing text to count all; `check_missing` then raises."""
    missing: list[Usage] = field(default_factory=list)
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
            self.missing.append(_estimate_usage(material))
            if not self.count_missing:
                self.check_missing()
            raise SummarizerFailedError("its summary is not in the cache")
        draft = self.ask_model(material)
        self.cache.put(key, draft)
        return draft

    def check_missing(self) -> None:
        """Raise MissingSummariesError if a text was missing, which makes the replay invalid."""
        if not self.missing:
            return
        tokens = sum(usage.context or 0 for usage in self.missing)
        costs = [self.facts.compute_cost(usage) if self.facts else None for usage in self.missing]
        known = [cost for cost in costs if cost is not None]
        price = f"about ${sum(known):.2f}" if len(known) == len(costs) else "an unknown price"
        are = "1 summary is" if len(costs) == 1 else f"{len(costs):,} summaries are"
        raise MissingSummariesError(
            f"{are} not in the cache: to ask {self.model} would take about {tokens:,} tokens and "
            f"{price}; `replay --allow-llm` asks it; the cache is {self.cache.path}"
        )


def _material_to_json(material: Material) -> Any:
    """Return all parts of a material that a text depends on, as JSON."""
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
        "form": _name_form(material.template) if material.template else None,
    }


def _name_form(form: Any) -> str:
    """Return the class and the fields of a form."""
    name = f"{type(form).__module__}.{type(form).__qualname__}"
    return f"{name} {form!r}" if is_dataclass(form) else name


def _estimate_usage(material: Material) -> Usage:
    given = sum(item.tokens for item in material.removed_items) + estimate_text(
        material.previous or ""
    )
    return Usage(input=given + _PROMPT_TOKENS, output=material.total_budget)
