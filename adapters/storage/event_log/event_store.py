"""Opens, saves and reads all streams, as an eventsourcing application."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock, RLock
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.utils import Environment, EnvType, get_topic

from ....domain.compaction import Compaction, CompactionState, derive_lineage_id
from ....domain.compaction_events import CompactionOpened, LineageBase
from ....domain.errors import StorageError
from ....domain.event import Aggregate, Event, load_state
from ....domain.session import Session, SessionState, derive_session_id
from ....domain.session_events import RECORD_TOPICS, RecordEvent, SessionOpened
from ....projections.view_content import TokenCounts
from ..databases.sqlite_recorder import open_sqlite  # with the store, not when it is first opened
from .addresses import hide_passwords, is_postgres
from .chain import (
    MAX_CACHED_STREAMS,
    BatchState,
    LogCache,
    StreamReader,
    make_missing_error,
)
from .event_mapper import OPENING_TOPICS, EventMapper, ZstdCompressor, matches_keyed_hash
from .log_tables import AppendKey, ImportRow, RecordRow, Segment, StoredRow, Stream
from .recorder import Recorder

_A = TypeVar("_A", bound=Aggregate[Any])
LOCK_COUNT = 256
"""Streams that share a lock wait for each other, which is harmless."""


def get_utc_now() -> datetime:
    return datetime.now(UTC)


class EventStore(StreamReader, Application[UUID]):
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
        self._changing = Lock()
        self._shared = LogCache()
        self._batch = BatchState()
        self._derive_session_id = lru_cache(MAX_CACHED_STREAMS)(derive_session_id)
        self._derive_lineage_id = lru_cache(MAX_CACHED_STREAMS)(derive_lineage_id)
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
        self._changing = Lock()
        self._shared.open.clear()
        self._batch = BatchState()
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

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Store all that this thread saves in one transaction, or nothing; its reads see it.

        The thread then works as another process would: with a cache of its own, which holds what is
        not committed and goes with the batch, and without locks. A batch in another one is a part
        of it that is stored whole or not at all.
        """
        outer = self._batch.cache
        inner = self._batch.cache = LogCache()
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
            raise make_missing_error(key)
        return head[2]

    def _remember(self, aggregate: Aggregate[Any]) -> None:
        with self._changing:
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
        with self._changing:
            self.clock = clock
            # Aggregates hold the clock with which they were opened.
            self._cache.open.clear()

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


def make_environment(address: str, *, synchronous: str, compress: bool) -> dict[str, str]:
    """Return the settings of eventsourcing's application for the database at `address`.

    `synchronous` is FULL or NORMAL.
    """
    env = {"DATABASE": address, "SYNCHRONOUS": synchronous}
    if compress:
        env["COMPRESSOR_TOPIC"] = get_topic(ZstdCompressor)
    return env


def open_recorder(address: str, synchronous: str) -> Recorder:
    if not address:
        raise StorageError("a database needs a path: give one, or :memory:")
    if not is_postgres(address):
        return open_sqlite(address, synchronous)
    _check_extra(address)
    from ..databases.postgres_recorder import open_postgres  # noqa: PLC0415 - needs the extra

    return open_postgres(address, synchronous)


def has_log_tables(address: str) -> bool:
    _check_extra(address)
    from ..databases.postgres_datastore import has_schema_tables  # noqa: PLC0415 - needs the extra

    return has_schema_tables(address)


def _check_extra(address: str) -> None:
    if not find_spec("psycopg"):
        raise StorageError(
            f"{hide_passwords(address)}: PostgreSQL needs one thing more: pip install "
            "'cutbank[postgres]'"
        )
