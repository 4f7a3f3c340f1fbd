"""Finds which part of which streams an archive of some sessions needs."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    LineageDeleted,
)
from ...domain.session import derive_session_id
from ...domain.session_events import Fork
from ..storage.event_log.event_store import EventStore
from ..storage.event_log.log_tables import Stream
from ..storage.event_log.stream_check import read_rows

SessionGeneration = tuple[str, str, int]
"""The namespace, key and generation of a session."""
_NameT = TypeVar("_NameT")


class StreamExtent(NamedTuple):
    """The versions `first` to `last` of a stream."""

    stream: Stream
    first: int
    last: int


class SessionExtent(NamedTuple):
    """A session's own stream, followed by the streams of its lineages."""

    name: SessionGeneration
    is_whole: bool
    """Whether it is the whole session, or the part that its forks share."""
    is_deleted: bool
    """Whether it was deleted, so that only its forks have that part."""
    fork: Fork | None
    streams: list[StreamExtent]


def find_families(
    store: EventStore, wanted: Iterable[tuple[str, str]] | None = None
) -> list[list[SessionExtent]]:
    """Return the wanted sessions, or all, with their forks and what these share with others.

    Related sessions form a family, in which parents come before their forks.
    """
    living = {
        (stream.namespace, stream.session): stream.generation
        for stream in store.recorder.select_streams()
        if stream.lineage is None
    }
    forks: dict[SessionGeneration, Fork | None] = {}
    parents: dict[SessionGeneration, SessionGeneration] = {}
    unread: list[SessionGeneration] = [(*name, generation) for name, generation in living.items()]
    for name in unread:
        if name not in forks and (fork := _read_fork(store, name, forks)):
            parents[name] = (fork.namespace, fork.key, fork.generation)
            unread.append(parents[name])  # it may be deleted
    names: Iterable[SessionGeneration] = [name for name in forks if living.get(name[:2]) == name[2]]
    if wanted is not None:
        names = add_descendants([(*name, living[name]) for name in wanted], parents)
    ends: dict[SessionGeneration, int | None] = dict.fromkeys(names)
    waiting = list(ends)
    for name in waiting:
        fork, parent = forks.get(name), parents.get(name)
        if fork and parent and (end := ends.get(parent, 0)) is not None and end < fork.position:
            ends[parent] = fork.position
            waiting.append(parent)
    families: dict[SessionGeneration, list[SessionExtent]] = {}
    paths = {name: _trace_ancestors(name, parents) for name in ends}
    for name in sorted(ends, key=lambda name: len(paths[name])):
        is_deleted = living.get(name[:2]) != name[2]
        found = _find_extent(store, name, ends[name], is_deleted=is_deleted)
        families.setdefault(paths[name][-1], []).append(found)
    return list(families.values())


def _read_fork(
    store: EventStore, name: SessionGeneration, forks: dict[SessionGeneration, Fork | None]
) -> Fork | None:
    forks[name] = store.read_opening(*name).fork
    return forks[name]


def add_descendants(names: Iterable[_NameT], parents: Mapping[_NameT, _NameT]) -> list[_NameT]:
    """Return the names with all their descendants, each once."""
    found = dict.fromkeys(names)
    while new := [name for name, of in parents.items() if of in found and name not in found]:
        found |= dict.fromkeys(new)
    return list(found)


def _trace_ancestors(
    name: SessionGeneration, parents: Mapping[SessionGeneration, SessionGeneration]
) -> list[SessionGeneration]:
    """Return the session and its ancestors, up to the one that is no fork."""
    path = [name]
    while (above := parents.get(path[-1])) and above not in path:
        path.append(above)
    return path


def _find_extent(
    store: EventStore, name: SessionGeneration, end: int | None, *, is_deleted: bool
) -> SessionExtent:
    """Return a session's extent up to position `end`, or whole, even while others write to it.

    The lineages are read after the session's head, and end before the first decision on positions
    beyond it.
    """
    id = derive_session_id(*name)
    opened = store.read_opening(*name)
    head = store.recorder.select_head(id)
    assert head is not None, "its opening was just read"
    last = head[0] if end is None else max(opened.originator_version, min(end, head[0]))
    namespace, key, generation = name
    if is_deleted:
        gone = store.recorder.select_deleted(namespace, key)
        catalog = [Stream(*one[:5]) for one in gone if one.generation == generation]
    else:
        catalog = store.recorder.select_streams(namespace, key)
    own, *lineages = catalog
    streams = [StreamExtent(own, opened.originator_version, last)]
    openings = {one: store.read_lineage_opening(one.originator_id) for one in lineages}
    lasts = dict.fromkeys((one.originator_id for one in lineages), 0)
    # A lineage's first version follows the one of its base, so this sorts bases first.
    for lineage in sorted(lineages, key=lambda one: openings[one].originator_version):
        base, first = openings[lineage].base, openings[lineage].originator_version
        # A lineage that continues a later decision began later itself.
        if base is None or lasts.get(base.originator_id, base.version) >= base.version:
            at = lasts[lineage.originator_id] = _find_version_at(store, lineage, first, last)
            streams.append(StreamExtent(lineage, first, at))
    return SessionExtent(name, end is None, is_deleted, opened.fork, streams)


def _find_version_at(store: EventStore, stream: Stream, first: int, position: int) -> int:
    """Return a lineage's last version before its first decision beyond the position."""
    last = 0
    for row in read_rows(store, stream.originator_id, first, None):
        match store.mapper.to_domain_event(row):
            case (
                CompactBoundary(after=at)
                | BoundaryActivated(effective_from=at)
                | CompactionReverted(effective_from=at)
            ) if at > position:
                break
            case LineageDeleted():
                break
            case _:
                last = row.originator_version
    return last
