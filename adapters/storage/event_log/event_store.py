"""The eventsourcing application: the one place that opens, saves and reads streams."""

from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from threading import Lock, RLock
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import OperationalError
from eventsourcing.utils import Environment, EnvType, get_topic

from ....domain import session_events
from ....domain.aggregate import Aggregate, restored
from ....domain.compaction import MAIN, RECORDED, Compaction, CompactionState, lineage_id
from ....domain.compaction_events import CompactionOpened, LineageBase
from ....domain.errors import NotFoundError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.record import LARGEST
from ....domain.session import Session, SessionState, session_id
from ....projections.recorded import Recorded
from ....projections.tally import Tally
from ..process_forks import reopen_in_children
from .chain import Chain
from .event_mapper import EventMapper
from .recorder import AppendKey, ImportRow, Recorder, Stream
from .stored_row import StoredRow

K = TypeVar("K")
V = TypeVar("V")
CACHED_STREAMS = 1_000
LOCKS = 256
"""Streams that share one wait for each other, which does no harm."""


def utc_now() -> datetime:
    """The store's own clock."""
    return datetime.now(UTC)


class EventStore(Application[UUID]):
    """Sessions and lineages by name; every stream opens in O(1), at any version.

    Aggregates are cached and shared by this process's threads: who decides on a stream holds its
    `deciding_on`. Whatever fails to be saved is forgotten at once: a cached aggregate never holds
    an event that is not stored.
    """

    env: ClassVar[dict[str, str]] = {
        "PERSISTENCE_MODULE": "cutbank.adapters.storage.sqlite.factory:Factory",
        "MAPPER_TOPIC": get_topic(EventMapper),
    }
    recorder: Recorder  # type: ignore[assignment]  # made by env: SQLite's or PostgreSQL's
    mapper: EventMapper  # pyright: ignore[reportIncompatibleVariableOverride] - made by env

    def __init__(self, env: EnvType | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        super().__init__(env)
        self.clock = clock
        self.mapper.secret_of = lambda subject: self.recorder.subject(subject)[1]
        self.mapper.body_of = self.recorder.select_body
        self._deciding = tuple(RLock() for _ in range(LOCKS))
        self._open: dict[UUID, Aggregate[Any]] = {}
        self._opening = Lock()
        # What never changes once it is there.
        self._chains: dict[UUID, Chain] = {}
        self._lineages: dict[UUID, CompactionOpened] = {}
        self._sessions: dict[UUID, session_events.SessionOpened] = {}
        self._carried: dict[tuple[UUID, int], dict[str, Any]] = {}
        reopen_in_children(self)
        self.tally = Tally()
        """How blocks are counted where more is wanted than the estimate beside them."""

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Only what is passed in: the process's environment may configure another application."""
        return Environment(name, {**type(self).env, **(env or {})})

    FORK_RANK = 2

    def locks(self) -> tuple[()]:
        """As `process_forks` asks: the recorder's are enough."""
        return ()

    def leave_in_child(self, held: Container[Any]) -> None:
        """Forget what other threads may have been deciding."""
        del held
        self._deciding = tuple(RLock() for _ in range(LOCKS))
        self._opening = Lock()
        self._open.clear()
        self.recorder.reopen_in_child()

    # Streams

    def deciding_on(self, *ids: UUID) -> AbstractContextManager[Any]:
        """Held from reading streams to saving them, by one thread of this process at a time.

        Streams that are decided on together are named together, so that no two wait for each
        other. Other processes are kept apart by the versions of what they store.
        """
        if len(ids) == 1:
            return self._deciding[hash(ids[0]) % LOCKS]
        held = ExitStack()
        for number in sorted({hash(id) % LOCKS for id in ids}):
            held.enter_context(self._deciding[number])
        return held

    def session(self, namespace: str, key: str) -> Session | None:
        """The session of that name, as of now, to whoever decides on it; None if there is none."""
        return cast(
            "Session | None",
            self._stream(session_id(namespace, key), Session, SessionState),
        )

    def compaction(self, namespace: str, key: str, lineage: str) -> Compaction | None:
        """The lineage's own stream, as of now; None where it was never written to."""
        return cast(
            "Compaction | None",
            self._stream(lineage_id(namespace, key, lineage), Compaction, CompactionState),
        )

    def opened_compaction(self, namespace: str, key: str, lineage: str) -> Compaction:
        """The lineage's own stream; where there is none, a new one that is yet to be saved."""
        if found := self.compaction(namespace, key, lineage):
            return found
        chain = self.lineage_chain(namespace, key, lineage)
        version, state = self.lineage_state(chain)
        base = None
        if version:
            originator = chain.holding(version)
            name = self.lineage_opened(originator).lineage
            base = LineageBase(originator_id=originator, lineage=name, version=version)
        return Compaction.open(
            namespace,
            key,
            lineage,
            clock=self.clock,
            subject=self.subject(namespace, key),
            base=base,
            inherited=state,
        )

    def _stream(self, id: UUID, stream_class: Any, state_class: type[tuple[Any, ...]]) -> Any:
        found = self._open.get(id)
        # A decision that broke off halfway has left events behind that nobody ever saved.
        if found and not found._pending:  # noqa: SLF001
            return found
        head = self.recorder.select_head(id)
        if head is None:
            return None
        version, carried, subject = head
        aggregate = stream_class(
            id,
            version=version,
            state=restored(state_class, carried),
            subject=subject,
            clock=self.clock,
        )
        self._remember(aggregate)
        return aggregate

    def subject(self, namespace: str, key: str) -> str:
        """Whom a session is about."""
        head = self.recorder.select_head(session_id(namespace, key))
        if head is None:
            raise NotFoundError(f"session {key!r} was never opened")
        return head[2]

    def _remember(self, aggregate: Aggregate[Any]) -> None:
        with self._opening:
            self._open[aggregate.id] = aggregate
            # What was opened first is forgotten first; what is still used is soon read again.
            while len(self._open) > CACHED_STREAMS:
                del self._open[next(iter(self._open))]

    def refresh(self, aggregate_id: UUID) -> None:
        """Forget what is cached of a stream if somebody else has written to it since."""
        cached = self._open.get(aggregate_id)
        if cached is not None:
            head = self.recorder.select_head(aggregate_id)
            if head is None or head[0] != cached.version:
                self.evict(aggregate_id)

    def keep_time_by(self, clock: Callable[[], datetime]) -> None:
        """Stamp what is decided from now on by another clock."""
        with self._opening:
            self.clock = clock
            # Aggregates hold the clock that they were opened with.
            self._open.clear()

    def evict(self, id: UUID) -> None:
        """Forget what is cached of a stream, to read it again."""
        with self._opening:
            self._open.pop(id, None)

    def save(  # type: ignore[override]  # narrower: these are the only objects there are
        self,
        *aggregates: Aggregate[Any] | Event | None,
        keys: Sequence[AppendKey] = (),
        imports: Sequence[ImportRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store all pending events of all these in one transaction, or none of them.

        Returns the notification ids. eventsourcing's own `save` asks `isinstance` of runtime
        protocols and makes three objects of each event to return them, which costs more than the
        insert; and it would keep an aggregate whose events were refused.
        """
        events: list[Event] = []
        for thing in aggregates:
            if isinstance(thing, Event):
                events.append(thing)
            elif thing is not None:
                events += thing.collect_events()
        if not (events or keys or imports):
            return []
        try:
            ids = self.recorder.insert_events(
                [self.mapper.to_stored_event(event) for event in events],
                keys=keys,
                imports=imports,
                streams=_opened_streams(events),
            )
        except BaseException:
            for event in events:
                self.evict(event.originator_id)
            raise
        for thing in aggregates:
            if isinstance(thing, Aggregate) and thing.id not in self._open:
                self._remember(thing)
        return ids

    def select_key(self, id: UUID, key: str) -> AppendKey | None:
        """What the append, or compaction, of that name was."""
        return self.recorder.select_key(id, key)

    # Chains

    def session_chain(self, namespace: str, key: str) -> Chain:
        """Where a session's positions are found; a fork's begin in its parent."""
        id = session_id(namespace, key)
        if (chain := self._chains.get(id)) is None:
            opened = cast(session_events.SessionOpened, self._first(id))
            chain = Chain.beginning(id)
            if fork := opened.fork:
                parent = self.session_chain(fork.namespace, fork.key)
                chain = parent.continued_by(id, fork.position)
            _remember(self._chains, id, chain)
        return chain

    def opened(self, namespace: str, key: str) -> session_events.SessionOpened:
        """How a session began."""
        id = session_id(namespace, key)
        if (opened := self._sessions.get(id)) is None:
            opened = cast(session_events.SessionOpened, self._first(id))
            _remember(self._sessions, id, opened)
        return opened

    def lineage_chain(self, namespace: str, key: str, lineage: str) -> Chain:
        """Where a lineage's versions are found.

        One that was never written to continues what it would be opened on: the lineage that a
        fork shares with its parent, and `main` else what the session's source recorded.
        """
        id = lineage_id(namespace, key, lineage)
        if chain := self._chains.get(id):
            return chain
        first = self._first_or_none(id)
        if first is not None:
            base = cast(CompactionOpened, first).base
            chain = Chain.beginning(id)
            if base is not None:
                chain = self._chain_of(base.originator_id).continued_by(id, base.version)
            _remember(self._chains, id, chain)
            return chain
        fork = self.opened(namespace, key).fork
        if fork and lineage == fork.lineage:
            parent = self.lineage_chain(fork.namespace, fork.key, fork.lineage)
            return parent.up_to(fork.lineage_version)
        if lineage == MAIN and (
            (fork is not None and fork.lineage == RECORDED)
            or self._first_or_none(lineage_id(namespace, key, RECORDED))
        ):
            return self.lineage_chain(namespace, key, RECORDED)
        return Chain(())

    def lineage_opened(self, originator_id: UUID) -> CompactionOpened:
        """How a lineage began."""
        if (opened := self._lineages.get(originator_id)) is None:
            opened = cast(CompactionOpened, self._first(originator_id))
            _remember(self._lineages, originator_id, opened)
        return opened

    def _chain_of(self, originator_id: UUID) -> Chain:
        opened = self.lineage_opened(originator_id)
        return self.lineage_chain(opened.namespace, opened.key, opened.lineage)

    def lineage_state(self, chain: Chain, at: int | None = None) -> tuple[int, CompactionState]:
        """A lineage's version, not above `at`, and its state there."""
        version, carried = self._newest(chain, at)
        return version, restored(CompactionState, carried)

    def lineages(self, namespace: str, key: str) -> list[str]:
        """The lineages that were written to, by name."""
        streams = self.recorder.select_streams(namespace, key)
        return [stream.lineage for stream in streams if stream.lineage is not None]

    # Events

    def read(self, chain: Chain, positions: Ranges) -> list[Recorded]:
        """The events at these positions, in order."""
        return [
            self.recorded(row)
            for originator, runs in chain.split(positions)
            for row in self.recorder.select_runs(originator, runs)
        ]

    def recorded(self, row: StoredRow) -> Recorded:
        event = self.mapper.to_domain_event(row)
        return Recorded(row.originator_version, event, row.tokens, row.digest)

    def head(self, chain: Chain, at: int | None = None) -> tuple[int, SessionState]:
        """A session's position, not above `at`, and its state there."""
        version, carried = self._newest(chain, at)
        if not version:
            raise NotFoundError("a session's positions begin at 1")
        return version, restored(SessionState, carried)

    def _newest(self, chain: Chain, at: int | None) -> tuple[int, dict[str, Any]]:
        """The newest version up to `at`, and what is carried there; 0 where there is none."""
        at = None if at is None else min(at, LARGEST)  # a database takes 64 bits
        for segment in reversed(chain.segments):
            last = segment.last if at is None else min(at, segment.last or at)
            if last is not None and last < segment.first:
                continue
            id = segment.originator_id
            if last and (known := self._carried.get((id, last))) is not None:
                return last, known
            if head := self.recorder.select_head(id, last):
                version, carried = head[:2]
                if version == last:
                    # What is carried beside an event is as immutable as the event.
                    _remember(self._carried, (id, version), carried)
                return version, carried
        return 0, {}

    def _first(self, id: UUID) -> Event:
        first = self._first_or_none(id)
        if first is None:
            raise NotFoundError(f"stream {id} does not exist")
        return first

    def _first_or_none(self, id: UUID) -> Event | None:
        rows: Sequence[StoredRow] = self.recorder.select_events(id, limit=1)
        if not rows:
            return None
        first = self.mapper.to_domain_event(rows[0])
        if not isinstance(first, session_events.SessionOpened | CompactionOpened):
            raise OperationalError(f"malformed: stream {id} does not begin with its opening")
        return first


def _remember(cache: dict[K, V], key: K, value: V) -> None:
    """Keep what never changes; all is forgotten at once where it becomes too much."""
    if len(cache) > 10 * CACHED_STREAMS:
        cache.clear()
    cache[key] = value


def _opened_streams(events: Sequence[Event]) -> list[Stream]:
    streams = []
    for event in events:
        if isinstance(event, session_events.SessionOpened):
            streams.append(Stream(event.originator_id, event.namespace, event.key, None))
        elif isinstance(event, CompactionOpened):
            streams.append(Stream(event.originator_id, event.namespace, event.key, event.lineage))
    return streams
