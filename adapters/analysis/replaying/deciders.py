"""Who decides in a replay, by name: a policy on the settings' terms, the record, or nobody."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import Policy
from ....domain.summaries.sized_summarizer import SizedSummarizer
from ....domain.summaries.summarizer import Draft, Material, Summarizer
from ....projections.replay.decider import Decider, NeverDecider
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recorded_decider import RecordedDecider
from ....projections.replay.recorded_summarizer import RecordedSummarizer
from ....projections.replay.recording import Recording
from ....projections.replay.replay_writers import ReplayWriters
from ...models.context_limits import find_facts
from ...runtime.compaction import from_settings
from ...runtime.compaction.cancellation import Cancellation
from ...runtime.compaction.summary_chain import SummaryChain
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import get_policy
from .recordings import read_decisions, read_recording

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from .cached_summaries import CachedSummaries

NO_POLICY = "none"
"""All of the history is sent, whatever it takes."""
RECORDED_POLICY = "recorded"
"""The compactions that took place: those of the session's source, and what was served since."""
SIZED_SUMMARIZER = "sized"
"""Summaries of a size and without a text that says anything, to see what a size alone would do."""
REPLAY_SUMMARIZERS = ("extractive", "recorded", "llm", SIZED_SUMMARIZER)
"""Who writes the summaries of a replay."""


@dataclass(frozen=True)
class SummaryOptions:
    """Where a replay has its summaries from, and what each may take."""

    summarizer: str = "extractive"
    budget: int | None = None
    """Tokens of each; None leaves it to the policy."""
    cache: Path | None = None
    """Where what a model wrote is kept; None is a file in the user's cache folder."""
    allow_llm: bool = False
    """Whether a model may be asked for what is not kept."""
    count_missing: bool = False
    """Whether to go on where a summary is missing, to count them all."""

    def __post_init__(self) -> None:
        if self.summarizer not in REPLAY_SUMMARIZERS:
            raise InvalidSettingError(
                f"no summarizer {self.summarizer!r} for a replay; there are "
                f"{', '.join(REPLAY_SUMMARIZERS)}"
            )
        if self.budget is not None and self.budget < 1:
            raise InvalidSettingError(f"a budget cannot be {self.budget}; it is 1 token or more")
        if self.summarizer == SIZED_SUMMARIZER and self.budget is None:
            raise InvalidSettingError(
                f"summaries by {SIZED_SUMMARIZER} need a budget: that is their size"
            )
        if self.summarizer != "llm" and (self.allow_llm or self.cache is not None):
            raise InvalidSettingError(
                "a cache, and leave to ask a model, are for summaries by llm, "
                f"and these are by {self.summarizer}"
            )


def make_decider(
    session: StoredSession,
    policy: str | Policy,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    *,
    summarizer: str | SummaryOptions = "extractive",
    budget: int | None = None,
    recording: Recording | None = None,
    lineage: str = "replay",
    model: str | None = None,
) -> Decider:
    """The decider `NAME[@PRESET]`, on the terms of the store's settings as an agent's loop has it.

    `none` never compacts, `recorded` does as it was done. `limit` is what a prompt may have, in
    tokens; None is what the settings say. `recording` saves reading the session again; `model` is
    the agent's, for policies that go by prices. A decider is for one replay. Raises
    InvalidSettingError for what there is not.
    """
    if policy in (NO_POLICY, RECORDED_POLICY) and settings:
        raise InvalidSettingError(f"{policy} has no settings, and {', '.join(settings)} was set")
    if policy == NO_POLICY:
        return NeverDecider()
    if policy == RECORDED_POLICY:
        return RecordedDecider(read_decisions(session, MAIN_LINEAGE), MAIN_LINEAGE)
    known = session.log.settings
    order = from_settings.make_compaction_request(
        known,
        model,
        policy=get_policy(policy, **(settings or {})) if isinstance(policy, str) else policy,
        limit=limit,
        chain=SummaryChain(),  # a replay has writers of its own
    )
    if isinstance(summarizer, str):
        summarizer = SummaryOptions(summarizer, budget)
    return PolicyDecider(
        order,
        recording or read_recording(session),
        choose_writers(summarizer, session, model),
        lineage=lineage,
        once_a_turn=known.compaction.once_a_turn,
    )


def choose_writers(
    wanted: SummaryOptions, session: StoredSession, model: str | None = None
) -> ReplayWriters:
    """Who writes the summaries of a replay of the session."""
    match wanted.summarizer:
        case "recorded":
            first: tuple[Summarizer, ...] = (
                RecordedSummarizer.from_decisions(read_decisions(session, MAIN_LINEAGE)),
            )
        case "llm":
            first = (open_cached_summaries(wanted, session.log.settings, model),)
        case "sized":
            assert wanted.budget is not None, "was checked when it was made"
            # The policy says what a summary may take at most, as it does for any other.
            return ReplayWriters((SizedSummarizer(wanted.budget),))
        case _:
            first = ()
    return ReplayWriters(first, wanted.budget)


def open_cached_summaries(
    wanted: SummaryOptions, known: "Settings", model: str | None
) -> "CachedSummaries":
    """The summaries of the model that section `summary` of the settings names."""
    from ...models.summarizers import prompts, template_prompts  # noqa: PLC0415 - who needs it pays for it
    from ...models.summarizers.llm_summarizer import LlmSummarizer  # noqa: PLC0415 - as above
    from .cached_summaries import CachedSummaries  # noqa: PLC0415 - as above
    from .summary_cache import open_summary_cache  # noqa: PLC0415 - as above

    if known.summary.model is None and model is None:
        raise InvalidSettingError(
            "a replay with summaries by llm asks the model of summary.model: set it, or name the "
            "agent's model"
        )
    llm = from_settings.make_llm_summarizer(known, model)
    assert isinstance(llm, LlmSummarizer), "a summarizer is made by its name"
    name = llm.model
    assert isinstance(name, str), "settings name their model"
    # Nothing is served here that could be asked behind.
    llm = replace(llm, from_served_prefix=False)
    chain = SummaryChain(
        (llm,),
        time_limit_s=known.summary.time_limit,
        retries=known.summary.retries,
        backoff_s=known.summary.backoff,
        has_fallback=False,
    )

    def ask(material: Material) -> Draft:
        return chain.write(material, lambda _: None, Cancellation()).draft

    return CachedSummaries(
        model=name,
        wording=[
            prompts.NOTES_SYSTEM_PROMPT,
            prompts.format_summary_headings(),
            prompts.format_turn_headings(),
            template_prompts.TEMPLATE_SYSTEM_PROMPT,
            [llm.from_originals, llm.by_form, llm.names_facts, llm.base_url],
        ],
        cache=open_summary_cache(wanted.cache),
        ask_model=ask if wanted.allow_llm else None,
        facts=find_facts(known, name),
        count_missing=wanted.count_missing,
    )
