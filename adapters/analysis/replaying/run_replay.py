"""Replays one stored session, and stores or writes the results that were asked for."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....domain.context_limit import LimitSource
from ....domain.errors import InvalidSettingError
from ....domain.hooks import Progress
from ....domain.policies.policy import Policy
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recording import RecordingCalibration
from ....projections.replay.replay import (
    ReplayCompaction,
    ReplayedCall,
    replay_recording,
)
from ...runtime.sessions.context_meter import find_context_limit
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.storage_errors import translate_storage_errors
from .deciders import SummaryOptions, make_decider, open_summary_cache
from .recordings import check_new_lineage, read_calibrated, store_decisions


@dataclass(frozen=True)
class Replay:
    """One session, replayed under one decider."""

    session: str
    namespace: str
    policy: str
    """The name as given; for a policy value, its name."""
    limit: int
    limit_source: LimitSource
    summarizer: str
    calls: tuple[ReplayedCall, ...]
    lineage: str | None = None
    """The lineage where the decisions were stored, if they were."""
    damaged: int = 0
    """Cached summaries that were damaged, and not used."""
    calibration: RecordingCalibration | None = None
    """Corrections from reported sizes; None if all tokens are estimates."""

    @property
    def compactions(self) -> tuple[ReplayCompaction, ...]:
        return tuple(one for sent in self.calls for one in sent.compactions)

    @property
    def futile_count(self) -> int:
        """The number of attempted compactions that removed nothing."""
        return sum(len(sent.futile) for sent in self.calls)

    @property
    def refused_count(self) -> int:
        """The number of prompts that exceeded the limit."""
        return sum(sent.is_refused for sent in self.calls)

    @property
    def tokens(self) -> int:
        """The tokens of all prompts."""
        return sum(sent.tokens for sent in self.calls)

    @property
    def peak_tokens(self) -> int:
        """The tokens of the largest prompt."""
        return max((sent.tokens for sent in self.calls), default=0)

    @property
    def unchanged_tokens(self) -> int:
        """The tokens of all prompts that the prompt before had at its start as well."""
        return sum(sent.unchanged for sent in self.calls)

    @property
    def summarizer_counts(self) -> dict[str, int]:
        """The number of summaries by summarizer name."""
        return dict(Counter(one.summary.summarizer for one in self.compactions if one.summary))

    @property
    def fallback_count(self) -> int:
        """The number of summaries that a fallback wrote."""
        return sum(bool(one.refused_drafts) for one in self.compactions)


def replay(
    session: StoredSession,
    policy: str | Policy,
    *,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    summarizer: str = "extractive",
    budget: int | None = None,
    model: str | None = None,
    lineage: str | None = None,
    cache: str | Path | None = None,
    allow_llm: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """Return what the model would have been sent at each recorded call, had `policy` decided.

    `policy` is a name or a value, `settings` its fields; `none` never compacts, `recorded` compacts
    as recorded. `limit` is the prompt's limit in tokens, `model` the agent's; `summarizer` is
    `extractive` or `llm`, `budget` the tokens of each summary. A model's summaries come
    from `cache`, a file, else from the one in the user's cache folder; with `allow_llm`, the model
    of the settings writes missing ones. `lineage` stores the decisions under a new name; nothing
    else is written. `progress` is called with how many calls are done, and of how many. Tokens are
    estimates.

    Raises PolicyFailedError if the policy raises, MissingSummariesError if a model would have to be
    asked, InvalidSettingError, NotFoundError and ConflictError.
    """
    summaries = SummaryOptions(
        summarizer,
        budget,
        cache=Path(cache) if cache is not None else None,
        allow_llm=allow_llm,
    )
    if limit is not None and limit < 1:
        raise InvalidSettingError(f"a limit cannot be {limit}; it is 1 token or more")
    with translate_storage_errors(session.log.context.name), ExitStack() as stack:
        if lineage is not None:
            check_new_lineage(session, lineage)
        found = find_context_limit(session, limit=limit, model=model)
        recording, decisions = read_calibrated(session)
        kept = None
        if summarizer == "llm":
            kept = stack.enter_context(open_summary_cache(summaries.cache))
        decider = make_decider(
            policy,
            recording,
            decisions,
            session.log.settings,
            summaries,
            kept=kept,
            settings=settings,
            limit=found.tokens,
            model=model,
            lineage=lineage or "replay",
        )
        name = policy if isinstance(policy, str) else policy.name
        if lineage is not None and not isinstance(decider, PolicyDecider):
            raise InvalidSettingError(f"{name!r} decides nothing new that a lineage could hold")
        calls: list[ReplayedCall] = []
        run = replay_recording(recording, decider, limit=found.tokens, lineage=lineage or "replay")
        for served, _ in run:
            calls.append(served)
            if progress:
                progress(served.call.number, len(recording.calls))
        if lineage is not None and isinstance(decider, PolicyDecider):
            store_decisions(session, lineage, decider.events)
    return Replay(
        session=session.key,
        namespace=session.namespace,
        policy=name,
        limit=found.tokens,
        limit_source=found.source,
        summarizer=summaries.summarizer,
        calls=tuple(calls),
        lineage=lineage,
        damaged=kept.damaged if kept else 0,
        calibration=recording.calibration,
    )
