"""The whole story of a session: every block and its fate, every call, every decision, in order."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast
from uuid import UUID

from ....domain.compaction import MAIN
from ....domain.counting.sizes import Sizes
from ....domain.errors import InvalidPositionError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session_events import BlocksRetracted, ModelCalled, ToolReturned
from ....projections.audit.eras import Era, eras_of
from ....projections.audit.fates import FateBook
from ....projections.audit.happenings import BlockSaid, Decided, Happening, ModelAsked, Recorded
from ....projections.audit.placing import placed
from ....projections.history_view import Coordinate
from ....projections.recorded import Recorded as Logged
from ....projections.replay.numbering import Numbered
from ...runtime.sessions.recall import block_of
from ...runtime.sessions.stored_session import StoredSession
from ...storage.compaction_sizes import measure_compactions
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.view_reader import ViewReader
from .audited_call import lineage_of, witness
from .call_index import find_calls
from .diffs import boundaries_of
from .owners import Owner, owners_of
from .showings import Showings
from .told_times import told_at

PAGE = 500


@dataclass(frozen=True, slots=True)
class _Placed:
    """A call, and its number."""

    number: int
    call: Numbered


class Audit:
    """A session as it was at one coordinate, from before any compaction; read page by page."""

    def __init__(
        self,
        session: StoredSession,
        lineage: str,
        at: int | None = None,
        lineage_version: int | None = None,
    ) -> None:
        self.session = session
        self._store = session.log.events
        self._chain = self._store.session_chain(session.namespace, session.key)
        reader = ViewReader(self._store, session.namespace, session.key, lineage)
        self.coordinate: Coordinate
        self.coordinate, state, _ = reader.coordinate(at, lineage_version)
        self._open = frozenset(state.open_calls.values())
        self.turns, self.blocks, self.tokens = state.turn, state.blocks, state.tokens
        self.retractions = self._retractions(state.retraction)
        self._counts: dict[str, dict[int, int]] = {}

    @property
    def position(self) -> int:
        """Where the audit ends."""
        return self.coordinate.position

    @cached_property
    def decisions(self) -> tuple[Event, ...]:
        """Everything that was decided on the lineage, those that it inherits included."""
        at = self.coordinate
        session = self.session
        chain = self._store.lineage_chain(session.namespace, session.key, at.lineage)
        log = self._store.read(chain, Ranges.span(1, at.lineage_version))
        return tuple(recorded.event for recorded in log)

    @property
    def compactions(self) -> dict[int, int]:
        """Which compaction of the lineage each boundary is, from 1 on, by its version."""
        return self.compactions_of(self.coordinate.lineage)

    def compactions_of(self, lineage: str) -> dict[int, int]:
        """The same of another lineage of the session."""
        if lineage not in self._counts:
            drawn = boundaries_of(self.session, lineage)
            self._counts[lineage] = {number: count for count, number in enumerate(drawn, 1)}
        return self._counts[lineage]

    @cached_property
    def sizes(self) -> dict[int, Sizes]:
        """What prompts took before and after each boundary of the lineage."""
        return measure_compactions(self._store, self.decisions)

    @cached_property
    def eras(self) -> tuple[Era, ...]:
        """Since when views begin where they do, oldest first."""
        return eras_of(self.decisions, self.retractions, self.position)

    @cached_property
    def fates(self) -> FateBook:
        """What became of each block."""
        return FateBook(self.eras, self.retractions, self.position)

    @cached_property
    def calls(self) -> Sequence[Numbered]:
        """The calls of all of the log, in order; the first has the number 1."""
        return find_calls(self.session).calls()

    def between(self, first: int = 1, last: int | None = None) -> Iterator[Happening]:
        """What happened from one position to another, both included; to the end without `last`.

        Calls and decisions stand behind the position that the session was at. Raises
        InvalidPositionError where nothing is there.
        """
        end = self.position if last is None else last
        if max(first, end) > self.position:
            raise InvalidPositionError(
                f"#{max(first, end)} does not exist: the audit ends at #{self.position}"
            )
        if first > end:
            raise InvalidPositionError(f"nothing lies between: #{first} comes after #{end}")
        return self._told(first, end)

    def _told(self, first: int, last: int) -> Iterator[Happening]:
        decided = [one for one in self._placed() if first <= one.place <= last]
        showings = Showings(self._store)
        for begin in range(first, last + 1, PAGE):
            end = min(last, begin + PAGE - 1)
            page = self._store.read(self._chain, Ranges.span(begin, end))
            asked = list(self._asked(begin, end, showings))
            for recorded in page:
                if (happening := self._happening(recorded)) is not None:
                    yield happening
                while asked and asked[0].placed.sees == recorded.position:
                    call = asked.pop(0)
                    while decided and self._comes_before(decided[0], call):
                        yield decided.pop(0)
                    yield call
                while decided and decided[0].place == recorded.position:
                    yield decided.pop(0)

    def _placed(self) -> Iterator[Decided]:
        return placed(self.decisions, self.position)

    def _comes_before(self, decided: Decided, call: ModelAsked) -> bool:
        """Whether a decision at the same place was made before the call was sent."""
        if decided.place != call.placed.sees:
            return decided.place < call.placed.sees
        reported = call.reported
        if reported and reported.fingerprint and reported.lineage == self.coordinate.lineage:
            # Of what cutbank served, the call says itself on which version.
            return decided.version <= reported.lineage_version
        return True

    def _happening(self, recorded: Logged) -> Happening | None:
        position, event = recorded.position, recorded.event
        said = block_of(recorded)
        if said is None:
            if position in self._records:
                return None  # its call tells of it
            return Recorded(position, event, is_superseded=isinstance(event, ModelCalled))
        return BlockSaid(
            position=position,
            turn=said.turn,
            block=said.block,
            tokens=recorded.tokens,
            at=told_at(event),
            became=self.fates.of(position),
            is_open=position in self._open,
            ends=event.shown if isinstance(event, ToolReturned) else None,
        )

    @cached_property
    def _records(self) -> frozenset[int]:
        """Where the records stand that count, of calls that the audit tells of."""
        told = (call.told for call in self.calls if self._is_told(call))
        return frozenset(one.originator_version for one in told if one)

    def _is_told(self, call: Numbered) -> bool:
        """Whether something of a call was in the log at the coordinate already."""
        at = [*call.answer[:1], *([call.told.originator_version] if call.told else [])]
        return call.sees <= self.position and min(at) <= self.position

    def _asked(self, first: int, last: int, showings: Showings) -> Iterator[ModelAsked]:
        """The calls that saw one of these positions last."""
        calls = self.calls
        begin = bisect_left(calls, first, key=lambda call: call.sees)
        end = bisect_right(calls, last, key=lambda call: call.sees)
        placed = [
            _Placed(number, calls[number - 1])
            for number in range(begin + 1, end + 1)
            if self._is_told(calls[number - 1])
        ]
        wanted = Ranges.of(witness(one.call) for one in placed)
        log = {recorded.position: recorded for recorded in self._store.read(self._chain, wanted)}
        for one in placed:
            yield self._call(one, log[witness(one.call)].event, showings)

    def _call(self, placed: _Placed, event: Event, showings: Showings) -> ModelAsked:
        call = placed.call
        reported = event if isinstance(event, ModelCalled) else None
        owner = self._owners[reported.originator_id] if reported else self._own
        lineage = lineage_of(event)
        version = reported.lineage_version if reported else None
        fingerprint = reported.fingerprint if reported else None
        shown = showings.of(owner, lineage, version, call.sees, fingerprint)
        return ModelAsked(placed.number, call, reported, lineage, version, shown)

    @property
    def _own(self) -> Owner:
        return Owner(self.session.namespace, self.session.key)

    @cached_property
    def _owners(self) -> dict[UUID, Owner]:
        return owners_of(self._store, *self._own)

    def _retractions(self, newest: int) -> list[BlocksRetracted]:
        """All that was taken back, oldest first; each names the one before it."""
        found: list[BlocksRetracted] = []
        at = newest
        while at:
            event = cast(BlocksRetracted, self._store.read(self._chain, Ranges.of([at]))[0].event)
            found.append(event)
            at = event.previous
        return found[::-1]


def audit(
    session: StoredSession,
    *,
    lineage: str = MAIN,
    at: int | None = None,
    lineage_version: int | None = None,
) -> Audit:
    """Return everything that happened up to a coordinate, from before any compaction, in order.

    `between()` of the answer yields it page by page: blocks with their status, calls with what they
    were sent and whether that is proved, decisions, and every other event. Sizes are estimated
    tokens. Raises NotFoundError for a position, lineage or version that does not exist.
    """
    with speaking_plainly(session.log.context.name):
        session.log.check_lineage(lineage)
        return Audit(session, lineage, at, lineage_version)
