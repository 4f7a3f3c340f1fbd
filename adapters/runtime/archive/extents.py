"""Finds what an archive holds: whole sessions, and the shared part of their forks' parents."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from ....domain.compaction_events import BoundaryActivated, CompactBoundary, CompactionReverted
from ....domain.errors import ExportError
from ....domain.session import derive_session_id
from ...storage.event_log.event_store import EventStore

_AT_ONCE = 500
_LOOKS = 10
"""How often to read a session's streams again if they change while they are read."""

ArchivedName = tuple[str, str]
"""The namespace and key of a session."""


@dataclass(frozen=True, slots=True)
class StreamExtent:
    """A stream's events from its first to `last`."""

    id: UUID
    lineage: str | None
    first: int
    last: int


@dataclass(slots=True)
class SessionExtent:
    """A session's own stream, followed by the streams of its lineages."""

    name: ArchivedName
    is_whole: bool
    """Whether the extent is the whole session; if not, it is the part that its forks share."""
    streams: list[StreamExtent]
    fork_of: ArchivedName | None

    @property
    def events(self) -> int:
        return sum(stream.last - stream.first + 1 for stream in self.streams)


def find_extents(store: EventStore, wanted: Sequence[ArchivedName]) -> list[list[SessionExtent]]:
    """Return the sessions with all their forks and fork parents, as of now.

    Each list is one family, in which parents come before their forks.
    """
    return list(_group_families(_find_all(store, _add_forks(store, wanted))))


def _add_forks(store: EventStore, wanted: Sequence[ArchivedName]) -> list[ArchivedName]:
    forks: dict[ArchivedName, list[ArchivedName]] = {}
    for stream in store.recorder.select_streams():
        if stream.lineage is None and (
            fork := store.read_opening(stream.namespace, stream.session).fork
        ):
            forks.setdefault((fork.namespace, fork.key), []).append(
                (stream.namespace, stream.session)
            )
    found = dict.fromkeys(wanted)
    waiting = list(found)
    while waiting:
        for name in forks.get(waiting.pop(), ()):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return list(found)


def _find_all(
    store: EventStore, names: Iterable[ArchivedName]
) -> dict[ArchivedName, SessionExtent]:
    found = {name: _find_whole(store, name) for name in names}
    shared: dict[ArchivedName, int] = {}
    waiting = list(found)
    while waiting:
        fork = store.read_opening(*waiting.pop()).fork
        if fork is None or (parent := (fork.namespace, fork.key)) in found:
            continue
        if fork.position > shared.get(parent, 0):
            shared[parent] = fork.position
            waiting.append(parent)
    for name, position in shared.items():
        found[name] = _find_shared(store, name, position)
    return found


def _find_whole(store: EventStore, name: ArchivedName) -> SessionExtent:
    """Return the extent of a whole session at one moment, even while others write to it."""
    for _ in range(_LOOKS):
        before = _find_lineages(store, name)
        own = _find_own(store, name)
        if _find_lineages(store, name) == before:
            return _make_extent(store, name, own, before, whole=True)
    raise ExportError(f"session {name[1]!r} is compacted again and again: try again later")


def _find_own(store: EventStore, name: ArchivedName, last: int | None = None) -> StreamExtent:
    id, first = derive_session_id(*name), store.read_opening(*name).originator_version
    if last is None:
        head = store.recorder.select_head(id)
        assert head is not None, "the session was opened"
        last = head[0]
    return StreamExtent(id, None, first, max(first, last))


def _find_lineages(store: EventStore, name: ArchivedName) -> list[StreamExtent]:
    found = []
    for stream in store.recorder.select_streams(*name):
        head = store.recorder.select_head(stream.originator_id)
        if stream.lineage is not None and head is not None:
            first = store.read_lineage_opening(stream.originator_id).originator_version
            found.append(StreamExtent(stream.originator_id, stream.lineage, first, head[0]))
    return _sort_bases_first(store, found)


def _sort_bases_first(store: EventStore, streams: list[StreamExtent]) -> list[StreamExtent]:
    """Sort the streams so that each lineage follows the one that it continues."""
    waiting = {stream.id: stream for stream in streams}
    ordered = []
    while waiting:
        for id in list(waiting):
            base = store.read_lineage_opening(id).base
            if base is None or base.originator_id not in waiting:
                ordered.append(waiting.pop(id))
    return ordered


def _find_shared(store: EventStore, name: ArchivedName, position: int) -> SessionExtent:
    """Return a session's extent at a position, with its lineages as decided by then."""
    lineages = [
        StreamExtent(stream.id, stream.lineage, stream.first, last)
        for stream in _find_lineages(store, name)
        if (last := _find_version_at(store, stream, position))
    ]
    decided = {stream.id: stream.last for stream in lineages}
    own = {stream.id for stream in _find_lineages(store, name)}

    def is_in(stream: StreamExtent) -> bool:
        # A lineage that continues a later decision began later itself.
        base = store.read_lineage_opening(stream.id).base
        return (
            base is None
            or base.originator_id not in own
            or decided.get(base.originator_id, 0) >= base.version
        )

    streams = [stream for stream in lineages if is_in(stream)]
    return _make_extent(store, name, _find_own(store, name, position), streams, whole=False)


def _find_version_at(store: EventStore, stream: StreamExtent, position: int) -> int:
    last = 0
    while True:
        page = store.recorder.select_events(stream.id, gt=last, lte=stream.last, limit=_AT_ONCE)
        for row in page:
            match store.mapper.to_domain_event(row):
                case CompactBoundary(after=at) if at > position:
                    return last
                case (
                    BoundaryActivated(effective_from=at) | CompactionReverted(effective_from=at)
                ) if at > position:
                    return last
                case _:
                    last = row.originator_version
        if len(page) < _AT_ONCE:
            return last


def _make_extent(
    store: EventStore,
    name: ArchivedName,
    own: StreamExtent,
    lineages: list[StreamExtent],
    *,
    whole: bool,
) -> SessionExtent:
    fork = store.read_opening(*name).fork
    return SessionExtent(
        name, whole, [own, *lineages], (fork.namespace, fork.key) if fork else None
    )


def _group_families(found: dict[ArchivedName, SessionExtent]) -> Iterator[list[SessionExtent]]:
    children: dict[ArchivedName | None, list[SessionExtent]] = {}
    for extent in found.values():
        children.setdefault(extent.fork_of, []).append(extent)
    for root in children.get(None, ()):
        family = [root]
        for one in family:
            family += children.get(one.name, ())
        yield family
