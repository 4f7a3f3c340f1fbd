"""Writes sessions into an archive, each event exactly as it is stored."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from ....domain.errors import ExportError
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.stored_row import StoredRow
from ...storage.private_files import open_new
from ...transcripts.reports import ExportReport
from ..exporting.new_file import open_new_path
from ..sessions.session_log import list_logs
from ..sessions.stored_session import StoredSession
from .extents import ArchivedName, SessionExtent, StreamExtent, find_extents
from .packing import ArchivePacker

ARCHIVE_FORMAT = "cutbank-archive"
SUFFIX = ".cutbank"
ARCHIVE_VERSION = 1
_AT_ONCE = 500


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
            wanted += _find_sub_agents(sessions)
        families = find_extents(context.events, wanted)
        if isinstance(target, Path):
            with open_new_path(target) as beside, open_new(beside) as file:
                written = _ArchiveWriter(context.events, file).write(families)
        else:
            written = _ArchiveWriter(context.events, target).write(families)
    whole = [one.name[1] for family in families for one in family if one.is_whole]
    return ExportReport(
        session=sessions[0].key,
        format=ARCHIVE_FORMAT,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="archive",
        sessions=whole,
    )


def _find_sub_agents(sessions: Sequence[StoredSession]) -> Iterator[ArchivedName]:
    """Yield the sessions of the sub-agents of these sessions, at any depth."""
    working: dict[ArchivedName, list[ArchivedName]] = {}
    for one in list_logs(sessions[0].log.context):
        if parent := one.parent:
            working.setdefault((parent.namespace, parent.key), []).append((one.namespace, one.key))
    waiting = [(one.namespace, one.key) for one in sessions]
    seen = set(waiting)
    while waiting:
        for name in working.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
                yield name


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
            "events": sum(one.events for one in every),
        }
        self.packer.write_record(ARCHIVE_FORMAT, header)
        for family in families:
            self.packer.write_record("family", {"sessions": len(family)})
            for one in family:
                self._write_session(one)
            self.packer.write_record("family ends", {})
        self.packer.close()
        return self.packer.written

    def _write_session(self, one: SessionExtent) -> None:
        namespace, key = one.name
        fields = {"namespace": namespace, "key": key, "whole": one.is_whole}
        self.packer.write_record("session", {**fields, "streams": len(one.streams)})
        for stream in one.streams:
            self._write_stream(stream)
        if one.is_whole:
            for record in self.store.recorder.select_imports(namespace, key):
                told = {"source": record.source, "format": record.format, "bytes": record.bytes}
                self.packer.write_record("import", {**told, "complete": bool(record.complete)})

    def _write_stream(self, stream: StreamExtent) -> None:
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

    def _write_keys(self, stream: StreamExtent) -> None:
        last = ""
        while keys := self.store.recorder.select_keys(stream.id, last, _AT_ONCE):
            for key in keys:
                # Appends made after the archive was begun are not in it.
                if key.last <= stream.last:
                    fields = {"key": key.key, "first": key.first, "last": key.last}
                    self.packer.write_record("key", fields)
            last = keys[-1].key
