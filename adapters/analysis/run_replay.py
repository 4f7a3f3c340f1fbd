"""Reads a stored session and its decisions, replays it, and stores what was asked for."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from eventsourcing.persistence import IntegrityError

from ...domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    check_lineage_syntax,
)
from ...domain.context_limit import LimitSource
from ...domain.errors import ConflictError, InvalidSettingError
from ...domain.event import Event
from ...domain.hooks import Progress
from ...domain.policies.policy import Policy
from ...domain.ranges import Ranges
from ...domain.session_events import BlockAppended, ModelCalled, ToolCalled
from ...projections.policy_decider import PolicyDecider
from ...projections.recording import (
    CallCounter,
    RecordedCall,
    Recording,
    RecordingCalibration,
)
from ...projections.recording_calibration import calibrate_recording
from ...projections.replay import (
    ReplayCompaction,
    ReplayedCall,
    replay_recording,
)
from ..runtime.sessions.context_meter import find_context_limit
from ..runtime.sessions.stored_session import StoredSession
from ..storage.event_log.storage_errors import translate_storage_errors
from .deciders import SummaryOptions, make_decider, open_summary_cache

_PAGE_EVENTS = 2_000
_COUNTED_TOPICS = frozenset({BlockAppended.TOPIC, ModelCalled.TOPIC, ToolCalled.TOPIC})
_RESERVED_LINEAGES = frozenset({MAIN_LINEAGE, RECORDED_LINEAGE})
_calls: WeakKeyDictionary[StoredSession, tuple[int, tuple[RecordedCall, ...]]] = WeakKeyDictionary()
"""The calls of each session object, with the session's position when they were counted."""


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


def read_recording(session: StoredSession) -> Recording:
    """Return all events of a session."""
    log = session.log
    chain, opened = log.chain(), log.read_opening()
    events = log.events.read(chain, Ranges.span(1, log.position))
    return Recording(
        key=session.key,
        namespace=session.namespace,
        log={recorded.position: recorded for recorded in events},
        source=opened.source,
        subject=opened.subject,
        forks=tuple(segment.first for segment in chain.segments[1:]),
    )


def read_calls(session: StoredSession) -> tuple[RecordedCall, ...]:
    """Return all calls in the log, counted as replays count them; number 1 is the first.

    Only the content of blocks tells which of them are one answer, so this reads the whole log, but
    no tool results.
    """
    events, chain, head = session.log.events, session.log.chain(), session.position
    known = _calls.get(session)
    if known is not None and known[0] == head:
        return known[1]
    counter = CallCounter()
    for begin in range(1, head + 1, _PAGE_EVENTS):
        page = Ranges.span(begin, min(head, begin + _PAGE_EVENTS - 1))
        for stream, runs in chain.split_by_stream(page):
            for row in events.recorder.select_runs(stream, runs):
                if row.topic in _COUNTED_TOPICS:
                    counter.add(events.make_recorded(row))
                elif row.tokens:
                    counter.interrupt()
    calls = counter.list_calls()
    _calls[session] = head, calls
    return calls


def read_calibrated(session: StoredSession) -> tuple[Recording, list[Event]]:
    """Return a session with tokens as its provider reported them, and its recorded decisions.

    The decisions are those of the session's source, and those served since.
    """
    decisions = read_decisions(session, MAIN_LINEAGE)
    return calibrate_recording(read_recording(session), decisions, MAIN_LINEAGE), decisions


def read_decisions(
    session: StoredSession, lineage: str, *, without: Collection[type[Event]] = ()
) -> list[Event]:
    """Return all events of a lineage, including those that it continues.

    Events of types in `without` are not read: a late summary names each block that it replaces.
    """
    events = session.log.events
    chain = events.find_lineage_chain(session.namespace, session.key, lineage)
    version = events.read_lineage_state(chain)[0]
    unread = {event_class.TOPIC for event_class in without}
    return [
        events.make_recorded(row).event
        for stream, runs in chain.split_by_stream(Ranges.span(1, version))
        for row in events.recorder.select_runs(stream, runs)
        if row.topic not in unread
    ]


def check_new_lineage(session: StoredSession, lineage: str) -> None:
    """Raise InvalidSettingError, or ConflictError if the session has that lineage already."""
    if lineage in _RESERVED_LINEAGES:
        raise InvalidSettingError(
            f"a replay cannot be stored as lineage {lineage!r}: main is what agents are served, "
            "and recorded what happened; choose another name"
        )
    if lineage in session.log.lineages:
        raise _make_conflict(session, lineage)
    check_lineage_syntax(lineage)


def store_decisions(session: StoredSession, lineage: str, decisions: Sequence[Event]) -> None:
    """Append decisions to a lineage, all of them or none.

    Raises ConflictError if another process has stored other ones meanwhile.
    """
    events = session.log.events
    try:
        with events.lock_streams(events.find_lineage_id(session.namespace, session.key, lineage)):
            events.save(*decisions)
    except IntegrityError:
        raise _make_conflict(session, lineage) from None


def _make_conflict(session: StoredSession, lineage: str) -> ConflictError:
    return ConflictError(f"session {session.key!r} has a lineage {lineage!r} already: name another")
