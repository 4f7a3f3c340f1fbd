"""Opens, saves and reads all streams, as an eventsourcing application."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock, RLock, local
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import OperationalError
from eventsourcing.utils import Environment, EnvType, get_topic

from ....domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    Compaction,
    CompactionState,
    derive_lineage_id,
)
from ....domain.compaction_events import CompactionOpened, LineageBase
from ....domain.errors import NotFoundError, StorageError
from ....domain.event import MAX_COUNT, Aggregate, Event, load_state
from ....domain.ranges import Ranges
from ....domain.session import Session, SessionState, derive_session_id
from ....domain.session_events import RECORD_TOPICS, RecordEvent, SessionOpened
from ....projections.view_content import RecordedEvent, TokenCounts
from .chain import Chain
from .database_addresses import open_recorder
from .event_mapper import OPENING_TOPICS, EventMapper, matches_keyed_hash
from .log_tables import AppendKey, ImportRow, RecordRow, Segment, StoredRow, Stream
from .recorder import Recorder

_K = TypeVar("_K")
_V = TypeVar("_V")
_A = TypeVar("_A", bound=Aggregate[Any])
SessionName = tuple[str, str]
"""The namespace and key of a session."""
MAX_CACHED_STREAMS = 1_000
LOCK_COUNT = 256
"""Streams that share a lock wait for each other, which is harmless."""


def get_utc_now() -> datetime:
    return datetime.now(UTC)


class EventStore(Application[UUID]):
    """Sessions and lineages by name; every stream opens in O(1), at any version.

    Aggregates are cached and shared by this process's threads: a thread that decides on a stream
    must hold `lock_streams`. What fails to be saved is dropped: a cached aggregate never holds an
    event that is not stored.
    """

    env: ClassVar[dict[str, str]] = {"MAPPER_TOPIC": get_topic(EventMapper)}
    recorder: Recorder
    mapper: EventMapper  # pyright: ignore[reportIncompatibleVariableOverride] - made by env

    def __init__(
        self, env: EnvType | None = None, clock: Callable[[], datetime] = get_utc_now
    ) -> None:
        super().__init__(env)
        self.clock = clock
        self.mapper.secret_of = lambda subject: self.recorder.names.subject(subject)[1]
        self.mapper.body_of = self.recorder.select_body
        self._deciding = tuple(RLock() for _ in range(LOCK_COUNT))
        self._opening = Lock()
        self._shared = _LogCache()
        self._batch = _Batch()
        self.token_counts = TokenCounts()
        """Counts blocks more accurately than the stored estimates."""

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Use only the given settings: the process's environment may be another application's."""
        return Environment(name, {**type(self).env, **(env or {})})

    def construct_recorder(self) -> Recorder:
        return open_recorder(self.env.get("DATABASE", ""), self.env.get("SYNCHRONOUS", "FULL"))

    def close(self) -> None:
        super().close()
        self.recorder.close()

    def leave_in_child(self) -> None:
        """Drop the decisions that other threads of the parent may have been making."""
        self._deciding = tuple(RLock() for _ in range(LOCK_COUNT))
        self._opening = Lock()
        self._shared.open.clear()
        self._batch = _Batch()
        self.recorder.reopen_in_child()

    def lock_streams(self, *ids: UUID) -> AbstractContextManager[Any]:
        """Lock these streams from reading to saving, against other threads of this process.

        Streams that are decided on together must be locked in one call, to avoid deadlocks. Against
        other processes, and batches, the versions of stored events protect.
        """
        if self.is_batching:
            return nullcontext()
        if len(ids) == 1:
            return self._deciding[hash(ids[0]) % LOCK_COUNT]
        held = ExitStack()
        for number in sorted({hash(id) % LOCK_COUNT for id in ids}):
            held.enter_context(self._deciding[number])
        return held

    @property
    def is_batching(self) -> bool:
        """Whether this thread is in a batch."""
        return self._batch.cache is not None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Store all that this thread saves in one transaction, or nothing; its reads see it.

        The thread then works as another process would: with a cache of its own, which holds what is
        not committed and goes with the batch, and without locks. A batch in another one is a part
        of it that is stored whole or not at all.
        """
        outer = self._batch.cache
        inner = self._batch.cache = _LogCache()
        try:
            with self.recorder.batch():
                yield
        finally:
            self._batch.cache = outer
            for id in inner.open:
                self.evict(id)

    def refuse_batch(self, what: str) -> None:
        """Raise StorageError in a batch, which must not last, nor lead to what may be undone."""
        if self.is_batching:
            raise StorageError(f"{what} cannot be part of a batch: do it before or after")

    @property
    def _cache(self) -> "_LogCache":
        return self._batch.cache or self._shared

    def find_generation(self, namespace: str, key: str) -> int:
        """Return how many sessions of that name were deleted."""
        if (known := self._cache.generations.get((namespace, key))) is None:
            known = self.recorder.select_generation(namespace, key)
            _remember(self._cache.generations, (namespace, key), known)
        return known

    def find_session_id(self, namespace: str, key: str) -> UUID:
        """Return the id of the session of that name, or of the next one if there is none."""
        return derive_session_id(namespace, key, self.find_generation(namespace, key))

    def find_lineage_id(self, namespace: str, key: str, lineage: str) -> UUID:
        """Return the id of a lineage of the session of that name."""
        generation = self.find_generation(namespace, key)
        return derive_lineage_id(namespace, key, lineage, generation)

    def load_session(self, namespace: str, key: str) -> Session | None:
        """Return the current session of that name for a decision; None if there is none."""
        found = self._load_stream(self.find_session_id(namespace, key), Session, SessionState)
        if found and found.state.deleted:  # by another process
            self.forget_streams(found.id)
            return self.load_session(namespace, key)
        return found

    def load_compaction(self, namespace: str, key: str, lineage: str) -> Compaction | None:
        """Return the lineage's own current stream; None if it was never written to."""
        return self.load_lineage(self.find_lineage_id(namespace, key, lineage))

    def load_lineage(self, id: UUID) -> Compaction | None:
        return self._load_stream(id, Compaction, CompactionState)

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

    def open_compaction(self, namespace: str, key: str, lineage: str) -> Compaction:
        """Return the lineage's own stream, or a new, unsaved one."""
        if found := self.load_compaction(namespace, key, lineage):
            return found
        chain = self.find_lineage_chain(namespace, key, lineage)
        version, state = self.read_lineage_state(chain)
        base = None
        if version:
            originator = chain.find_stream(version)
            name = self.read_lineage_opening(originator).lineage
            base = LineageBase(originator_id=originator, lineage=name, version=version)
        return Compaction.open(
            namespace,
            key,
            lineage,
            clock=self.clock,
            subject=self.find_subject(namespace, key),
            base=base,
            inherited=state,
            generation=self.find_generation(namespace, key),
        )

    def _load_stream(
        self, id: UUID, stream_class: type[_A], state_class: type[tuple[Any, ...]]
    ) -> _A | None:
        found = cast("_A | None", self._cache.open.get(id))
        # A decision that failed halfway leaves unsaved events behind.
        if found and not found._pending:  # noqa: SLF001
            return found
        head = self.recorder.select_head(id)
        if head is None:
            return None
        version, carried, subject = head
        aggregate = stream_class(
            id,
            version=version,
            state=load_state(state_class, carried),
            subject=subject,
            clock=self.clock,
        )
        self._remember(aggregate)
        return aggregate

    def find_subject(self, namespace: str, key: str) -> str:
        head = self.recorder.select_head(self.find_session_id(namespace, key))
        if head is None:
            raise NotFoundError(f"session {key!r} was never opened")
        return head[2]

    def _remember(self, aggregate: Aggregate[Any]) -> None:
        with self._opening:
            known = self._cache.open
            known[aggregate.id] = aggregate
            # The oldest is dropped first; if it is still in use, it is soon read again.
            while len(known) > MAX_CACHED_STREAMS:
                del known[next(iter(known))]

    def refresh(self, aggregate_id: UUID) -> None:
        """Drop the cached stream if another process has written to it since."""
        cached = self._cache.open.get(aggregate_id)
        if cached is not None:
            head = self.recorder.select_head(aggregate_id)
            if head is None or head[0] != cached.version:
                self.evict(aggregate_id)

    def set_clock(self, clock: Callable[[], datetime]) -> None:
        """Use another clock for the times of decisions."""
        with self._opening:
            self.clock = clock
            # Aggregates hold the clock with which they were opened.
            self._cache.open.clear()

    def evict(self, id: UUID) -> None:
        """Drop a stream from the cache, so that it is read again."""
        with self._opening:
            self._cache.open.pop(id, None)

    def save(  # type: ignore[override] # narrower: these are the only types
        self,
        *aggregates: Aggregate[Any] | Event | None,
        keys: Sequence[AppendKey] = (),
        imports: Sequence[ImportRow] = (),
        segments: Sequence[Segment] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store all pending events in one transaction, or none; return notification ids.

        eventsourcing's own `save` costs more than the insert (runtime protocol checks, three
        objects per event), and it would keep an aggregate whose events were refused.
        """
        events: list[Event] = []
        for thing in aggregates:
            if isinstance(thing, Event):
                events.append(thing)
            elif thing is not None:
                events += thing.collect_events()
        if not (events or keys or imports or segments):
            return []
        try:
            ids = self.recorder.insert_events(
                [self.mapper.to_stored_event(event) for event in events],
                keys=keys,
                imports=imports,
                segments=segments,
                streams=_find_opened_streams(events),
                records=_find_records(events),
            )
        except BaseException:
            for event in events:
                self.evict(event.originator_id)
            raise
        for thing in aggregates:
            if isinstance(thing, Aggregate) and thing.id not in self._cache.open:
                self._remember(thing)
        return ids

    def select_key(self, id: UUID, key: str) -> AppendKey | None:
        return self.recorder.select_key(id, key)

    def find_session_chain(self, namespace: str, key: str, generation: int | None = None) -> Chain:
        """Return where a session's positions are; a fork's begin in its parent.

        `generation` is that of a deleted session; without it, it is the current one.
        """
        if generation is None:
            generation = self.find_generation(namespace, key)
        id = derive_session_id(namespace, key, generation)
        if (chain := self._cache.chains.get(id)) is None:
            chain = Chain.start(id)
            if fork := self.read_opening(namespace, key, generation).fork:
                parent = self.find_session_chain(fork.namespace, fork.key, fork.generation)
                chain = parent.continue_with(id, fork.position)
            _remember(self._cache.chains, id, chain)
        return chain

    def read_opening(
        self, namespace: str, key: str, generation: int | None = None
    ) -> SessionOpened:
        if generation is None:
            generation = self.find_generation(namespace, key)
        return cast(
            SessionOpened, self._read_opening(derive_session_id(namespace, key, generation))
        )

    def find_lineage_chain(
        self, namespace: str, key: str, lineage: str, generation: int | None = None
    ) -> Chain:
        """Return where a lineage's versions are; `generation` as in `find_session_chain`.

        A lineage that was never written to continues the one on which it would open: in a fork the
        parent's lineage of that name, and for `main` otherwise the recorded one.
        """
        if generation is None:
            generation = self.find_generation(namespace, key)
        id = derive_lineage_id(namespace, key, lineage, generation)
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
            _remember(self._cache.chains, id, chain)
            return chain
        fork = self.read_opening(namespace, key, generation).fork
        if fork and lineage == fork.lineage:
            parent = self.find_lineage_chain(
                fork.namespace, fork.key, fork.lineage, fork.generation
            )
            return parent.cut_after(fork.lineage_version)
        if lineage == MAIN_LINEAGE and (
            (fork is not None and fork.lineage == RECORDED_LINEAGE)
            or self._find_opening(derive_lineage_id(namespace, key, RECORDED_LINEAGE, generation))
        ):
            return self.find_lineage_chain(namespace, key, RECORDED_LINEAGE, generation)
        return Chain(())

    def read_lineage_opening(self, originator_id: UUID) -> CompactionOpened:
        return cast(CompactionOpened, self._read_opening(originator_id))

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
                    _remember(self._cache.carried, (id, version), carried)
                return version, carried
        return 0, {}

    def find_row_problems(self, row: StoredRow) -> Iterator[str]:
        """Check a row's content, and its bodies, against their keyed hashes."""
        secret = self.recorder.names.subject(row.subject)[1]
        try:
            plaintext = self.mapper.read_plaintext(row)
        except Exception as error:  # noqa: BLE001 - damaged bytes may fail in any way
            yield f"cannot be decompressed: {error}"
            return
        if not matches_keyed_hash(row.digest, plaintext, secret):
            yield "its content was changed"
        for digest, content in self.mapper.read_bodies(row):
            if not matches_keyed_hash(digest, content, secret):
                yield "a body of it was changed"

    def _read_opening(self, id: UUID) -> SessionOpened | CompactionOpened:
        if (opened := self._find_opening(id)) is None:
            raise NotFoundError(f"stream {id} does not exist")
        return opened

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
        _remember(self._cache.openings, id, first)
        return first


