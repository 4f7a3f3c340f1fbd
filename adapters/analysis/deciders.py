"""Makes the decider of a replay by name, with the cache of the summaries that models wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ...domain.compaction import MAIN_LINEAGE
from ...domain.errors import InvalidSettingError, MissingSummariesError
from ...domain.event import Event
from ...domain.models import ModelFacts
from ...domain.policies.policy import Policy
from ...domain.summaries.extractive import ExtractiveSummarizer
from ...domain.summaries.summarizer import Draft, Material, Summarizer
from ...projections.planned_compaction import PlannedCompaction
from ...projections.policy_decider import PolicyDecider, WriteSummary
from ...projections.recording import Recording
from ...projections.replay import Decider, NeverDecider, RecordedDecider
from ..runtime.compaction import from_settings
from ..runtime.compaction.background import Cancellation
from ..runtime.compaction.summary_chain import SummaryChain
from ..settings.policy_catalog import get_policy
from ..storage.databases.checked_cache import (
    SUMMARY_CACHE_FILE,
    CheckedCache,
    find_cache_file,
    make_cache_key,
)

if TYPE_CHECKING:
    from ..settings.settings import Settings

SummaryCache = CheckedCache[Draft]
"""The texts that models wrote, by a digest of the request."""

_REMEDY = "name another file with --cache, which replays take"
_DRAFT = TypeAdapter(Draft)


def open_summary_cache(path: Path | None) -> SummaryCache:
    """Open the cache in that file, or in the user's cache folder. Raises CacheFileError."""
    return CheckedCache(path or find_cache_file(SUMMARY_CACHE_FILE), _DRAFT, _REMEDY)


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
    llm: Summarizer | None = None
    """None if no model may be asked."""
    name: str = "llm"

    async def summarize(self, material: Material) -> Draft:
        """Return the draft. Raises MissingSummariesError, or SummarizerFailedError as the model
        does.
        """
        key = make_cache_key([self.name, self.model, self.wording, _material_to_json(material)])
        known = self.cache.get(key)
        if known is not None:
            return known
        if self.llm is None:
            raise MissingSummariesError(
                f"a summary of {material.covers} by {self.model} is not in the cache "
                f"{self.cache.path}: `replay --allow-llm` asks for what is missing"
            )
        draft = self.llm.summarize(material)
        draft = draft if isinstance(draft, Draft) else await draft
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


NO_POLICY = "none"
"""Sends the whole history, whatever its size."""
RECORDED_POLICY = "recorded"
"""The recorded compactions: those of the session's source, and those served since."""
REPLAY_SUMMARIZERS = ("extractive", "llm")


@dataclass(frozen=True)
class SummaryOptions:
    """The source of a replay's summaries, and their limit."""

    summarizer: str = "extractive"
    budget: int | None = None
    """Tokens of each; None leaves it to the policy."""
    cache: Path | None = None
    """The file with a model's texts; None is a file in the user's cache folder."""
    allow_llm: bool = False

    def __post_init__(self) -> None:
        if self.summarizer not in REPLAY_SUMMARIZERS:
            raise InvalidSettingError(
                f"no summarizer {self.summarizer!r} for a replay; there are "
                f"{', '.join(REPLAY_SUMMARIZERS)}"
            )
        if self.budget is not None and self.budget < 1:
            raise InvalidSettingError(f"a budget cannot be {self.budget}; it is 1 token or more")
        if self.summarizer != "llm" and (self.allow_llm or self.cache is not None):
            raise InvalidSettingError(
                "a cache, and leave to ask a model, are for summaries by llm, "
                f"and these are by {self.summarizer}"
            )


def make_decider(
    policy: str | Policy,
    recording: Recording,
    decisions: Sequence[Event],
    known: "Settings",
    summaries: SummaryOptions = SummaryOptions(),
    *,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    model: str | None = None,
    prices: ModelFacts | None = None,
    lineage: str = "replay",
    extractive: ExtractiveSummarizer | None = None,
    kept: SummaryCache | None = None,
) -> Decider:
    """Return the decider `NAME[@PRESET]` with the store's settings, as an agent's loop has it.

    `none` never compacts, `recorded` compacts as `decisions` did. `limit` is the prompt's limit in
    tokens; None is the limit of the settings. `model` is the agent's, for policies that use prices.
    `extractive` may be shared by replays of one session; `kept` is the cache of a model's
    summaries, if it is open already. Use a decider for one replay only.

    Raises InvalidSettingError for invalid names and values.
    """
    if policy in (NO_POLICY, RECORDED_POLICY) and settings:
        raise InvalidSettingError(f"{policy} has no settings, and {', '.join(settings)} was set")
    if policy == NO_POLICY:
        return NeverDecider()
    if policy == RECORDED_POLICY:
        return RecordedDecider(decisions, MAIN_LINEAGE)
    summarizer: Summarizer = extractive or ExtractiveSummarizer()
    if summaries.summarizer == "llm":
        summarizer = _make_cached_summaries(summaries, known, model, kept)
    terms = from_settings.make_compaction_request(
        known,
        model,
        policy=get_policy(policy, **(settings or {})) if isinstance(policy, str) else policy,
        limit=limit,
        prices=prices,
        chain=from_settings.make_summary_chain(known, first=(summarizer,)),
    )
    return PolicyDecider(
        terms,
        recording,
        make_summary_writer(recording, terms.chain, summaries.budget),
        lineage,
    )


def make_summary_writer(
    recording: Recording, chain: SummaryChain, budget: int | None = None
) -> WriteSummary:
    """Return what writes a replay's summaries: the chain, as for live compactions.

    `budget` is the most tokens of each, regardless of the policy; None leaves it to the policy.
    """
    cancellation = Cancellation()

    def write(planned: PlannedCompaction) -> tuple[Draft, str, tuple[str, ...]]:
        if budget is not None:
            material = replace(planned.material, budget=budget, turn_budget=0)
            planned = replace(planned, material=material)
        written = chain.write_planned(planned, recording.iter_events, cancellation)
        return written.draft, written.summarizer, tuple(map(str, written.refusals))

    return write


def _make_cached_summaries(
    wanted: SummaryOptions, known: "Settings", model: str | None, kept: SummaryCache | None
) -> CachedSummaries:
    """Return the summaries of the model in the `summary` section of the settings."""
    from ..models import prompts  # noqa: PLC0415 - start-up time
    from ..models.llm_summarizer import LlmSummarizer  # noqa: PLC0415 - as above

    if known.summary.model is None and model is None:
        raise InvalidSettingError(
            "a replay with summaries by llm asks the model of summary.model: set it, or name the "
            "agent's model"
        )
    llm = from_settings.make_summarizer("llm", known, model)
    assert isinstance(llm, LlmSummarizer), "a summarizer is made by its name"
    name = llm.model
    assert isinstance(name, str), "settings name their model"
    return CachedSummaries(
        model=name,
        wording=[
            prompts.NOTES_SYSTEM_PROMPT,
            prompts.CHECKLIST_TASK,
            prompts.SUMMARY_HEADINGS,
            prompts.TURN_HEADINGS,
            prompts.TEMPLATE_SYSTEM_PROMPT,
            [llm.from_originals, llm.by_form, llm.base_url],
        ],
        cache=kept or open_summary_cache(wanted.cache),
        llm=llm if wanted.allow_llm else None,
    )
