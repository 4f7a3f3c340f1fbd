"""Writes sessions into an archive: every stored event as it is stored, and what belongs to it."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from ....domain.errors import ExportError
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.event_log.stored_row import StoredRow
from ...storage.private_files import open_new
from ...transcripts.reports import ExportReport
from ..exporting.new_file import new_file
from ..sessions.session_log import list_logs
from ..sessions.stored_session import StoredSession
from .extents import Name, SessionExtent, StreamExtent, extents
from .packing import Packer

NAME = "cutbank-archive"
SUFFIX = ".cutbank"
VERSION = 1
_AT_ONCE = 500


def write_archive(
    sessions: Sequence[StoredSession], target: Path | BinaryIO, *, sub_agents: bool = False
) -> ExportReport:
    """Write sessions of one store whole: lineages, drafts and forks, and what forks share.

    `sub_agents` takes along the sessions that work for these. The same sessions give the same
    bytes. Raises ExportError where there is nothing to write, or the target is there already.
    """
    if not sessions:
        raise ExportError("there is no session to write: name one")
    context = sessions[0].log.context
    with speaking_plainly(context.name):
        wanted = [(one.namespace, one.key) for one in sessions]
        if sub_agents:
            wanted += _agents_of(sessions)
        families = extents(context.events, wanted)
        if isinstance(target, Path):
            with new_file(target) as beside, open_new(beside) as file:
                written = _Archive(context.events, file).write(families)
        else:
            written = _Archive(context.events, target).write(families)
    whole = [one.name[1] for family in families for one in family if one.whole]
    return ExportReport(
        session=sessions[0].key,
        format=NAME,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="archive",
        sessions=whole,
    )


def _agents_of(sessions: Sequence[StoredSession]) -> Iterator[Name]:
    """The sessions that work for these, and those that work for them."""
    working: dict[Name, list[Name]] = {}
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


class _Archive:
    """One archive while it is written; what was said once is not said again."""

    def __init__(self, store: EventStore, out: BinaryIO) -> None:
        self.store = store
        self.packer = Packer(out)
        self.subjects: set[str] = set()
        self.bodies: set[tuple[str, bytes]] = set()

    def write(self, families: list[list[SessionExtent]]) -> int:
        every = [one for family in families for one in family]
        header = {
            "version": VERSION,
            "cutbank": version("cutbank"),
            "sessions": len(every),
            "events": sum(one.events for one in every),
        }
        self.packer.put(NAME, header)
        for family in families:
            self.packer.put("family", {"sessions": len(family)})
            for one in family:
                self._session(one)
            self.packer.put("family ends", {})
        self.packer.close()
        return self.packer.written

    def _session(self, one: SessionExtent) -> None:
        namespace, key = one.name
        fields = {"namespace": namespace, "key": key, "whole": one.whole}
        self.packer.put("session", {**fields, "streams": len(one.streams)})
        for stream in one.streams:
            self._stream(stream)
        if one.whole:
            for record in self.store.recorder.select_imports(namespace, key):
                told = {"source": record.source, "format": record.format, "bytes": record.bytes}
                self.packer.put("import", {**told, "complete": bool(record.complete)})

    def _stream(self, stream: StreamExtent) -> None:
        fields = {"id": str(stream.id), "lineage": stream.lineage}
        self.packer.put("stream", {**fields, "first": stream.first, "last": stream.last})
        position = stream.first - 1
        while position < stream.last:
            rows = self.store.recorder.select_events(
                stream.id, gt=position, lte=stream.last, limit=_AT_ONCE
            )
            for row in rows:
                position += 1
                if row.originator_version != position:
                    break
                self._event(row)
            if not rows or rows[-1].originator_version != position:
                raise ExportError(f"#{position} is missing from the database: see `cutbank verify`")
        self._keys(stream)

    def _event(self, row: StoredRow) -> None:
        if row.subject not in self.subjects:
            self.subjects.add(row.subject)
            secret = self.store.recorder.secret_of(row.subject)
            assert secret is not None, "an event of the subject is there"
            self.packer.put("subject", {"name": row.subject, "secret": secret.hex()})
        for address in self.store.mapper.references(row):
            if (row.subject, address) not in self.bodies:
                self.bodies.add((row.subject, address))
                content = self.store.recorder.select_body(row.subject, address)
                self.packer.put("body", {"subject": row.subject, "hash": address.hex()}, content)
        fields = {
            "at": row.originator_version,
            "topic": row.topic,
            "subject": row.subject,
            "key_id": row.key_id,
            "tokens": row.tokens,
            "digest": row.digest.hex(),
        }
        self.packer.put("event", fields, row.state, row.carried)

    def _keys(self, stream: StreamExtent) -> None:
        last = ""
        while keys := self.store.recorder.select_keys(stream.id, last, _AT_ONCE):
            for key in keys:
                # What was appended since the archive was begun is not in it.
                if key.last <= stream.last:
                    fields = {"key": key.key, "first": key.first, "last": key.last}
                    self.packer.put("key", fields)
            last = keys[-1].key
