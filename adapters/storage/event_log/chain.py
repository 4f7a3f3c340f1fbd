"""Maps positions to streams when one continues another, as forks and lineages do, and reads them.

What was read once is cached, but for what a batch may undo.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, local
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import OperationalError

from ....domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    CompactionState,
)
from ....domain.compaction_events import CompactionOpened
from ....domain.errors import NotFoundError
from ....domain.event import MAX_COUNT, Aggregate, load_state
from ....domain.ranges import Ranges, Run
from ....domain.session import SessionState
from ....domain.session_events import RECORD_TOPICS, SessionOpened
from ....projections.view_content import RecordedEvent
from .event_mapper import EventMapper
from .log_names import remember
from .log_tables import StoredRow
from .recorder import Recorder

SessionName = tuple[str, str]
"""The namespace and key of a session."""
MAX_CACHED_STREAMS = 1_000


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """Positions `first` to `last` are in the stream `originator_id`."""

    originator_id: UUID
    first: int
    last: int | None
    """None in the newest segment, which still grows."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The stream of each position, oldest segment first."""

    segments: tuple[StreamSegment, ...]

    @classmethod
    def start(cls, originator_id: UUID) -> "Chain":
        """Return the chain of a stream that continues no other."""
        return cls((StreamSegment(originator_id, 1, None),))

    def cut_after(self, position: int) -> "Chain":
        """Return the part that a stream which leaves this one at `position` shares."""
        return Chain(
            tuple(
                replace(one, last=position if one.last is None else min(position, one.last))
                for one in self.segments
                if one.first <= position
            )
        )

    def continue_with(self, originator_id: UUID, after: int) -> "Chain":
        """Return this chain up to `after`, followed by another stream."""
        return Chain(
            (*self.cut_after(after).segments, StreamSegment(originator_id, after + 1, None))
        )

    def find_stream(self, position: int) -> UUID:
        for segment in reversed(self.segments):
            if position >= segment.first:
                return segment.originator_id
        raise ValueError(f"positions begin at 1, not {position}")

    def split_by_stream(self, positions: Ranges) -> Iterator[tuple[UUID, tuple[Run, ...]]]:
        """Yield the positions by stream, in order."""
        for segment in self.segments:
            last = 2**62 if segment.last is None else segment.last
            inside = positions & Ranges.span(segment.first, last)
            if inside:
                yield segment.originator_id, inside.runs


@dataclass(slots=True)
class LogCache:
    """What is cached of the log."""

    open: dict[UUID, Aggregate[Any]] = field(default_factory=dict)
    # Immutable once stored.
    chains: dict[UUID, Chain] = field(default_factory=dict)
    openings: dict[UUID, SessionOpened | CompactionOpened] = field(default_factory=dict)
    carried: dict[tuple[UUID, int], dict[str, Any]] = field(default_factory=dict)
    generations: dict[SessionName, int] = field(default_factory=dict)
    """The newest one known of each session, which another process may have deleted."""


class BatchState(local):
    """The batch that each thread is in."""

    cache: LogCache | None = None


def make_missing_error(key: str) -> NotFoundError:
    return NotFoundError(f"session {key!r} was deleted, or never opened")


