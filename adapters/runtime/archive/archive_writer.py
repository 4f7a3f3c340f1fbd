"""Writes sessions into an archive, each event exactly as it is stored.

It holds whole sessions, and the part of their forks' parents that they share.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from ....domain.compaction_events import BoundaryActivated, CompactBoundary, CompactionReverted
from ....domain.errors import ExportError
from ....domain.session import derive_session_id
from ....domain.session_events import Fork
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.stored_row import StoredRow
from ...storage.private_files import open_new
from ...transcripts.reports import ExportReport
from ..exporting.new_file import open_new_path
from ..sessions.session_log import list_logs
from ..sessions.store_context import StoreContext
from ..sessions.stored_session import StoredSession
from .packing import ARCHIVE_FORMAT, ARCHIVE_VERSION, ArchivePacker, SessionHeader, StreamHeader

_AT_ONCE = 500
_LOOKS = 10
"""How often to read a session's streams again if they change while they are read."""

ArchivedName = tuple[str, str]
"""The namespace and key of a session."""


SessionExtent = list[StreamHeader]
"""A session's own stream, followed by the streams of its lineages."""


def write_archive(
    sessions: Sequence[StoredSession], target: Path | BinaryIO, *, sub_agents: bool = False
) -> ExportReport:
    """Write whole sessions of one store: lineages, drafts and forks, and what forks share.

    `sub_agents` adds the sessions of their sub-agents. The same sessions give the same bytes.
    Raises ExportError if there is nothing to write or the target exists.
    """
    if not sessions:
        raise ExportError("there is no session to write: name one")
    context = sessions[0].log.context
    with translate_storage_errors(context.name):
        wanted = [(one.namespace, one.key) for one in sessions]
        if sub_agents:
            wanted = _add_sub_agents(context, wanted)
        found = _find_all(context.events, _add_forks(context.events, wanted))
        families = list(_group_families(context.events, found))
        if isinstance(target, Path):
            with open_new_path(target) as beside, open_new(beside) as file:
                written = _ArchiveWriter(context.events, file).write(families)
        else:
            written = _ArchiveWriter(context.events, target).write(families)
    headers = [own.session for family in families for own, *_ in family]
    return ExportReport(
        session=sessions[0].key,
        format=ARCHIVE_FORMAT,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="archive",
        sessions=[one.key for one in headers if one.is_whole],
    )


def _add_sub_agents(context: StoreContext, wanted: Sequence[ArchivedName]) -> list[ArchivedName]:
    working: dict[ArchivedName, list[ArchivedName]] = {}
    for one in list_logs(context):
        if parent := one.parent:
            working.setdefault((parent.namespace, parent.key), []).append((one.namespace, one.key))
    return _add_descendants(wanted, working)


class _ArchiveWriter:
    """Writes one archive; each subject is written once."""

    def __init__(self, store: EventStore, out: BinaryIO) -> None:
        self.store = store
        self.packer = ArchivePacker(out)
        self.subjects: set[str] = set()
        self.bodies: set[tuple[str, bytes]] = set()

    def write(self, families: list[list[SessionExtent]]) -> int:
        every = [one for family in families for one in family]
        header = {
            "version": ARCHIVE_VERSION,
            "cutbank": version("cutbank"),
            "sessions": len(every),
            "events": sum(one.last - one.first + 1 for streams in every for one in streams),
        }
        self.packer.write_record(ARCHIVE_FORMAT, header)
        for family in families:
            self.packer.write_record("family", {"sessions": len(family)})
            for one in family:
                self._write_session(one)
            self.packer.write_record("family ends", {})
        self.packer.close()
        return self.packer.written

    def _write_session(self, streams: SessionExtent) -> None:
        namespace, key, is_whole = streams[0].session
        fields = {"namespace": namespace, "key": key, "whole": is_whole}
        self.packer.write_record("session", {**fields, "streams": len(streams)})
        for stream in streams:
            self._write_stream(stream)
        if is_whole:
            for record in self.store.recorder.select_imports(namespace, key):
                told = {"source": record.source, "format": record.format, "bytes": record.bytes}
                self.packer.write_record("import", {**told, "complete": bool(record.complete)})

    def _write_stream(self, stream: StreamHeader) -> None:
        fields = {"id": str(stream.id), "lineage": stream.lineage}
        self.packer.write_record("stream", {**fields, "first": stream.first, "last": stream.last})
        position = stream.first - 1
        while position < stream.last:
            rows = self.store.recorder.select_events(
                stream.id, gt=position, lte=stream.last, limit=_AT_ONCE
            )
            for row in rows:
                position += 1
                if row.originator_version != position:
                    break
                self._write_event(row)
            if not rows or rows[-1].originator_version != position:
                raise ExportError(f"#{position} is missing from the database: see `cutbank verify`")
        self._write_keys(stream)

    def _write_event(self, row: StoredRow) -> None:
        if row.subject not in self.subjects:
            self.subjects.add(row.subject)
            secret = self.store.recorder.names.secret_of(row.subject)
            assert secret is not None, "an event of the subject is there"
            self.packer.write_record("subject", {"name": row.subject, "secret": secret.hex()})
        for address in self.store.mapper.list_references(row):
            if (row.subject, address) not in self.bodies:
                self.bodies.add((row.subject, address))
                content = self.store.recorder.select_body(row.subject, address)
                self.packer.write_record(
                    "body", {"subject": row.subject, "hash": address.hex()}, content
                )
        fields = {
            "at": row.originator_version,
            "topic": row.topic,
            "subject": row.subject,
            "key_id": row.key_id,
            "tokens": row.tokens,
            "digest": row.digest.hex(),
        }
        self.packer.write_record("event", fields, row.state, row.carried)

    def _write_keys(self, stream: StreamHeader) -> None:
        last = ""
        while keys := self.store.recorder.select_keys(stream.id, last, _AT_ONCE):
            for key in keys:
                # Appends made after the archive was begun are not in it.
                if key.last <= stream.last:
                    fields = {"key": key.key, "first": key.first, "last": key.last}
                    self.packer.write_record("key", fields)
            last = keys[-1].key


