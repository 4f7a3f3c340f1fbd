"""Who decides in a replay, by name: a policy on the settings' terms, the record, or nobody."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....domain.compaction import MAIN
from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import Policy
from ....domain.summaries.sized import Sized
from ....domain.summaries.summariser import Draft, Material, Summariser
from ....projections.replay.as_recorded import AsRecorded
from ....projections.replay.by_policy import ByPolicy
from ....projections.replay.decider import Decider, Never
from ....projections.replay.recorded_summaries import RecordedSummaries
from ....projections.replay.recording import Recording
from ....projections.replay.writing import Writers
from ...models.context_limits import facts_by
from ...runtime.compaction import by_settings
from ...runtime.compaction.cancellation import Cancellation
from ...runtime.compaction.summary_chain import SummaryChain
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import policy_named
from .recordings import decisions_of, recording_of

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from .cached_summaries import CachedSummaries

NOBODY = "none"
"""All of the history is sent, whatever it takes."""
AS_RECORDED = "recorded"
"""The compactions that took place: those of the session's source, and what was served since."""
SIZED = "sized"
"""Summaries of a size and without a text that says anything, to see what a size alone would do."""
SUMMARISERS = ("extractive", "recorded", "llm", SIZED)
"""Who writes the summaries of a replay."""


@dataclass(frozen=True)
class Summaries:
    """Where a replay has its summaries from, and what each may take."""

    summariser: str = "extractive"
    budget: int | None = None
    """Tokens of each; None leaves it to the policy."""
    cache: Path | None = None
    """Where what a model wrote is kept; None is a file in the user's cache folder."""
    allow_llm: bool = False
    """Whether a model may be asked for what is not kept."""
    counts_missing: bool = False
    """Whether to go on where a summary is missing, to count them all."""

    def __post_init__(self) -> None:
        if self.summariser not in SUMMARISERS:
            raise InvalidSettingError(
                f"no summariser {self.summariser!r} for a replay; there are "
                f"{', '.join(SUMMARISERS)}"
            )
        if self.budget is not None and self.budget < 1:
            raise InvalidSettingError(f"a budget cannot be {self.budget}; it is 1 token or more")
        if self.summariser == SIZED and self.budget is None:
            raise InvalidSettingError(f"summaries by {SIZED} need a budget: that is their size")
        if self.summariser != "llm" and (self.allow_llm or self.cache is not None):
            raise InvalidSettingError(
                "a cache, and leave to ask a model, are for summaries by llm, "
                f"and these are by {self.summariser}"
            )


def decider_named(
    session: StoredSession,
    policy: str | Policy,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    *,
    summariser: str | Summaries = "extractive",
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
    if policy in (NOBODY, AS_RECORDED) and settings:
        raise InvalidSettingError(f"{policy} has no settings, and {', '.join(settings)} was set")
    if policy == NOBODY:
        return Never()
    if policy == AS_RECORDED:
        return AsRecorded(decisions_of(session, MAIN), MAIN)
    known = session.log.settings
    order = by_settings.order_by(
        known,
        model,
        policy=policy_named(policy, settings or {}) if isinstance(policy, str) else policy,
        limit=limit,
        chain=SummaryChain(),  # a replay has writers of its own
    )
    if isinstance(summariser, str):
        summariser = Summaries(summariser, budget)
    return ByPolicy(
        order,
        recording or recording_of(session),
        writers_by(summariser, session, model),
        lineage=lineage,
        once_a_turn=known.compaction.once_a_turn,
    )


def writers_by(wanted: Summaries, session: StoredSession, model: str | None = None) -> Writers:
    """Who writes the summaries of a replay of the session."""
    match wanted.summariser:
        case "recorded":
            first: tuple[Summariser, ...] = (RecordedSummaries.of(decisions_of(session, MAIN)),)
        case "llm":
            first = (cached_by(wanted, session.log.settings, model),)
        case "sized":
            assert wanted.budget is not None, "was checked when it was made"
            # The policy says what a summary may take at most, as it does for any other.
            return Writers((Sized(wanted.budget),))
        case _:
            first = ()
    return Writers(first, wanted.budget)


def cached_by(wanted: Summaries, known: "Settings", model: str | None) -> "CachedSummaries":
    """The summaries of the model that section `summary` of the settings names."""
    from ...models.summarizers import form_prompts, prompts  # noqa: PLC0415 - who needs it pays for it
    from ...models.summarizers.llm import Llm  # noqa: PLC0415 - as above
    from .cached_summaries import CachedSummaries  # noqa: PLC0415 - as above
    from .summary_cache import summaries_in  # noqa: PLC0415 - as above

    if known.summary.model is None and model is None:
        raise InvalidSettingError(
            "a replay with summaries by llm asks the model of summary.model: set it, or name the "
            "agent's model"
        )
    llm = by_settings.llm_by(known, model)
    assert isinstance(llm, Llm), "a summariser is made by its name"
    name = llm.model
    assert isinstance(name, str), "settings name their model"
    # Nothing is served here that could be asked behind.
    llm = replace(llm, from_served_prefix=False)
    chain = SummaryChain(
        (llm,),
        time_limit_s=known.summary.time_limit,
        retries=known.summary.retries,
        backoff_s=known.summary.backoff,
        stands_in=False,
    )

    def ask(material: Material) -> Draft:
        return chain.written(material, lambda _: None, Cancellation()).draft

    return CachedSummaries(
        model=name,
        wording=[
            prompts.SYSTEM,
            prompts.headings(),
            prompts.turn_headings(),
            form_prompts.SYSTEM,
            [llm.from_originals, llm.by_form, llm.names_facts, llm.base_url],
        ],
        cache=summaries_in(wanted.cache),
        asks=ask if wanted.allow_llm else None,
        facts=facts_by(known, name),
        counts_missing=wanted.counts_missing,
    )