@dataclass(slots=True)
class _LogCache:
    """What is cached of the log."""

    open: dict[UUID, Aggregate[Any]] = field(default_factory=dict)
    # Immutable once stored.
    chains: dict[UUID, Chain] = field(default_factory=dict)
    openings: dict[UUID, SessionOpened | CompactionOpened] = field(default_factory=dict)
    carried: dict[tuple[UUID, int], dict[str, Any]] = field(default_factory=dict)
    generations: dict[SessionName, int] = field(default_factory=dict)
    """The newest one known of each session, which another process may have deleted."""


class _Batch(local):
    """The batch that each thread is in."""

    cache: _LogCache | None = None


def _remember(cache: dict[_K, _V], key: _K, value: _V) -> None:
    """Cache an immutable value; clear the whole cache if it grows too large."""
    if len(cache) > 10 * MAX_CACHED_STREAMS:
        cache.clear()
    cache[key] = value


def _find_opened_streams(events: Sequence[Event]) -> list[Stream]:
    streams = []
    for event in events:
        if event.TOPIC in OPENING_TOPICS:
            opened = cast(SessionOpened | CompactionOpened, event)
            name, id = (opened.namespace, opened.key), opened.originator_id
            if isinstance(opened, CompactionOpened):
                session = derive_session_id(*name, opened.generation)
                streams.append(Stream(id, *name, opened.lineage, opened.generation, session))
            else:
                fork = opened.fork
                of = (fork.namespace, fork.key, fork.generation) if fork else None
                parent = derive_session_id(*of) if of else None
                streams.append(Stream(id, *name, None, opened.generation, parent))
    return streams


def _find_records(events: Sequence[Event]) -> list[RecordRow]:
    found = (cast(RecordEvent, event) for event in events if event.TOPIC in RECORD_TOPICS)
    return [RecordRow(event.originator_id, event.name, event.originator_version) for event in found]
