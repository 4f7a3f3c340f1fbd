"""Runs shadow policies, which decide next to live sessions on lineages that no agent sees."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Condition, Thread, current_thread
from weakref import WeakSet

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_events import CompactBoundary, Summary
from ....domain.compaction_terms import CompactionTerms
from ....domain.errors import InvalidSettingError
from ....domain.hooks import CompactionEventKind
from ....domain.policies.policy import Policy
from ....domain.ranges import Ranges
from ....projections.replay.policy_decider import ContinuedLineage, PolicyDecider
from ....projections.replay.recorded_calls import RecordedCall
from ....projections.replay.replay_fold import ReplayFold
from ....projections.view_content import RecordedEvent
from ...runtime.compaction.event_sink import CompactionEventSink
from ...runtime.compaction.options import LoopOptions
from ...runtime.sessions.session_log import SessionLog
from ...runtime.sessions.store_context import StoreContext
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import get_policy
from .recordings import SHADOW_PREFIX, make_recording, read_decisions

_STOP_TIMEOUT_S = 5.0
"""Seconds that closing a store waits for a decision."""

logger = logging.getLogger("cutbank.compaction")


class Shadow:
    """A policy that decides call by call, as in a replay, and stores its decisions.

    Its lineage holds all its state, so another process can continue it.
    """

    def __init__(
        self,
        session: StoredSession,
        lineage: str,
        terms: CompactionTerms,
        *,
        once_a_turn: bool = False,
        regrowth: float,
    ) -> None:
        self.session = session
        self.lineage = lineage
        self.terms = terms
        self._once_a_turn = once_a_turn
        self._regrowth = regrowth
        self._log: list[RecordedEvent] = []
        self._going: tuple[ReplayFold, PolicyDecider] | None = None

    def decide_at(self, position: int) -> None:
        """Decide about the call that sees the session up to a position."""
        if position > len(self._log):
            events, session = self.session.log.events, self.session
            chain = events.find_session_chain(session.namespace, session.key)
            self._log += events.read(chain, Ranges.span(len(self._log) + 1, position))
        if self._going is None:
            self._going = self._resume(position)
        fold, decider = self._going
        fold.advance(position)
        decider.decide(fold, RecordedCall(0, position))
        fold.record_sent()
        self._store(decider)

    def _resume(self, position: int) -> tuple[ReplayFold, PolicyDecider]:
        """Return the fold and the decider after all decisions so far."""
        session, events = self.session, self.session.log.events
        recording = make_recording(session, self._log)
        fold = ReplayFold(recording, self.lineage)
        begun = None
        if decisions := read_decisions(session, self.lineage):
            chain = events.find_lineage_chain(session.namespace, session.key, self.lineage)
            version, state = events.read_lineage_state(chain)
            last: datetime = decisions[-1].timestamp
            begun = ContinuedLineage(version, state, last)
            summaries = {one.boundary: one for one in decisions if isinstance(one, Summary)}
            for one in decisions:
                if isinstance(one, CompactBoundary):
                    fold.add_boundary(one, summaries.get(one.originator_version))
            fold.resume(position, state, version)
        decider = PolicyDecider(
            self.terms,
            recording,
            lineage=self.lineage,
            regrowth=self._regrowth,
            once_a_turn=self._once_a_turn,
            continued=begun,
        )
        return fold, decider

    def _store(self, decider: PolicyDecider) -> None:
        news, decider.events = decider.events, []
        if not news:
            return
        session, events = self.session, self.session.log.events
        with events.lock_streams(derive_lineage_id(session.namespace, session.key, self.lineage)):
            try:
                events.save(*news)
            except IntegrityError:
                # Another process was first: continue from its position.
                self._going = None


class ShadowWorker:
    """One thread, which runs while there is work.

    An error in a shadow is logged and reported to listeners, once, and that shadow is dropped: its
    lineage stays as it is, and the agent's view is not affected.
    """

    def __init__(self, patience_s: float = _STOP_TIMEOUT_S) -> None:
        self.patience_s = patience_s
        self._changing = Condition()
        self._waiting: deque[tuple[Shadow, int]] = deque()
        self._thread: Thread | None = None
        self._dropped = WeakSet[Shadow]()
        self._is_ended = False

    def submit(self, shadow: Shadow, position: int) -> None:
        """Queue a decision about a call; return immediately, and raise nothing."""
        with self._changing:
            if self._is_ended or shadow in self._dropped:
                return
            self._waiting.append((shadow, position))
            if self._thread is None:
                self._thread = Thread(target=self._work, name="cutbank-shadows", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for all shadows to decide; return whether they have."""
        with self._changing:
            return self._changing.wait_for(lambda: self._thread is None, timeout_s)

    def stop(self) -> None:
        """End after the current decision and drop queued calls.

        A policy that does not return is abandoned; its decision is not stored.
        """
        with self._changing:
            self._is_ended = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(self.patience_s)
            if thread.is_alive():
                logger.warning(
                    "the policy of a shadow is still deciding: its thread is left running"
                )

    def _work(self) -> None:
        while True:
            with self._changing:
                if not self._waiting:
                    self._thread = None
                    self._changing.notify_all()
                    return
                shadow, position = self._waiting.popleft()
                if shadow in self._dropped:
                    continue
            try:
                shadow.decide_at(position)
            except Exception as error:  # there is no caller to raise it to
                session = shadow.session
                logger.exception(
                    "%s of session %r failed, and decides no more", shadow.lineage, session.key
                )
                with self._changing:
                    self._dropped.add(shadow)
                sink = CompactionEventSink(
                    session.log.listeners, session.key, session.namespace, shadow.lineage
                )
                sink.notify(
                    CompactionEventKind.FAILED,
                    policy=shadow.terms.policy.name,
                    reason=str(error),
                    error=type(error).__name__,
                )


@dataclass(frozen=True)
class LoopShadows:
    """The shadow policies of one loop, decided in the thread of their store."""

    watch: ShadowWorker
    shadows: Sequence[Shadow]

    def decide(self, position: int) -> None:
        """Queue a decision about a call for each shadow; return immediately, and raise nothing."""
        for shadow in self.shadows:
            self.watch.submit(shadow, position)


def start_shadows(
    log: SessionLog, policies: Sequence[str | Policy], terms: CompactionTerms, options: LoopOptions
) -> LoopShadows:
    """Start a shadow for each policy, with otherwise the agent's options.

    Raises InvalidSettingError if a policy does not exist, or is named twice.
    """
    shadows: dict[str, Shadow] = {}
    for one in policies:
        label, policy = (one, get_policy(one)) if isinstance(one, str) else (one.name, one)
        if label in shadows:
            raise InvalidSettingError(f"{label} is there twice among the shadows: leave one out")
        # Shadows run in a background thread, where no user callback is called.
        own = replace(terms, policy=policy, tracked_files=None)
        shadows[label] = Shadow(
            StoredSession(log),
            SHADOW_PREFIX + label,
            own,
            once_a_turn=options.once_a_turn,
            regrowth=options.regrowth,
        )
    return LoopShadows(shadow_watch_of(log.context), tuple(shadows.values()))


def shadow_watch_of(context: StoreContext) -> ShadowWorker:
    with context.starting:
        for work in context.background:
            if isinstance(work, ShadowWorker):
                return work
        watch = ShadowWorker()
        context.background.append(watch)
        return watch