class StreamReader:
    """Finds sessions and lineages by name, and reads them at any version by a few look-ups.

    A thread in a batch has a cache of its own.
    """

    recorder: Recorder
    mapper: EventMapper
    _changing: Lock
    """Held while open streams are added to the caches or dropped."""
    _shared: LogCache
    _batch: BatchState
    # Each store remembers the ids that it derived; an append needs some of them.
    _derive_session_id: Callable[[str, str, int], UUID]
    _derive_lineage_id: Callable[[str, str, str, int], UUID]

    @property
    def is_batching(self) -> bool:
        """Whether this thread is in a batch."""
        return self._batch.cache is not None

    @property
    def _cache(self) -> LogCache:
        return self._batch.cache or self._shared

    def find_generation(self, namespace: str, key: str) -> int:
        """Return how many sessions of that name were deleted."""
        if (known := self._cache.generations.get((namespace, key))) is None:
            known = self.recorder.select_generation(namespace, key)
            remember(self._cache.generations, (namespace, key), known)
        return known

    def find_session_id(self, namespace: str, key: str) -> UUID:
        """Return the id of the session of that name, or of the next one if there is none."""
        return self._derive_session_id(namespace, key, self.find_generation(namespace, key))

    def find_lineage_id(self, namespace: str, key: str, lineage: str) -> UUID:
        """Return the id of a lineage of the session of that name."""
        generation = self.find_generation(namespace, key)
        return self._derive_lineage_id(namespace, key, lineage, generation)

    def find_session_chain(self, namespace: str, key: str, generation: int | None = None) -> Chain:
        """Return where a session's positions are; a fork's begin in its parent.

        `generation` is that of a deleted session; without it, it is the current one.
        """
        if generation is None:
            generation = self.find_generation(namespace, key)
        id = self._derive_session_id(namespace, key, generation)
        if (chain := self._cache.chains.get(id)) is None:
            chain = Chain.start(id)
            if fork := self.read_opening(namespace, key, generation).fork:
                parent = self.find_session_chain(fork.namespace, fork.key, fork.generation)
                chain = parent.continue_with(id, fork.position)
            remember(self._cache.chains, id, chain)
        return chain

    def read_opening(
        self, namespace: str, key: str, generation: int | None = None
    ) -> SessionOpened:
        if generation is None:
            generation = self.find_generation(namespace, key)
        opened = self._find_opening(self._derive_session_id(namespace, key, generation))
        if opened is None:
            raise make_missing_error(key)
        return cast(SessionOpened, opened)

    def find_lineage_chain(
        self, namespace: str, key: str, lineage: str, generation: int | None = None
    ) -> Chain:
        """Return where a lineage's versions are; `generation` as in `find_session_chain`.

        A lineage that was never written to continues the one on which it would open: in a fork the
        parent's lineage of that name, and for `main` otherwise the recorded one.
        """
        if generation is None:
            generation = self.find_generation(namespace, key)
        id = self._derive_lineage_id(namespace, key, lineage, generation)
        if chain := self._cache.chains.get(id):
            return chain
        if first := self._find_opening(id):
            chain = Chain.start(id)
            if base := cast(CompactionOpened, first).base:
                opened = self.read_lineage_opening(base.originator_id)
                parent = self.find_lineage_chain(
                    opened.namespace, opened.key, opened.lineage, opened.generation
                )
                chain = parent.continue_with(id, base.version)
            remember(self._cache.chains, id, chain)
            return chain
        fork = self.read_opening(namespace, key, generation).fork
        if fork and lineage == fork.lineage:
            parent = self.find_lineage_chain(
                fork.namespace, fork.key, fork.lineage, fork.generation
            )
            return parent.cut_after(fork.lineage_version)
        if lineage == MAIN_LINEAGE and (
            (fork is not None and fork.lineage == RECORDED_LINEAGE)
            or self._find_opening(
                self._derive_lineage_id(namespace, key, RECORDED_LINEAGE, generation)
            )
        ):
            return self.find_lineage_chain(namespace, key, RECORDED_LINEAGE, generation)
        return Chain(())

    def read_lineage_opening(self, originator_id: UUID) -> CompactionOpened:
        if (opened := self._find_opening(originator_id)) is None:
            raise NotFoundError(f"stream {originator_id} does not exist")
        return cast(CompactionOpened, opened)

    def read_lineage_state(
        self, chain: Chain, at: int | None = None
    ) -> tuple[int, CompactionState]:
        """Return a lineage's version, at most `at`, and its state there."""
        version, carried = self._read_newest(chain, at)
        return version, load_state(CompactionState, carried)

    def read(
        self, chain: Chain, positions: Ranges, *, with_records: bool = False
    ) -> list[RecordedEvent]:
        """Return the events at these positions, without those of records unless they are wanted.

        Records are no part of the conversation, and may be large.
        """
        return [
            self.make_recorded(row)
            for originator, runs in chain.split_by_stream(positions)
            for row in self.recorder.select_runs(originator, runs)
            if with_records or row.topic not in RECORD_TOPICS
        ]

    def make_recorded(self, row: StoredRow) -> RecordedEvent:
        event = self.mapper.to_domain_event(row)
        return RecordedEvent(row.originator_version, event, row.tokens, row.digest)

    def read_head(self, chain: Chain, at: int | None = None) -> tuple[int, SessionState]:
        """Return a session's position, at most `at`, and its state there."""
        version, carried = self._read_newest(chain, at)
        if not version:
            raise NotFoundError("a session's positions begin at 1")
        state = load_state(SessionState, carried)
        if state.deleted:  # by another process
            self.forget_streams(*(segment.originator_id for segment in chain.segments))
            raise NotFoundError("the session was deleted: open it again to begin another one")
        return version, state

    def _read_newest(self, chain: Chain, at: int | None) -> tuple[int, dict[str, Any]]:
        """Return the newest version up to `at` and its stored state; 0 if there is none."""
        at = None if at is None else min(at, MAX_COUNT)  # databases take 64 bits
        for segment in reversed(chain.segments):
            last = segment.last if at is None else min(at, segment.last or at)
            if last is not None and last < segment.first:
                continue
            id = segment.originator_id
            if last and (known := self._cache.carried.get((id, last))) is not None:
                return last, known
            if head := self.recorder.select_head(id, last):
                version, carried = head[:2]
                if version == last:
                    # The state stored with an event is as immutable as the event.
                    remember(self._cache.carried, (id, version), carried)
                return version, carried
        return 0, {}

    def _find_opening(self, id: UUID) -> SessionOpened | CompactionOpened | None:
        """Return a stream's first event; None if there is no such stream."""
        if opened := self._cache.openings.get(id):
            return opened
        rows: Sequence[StoredRow] = self.recorder.select_events(id, limit=1)
        if not rows:
            return None
        first = self.mapper.to_domain_event(rows[0])
        if not isinstance(first, SessionOpened | CompactionOpened):
            raise OperationalError(f"malformed: stream {id} does not begin with its opening")
        remember(self._cache.openings, id, first)
        return first

    def forget_streams(self, *ids: UUID) -> None:
        """Drop what is cached of streams that were deleted, and which sessions have which name."""
        for cache in (self._cache, self._shared):
            cache.generations.clear()
            cache.carried.clear()
            for id in ids:
                cache.chains.pop(id, None)
                cache.openings.pop(id, None)
        for id in ids:
            self.evict(id)

    def evict(self, id: UUID) -> None:
        """Drop a stream from the cache, so that it is read again."""
        with self._changing:
            self._cache.open.pop(id, None)
