"""Runs one shadow policy, which decides on its own lineage that no agent sees."""

from datetime import datetime

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_events import CompactBoundary, Summary
from ....domain.compaction_terms import CompactionTerms
from ....domain.policies.policy import Policy
from ....domain.ranges import Ranges
from ....projections.replay.policy_decider import ContinuedLineage, PolicyDecider
from ....projections.replay.recording import RecordedCall, Recording
from ....projections.replay.replay_fold import ReplayFold
from ....projections.view_content import RecordedEvent
from ...runtime.sessions.stored_session import StoredSession
from .recordings import read_decisions


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
        self._terms = terms
        self._once_a_turn = once_a_turn
        self._regrowth = regrowth
        self._log: list[RecordedEvent] = []
        self._going: tuple[ReplayFold, PolicyDecider] | None = None

    @property
    def policy(self) -> Policy:
        return self._terms.policy

    def decide_at(self, position: int) -> None:
        """Decide about the call that sees the session up to a position."""
        self._read(position)
        if self._going is None:
            self._going = self._resume(position)
        fold, decider = self._going
        fold.advance(position)
        decider.decide(fold, RecordedCall(0, position))
        fold.record_sent()
        self._store(decider)

    def _read(self, position: int) -> None:
        if position <= len(self._log):
            return
        events, session = self.session.log.events, self.session
        chain = events.find_session_chain(session.namespace, session.key)
        self._log += events.read(chain, Ranges.span(len(self._log) + 1, position))

    def _resume(self, position: int) -> tuple[ReplayFold, PolicyDecider]:
        """Return the fold and the decider after all decisions so far."""
        session, events = self.session, self.session.log.events
        opened = events.read_opening(session.namespace, session.key)
        own = events.find_session_chain(session.namespace, session.key).segments[1:]
        recording = Recording(
            key=session.key,
            namespace=session.namespace,
            log=self._log,
            source=opened.source,
            subject=opened.subject,
            forks=tuple(segment.first for segment in own),
        )
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
            self._terms,
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
