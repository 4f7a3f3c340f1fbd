"""Runs shadow policies, which decide next to live sessions on lineages that no agent sees."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Condition, Thread, current_thread

from ....domain.compaction import CompactionState
from ....domain.compaction_terms import CompactionTerms
from ....domain.errors import ConflictError, InvalidSettingError
from ....domain.hooks import CompactionEventKind
from ....domain.policies.policy import Policy
from ....domain.ranges import Ranges
from ....projections.block_statuses import collect_boundaries
from ....projections.replay.policy_decider import PolicyDecider
from ....projections.replay.recording import RecordedCall
from ....projections.replay.replay_fold import ReplayFold
from ....projections.view_content import RecordedEvent
from ...runtime.compaction.event_sink import CompactionEventSink
from ...runtime.compaction.options import LoopOptions
from ...runtime.sessions.session_log import SessionLog
from ...runtime.sessions.store_context import StoreContext
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import get_policy
from .recordings import SHADOW_PREFIX, make_recording, read_decisions, store_decisions

_STOP_TIMEOUT_S = 5.0
"""Seconds that closing a store waits for a decision."""

logger = logging.getLogger("cutbank.compaction")


class Shadow:
    """A policy that decides call by call, as in a replay, and stores its decisions.

    Its lineage holds all its state, so another process can continue it.
    """

    def __init__(
        self, session: StoredSession, label: str, terms: CompactionTerms, options: LoopOptions
    ) -> None:
        self.session = session
        self.lineage = SHADOW_PREFIX + label
        self.terms = terms
        self.has_failed = False
        self._options = options
        self._log: list[RecordedEvent] = []
        self._going: tuple[ReplayFold, PolicyDecider] | None = None

    def decide_at(self, position: int) -> None:
        """Decide about the call that sees the session up to a position."""
        session, events = self.session, self.session.log.events
        if position > len(self._log):
            chain = events.find_session_chain(session.namespace, session.key)
            self._log += events.read(chain, Ranges.span(len(self._log) + 1, position))
        fold, decider = self._going = self._going or self._resume(position)
        fold.advance(position)
        decider.decide(fold, RecordedCall(0, position))
        fold.record_sent()
        decisions, decider.events = decider.events, []
        if decisions:
            try:
                store_decisions(session, self.lineage, decisions)
            except ConflictError:
                # Another process was first: continue from its position.
                self._going = None

    def _resume(self, position: int) -> tuple[ReplayFold, PolicyDecider]:
        """Return the fold and the decider after all decisions so far."""
        events = self.session.log.events
        recording = make_recording(self.session, self._log)
        fold = ReplayFold(recording, self.lineage)
        decisions = read_decisions(self.session, self.lineage)
        state = CompactionState()
        if decisions:
            chain = events.find_lineage_chain(recording.namespace, recording.key, self.lineage)
            version, state = events.read_lineage_state(chain, decisions[-1].originator_version)
            fold.boundaries |= collect_boundaries(decisions)
            fold.resume(position, state, version)
        decider = PolicyDecider(
            self.terms,
            recording,
            lineage=self.lineage,
            regrowth=self._options.regrowth,
            once_a_turn=self._options.once_a_turn,
            newest=decisions[-1] if decisions else None,
            state=state,
        )
        return fold, decider


class ShadowWorker:
    """One thread for the shadows of a store, which runs while there is work.

    An error in a shadow is logged and reported to listeners, once, and that shadow decides no more:
    its lineage stays as it is, and the agent's view is not affected.
    """

    def __init__(self) -> None:
        self.patience_s = _STOP_TIMEOUT_S
        self._changing = Condition()
        self._waiting: deque[tuple[Shadow, int]] = deque()
        self._thread: Thread | None = None
        self._is_ended = False

    def submit(self, shadow: Shadow, position: int) -> None:
        """Queue a decision about a call; return immediately, and raise nothing."""
        with self._changing:
            if self._is_ended or shadow.has_failed:
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
            try:
                if not shadow.has_failed:
                    shadow.decide_at(position)
            except Exception as error:  # there is no caller to raise it to
                shadow.has_failed = True
                name, key = shadow.lineage, shadow.session.key
                logger.exception("%s of session %r failed, and decides no more", name, key)
                _report_failure(shadow, error)


def _report_failure(shadow: Shadow, error: Exception) -> None:
    session = shadow.session
    sink = CompactionEventSink(
        session.log.listeners, session.key, session.namespace, shadow.lineage
    )
    sink.notify(
        CompactionEventKind.FAILED,
        policy=shadow.terms.policy.name,
        reason=str(error),
        error=type(error).__name__,
    )


def start_shadows(
    log: SessionLog, policies: Sequence[str | Policy], terms: CompactionTerms, options: LoopOptions
) -> Callable[[int], None]:
    """Start a shadow for each policy, with otherwise the agent's options.

    Returns a function that queues a decision of each about the call that is sent the session up to
    a position; it returns immediately, and raises nothing. Raises InvalidSettingError if a policy
    does not exist, or is named twice.
    """
    shadows: dict[str, Shadow] = {}
    for one in policies:
        label, policy = (one, get_policy(one)) if isinstance(one, str) else (one.name, one)
        if label in shadows:
            raise InvalidSettingError(f"{label} is there twice among the shadows: leave one out")
        # Shadows run in a background thread, where no user callback is called.
        own = replace(terms, policy=policy, tracked_files=None)
        shadows[label] = Shadow(StoredSession(log), label, own, options)
    worker = find_worker(log.context)

    def decide(position: int) -> None:
        for shadow in shadows.values():
            worker.submit(shadow, position)

    return decide


def find_worker(context: StoreContext) -> ShadowWorker:
    with context.starting:
        found = (work for work in context.background if isinstance(work, ShadowWorker))
        if (worker := next(found, None)) is None:
            worker = ShadowWorker()
            context.background.append(worker)
        return worker