def _add_forks(store: EventStore, wanted: Sequence[ArchivedName]) -> list[ArchivedName]:
    forks: dict[ArchivedName, list[ArchivedName]] = {}
    for stream in store.recorder.select_streams():
        name = stream.namespace, stream.session
        if stream.lineage is None and (parent := _name_parent(store.read_opening(*name).fork)):
            forks.setdefault(parent, []).append(name)
    return _add_descendants(wanted, forks)


def _add_descendants(
    names: Iterable[ArchivedName], children: Mapping[ArchivedName, Sequence[ArchivedName]]
) -> list[ArchivedName]:
    """Return the names with all their descendants, each once."""
    found = dict.fromkeys(names)
    waiting = list(found)
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _find_all(
    store: EventStore, names: Iterable[ArchivedName]
) -> dict[ArchivedName, SessionExtent]:
    found = {name: _find_whole(store, name) for name in names}
    shared: dict[ArchivedName, int] = {}
    waiting = list(found)
    while waiting:
        fork = store.read_opening(*waiting.pop()).fork
        parent = _name_parent(fork)
        if fork and parent and parent not in found and fork.position > shared.get(parent, 0):
            shared[parent] = fork.position
            waiting.append(parent)
    for name, position in shared.items():
        found[name] = _find_shared(store, name, position)
    return found


def _find_whole(store: EventStore, name: ArchivedName) -> SessionExtent:
    """Return the extent of a whole session at one moment, even while others write to it."""
    session = SessionHeader(*name, is_whole=True)
    for _ in range(_LOOKS):
        before = _find_lineages(store, session)
        head = store.recorder.select_head(derive_session_id(*name))
        assert head is not None, "the session was opened"
        if _find_lineages(store, session) == before:
            return [_find_own(store, session, head[0]), *before]
    raise ExportError(f"session {name[1]!r} is compacted again and again: try again later")


def _find_own(store: EventStore, session: SessionHeader, last: int) -> StreamHeader:
    name = session.namespace, session.key
    first = store.read_opening(*name).originator_version
    return StreamHeader(session, derive_session_id(*name), None, first, max(first, last))


def _find_lineages(store: EventStore, session: SessionHeader) -> list[StreamHeader]:
    found = []
    for stream in store.recorder.select_streams(session.namespace, session.key):
        id = stream.originator_id
        head = store.recorder.select_head(id)
        if stream.lineage is not None and head is not None:
            first = store.read_lineage_opening(id).originator_version
            found.append(StreamHeader(session, id, stream.lineage, first, head[0]))
    return _sort_bases_first(store, found)


def _sort_bases_first(store: EventStore, streams: list[StreamHeader]) -> list[StreamHeader]:
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
    session = SessionHeader(*name, is_whole=False)
    extent, lineages = [_find_own(store, session, position)], _find_lineages(store, session)
    lasts = dict.fromkeys((stream.id for stream in lineages), 0)
    for stream in lineages:
        last = _find_version_at(store, stream, position)
        base = store.read_lineage_opening(stream.id).base
        # A lineage that continues a later decision began later itself.
        if base is None or lasts.get(base.originator_id, base.version) >= base.version:
            lasts[stream.id] = last
            extent.append(stream._replace(last=last))
    return extent


def _find_version_at(store: EventStore, stream: StreamHeader, position: int) -> int:
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


def _group_families(
    store: EventStore, found: dict[ArchivedName, SessionExtent]
) -> Iterator[list[SessionExtent]]:
    """Yield each family of sessions, in which parents come before their forks."""
    children: dict[ArchivedName | None, list[SessionExtent]] = {}
    for name, extent in found.items():
        parent = _name_parent(store.read_opening(*name).fork)
        children.setdefault(parent, []).append(extent)
    for root in children.get(None, ()):
        family = [root]
        for own, *_ in family:
            family += children.get((own.session.namespace, own.session.key), ())
        yield family


def _name_parent(fork: Fork | None) -> ArchivedName | None:
    return (fork.namespace, fork.key) if fork else None
