"""Writes sessions into a database of their own, and restores them from any cutbank database."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import BinaryIO

from eventsourcing.persistence import IntegrityError

from ...domain.compaction_events import CompactBoundary
from ...domain.errors import ExportError, ImportFileError
from ...domain.session_events import BlockAppended, ToolCalled, ToolReturned
from ..storage.databases.sqlite_schema import LOG_APPLICATION_ID
from ..storage.databases.wal_mode import SQLITE_MAGIC
from ..storage.event_log.event_store import EventStore, make_environment
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.private_files import open_new_path
from ..transcripts.formats.catalog import ARCHIVE_FORMAT
from ..transcripts.reports import ExportReport, FileReport
from .archive_extents import SessionExtent, add_descendants, find_families
from .log_copy import LogCopy
from .sessions.session_log import list_logs
from .sessions.session_store import SessionStore
from .sessions.stored_session import StoredSession

_BLOCK_TOPICS = {one.TOPIC for one in (BlockAppended, ToolCalled, ToolReturned)}
_GZIP_MAGIC = b"\x1f\x8b"
_HEADER_BYTES = 72
"""The beginning of an SQLite file, up to the id of its application."""


def write_archive(
    sessions: Sequence[StoredSession], target: Path | BinaryIO, *, sub_agents: bool = False
) -> ExportReport:
    """Write whole sessions of one store into a new SQLite database, with their lineages and forks.

    It also holds what forks share of other sessions; `sub_agents` adds the sessions of their
    sub-agents. Raises ExportError if there is nothing to write or the target exists.
    """
    if not sessions:
        raise ExportError("there is no session to write: name one")
    context = sessions[0].log.context
    with translate_storage_errors(context.name):
        wanted = [(one.namespace, one.key) for one in sessions]
        if sub_agents:
            agents = {
                (one.namespace, one.key): (parent.namespace, parent.key)
                for one in list_logs(context)
                if (parent := one.parent)
            }
            wanted = add_descendants(wanted, agents)
        families = find_families(context.events, wanted)
    if isinstance(target, Path):
        with open_new_path(target) as beside:
            written = _write_database(context.events, context.name, families, beside)
    else:
        with TemporaryDirectory() as folder:
            written = _write_database(context.events, context.name, families, Path(folder, "log"))
            with Path(folder, "log").open("rb") as made:
                copyfileobj(made, target)
    return ExportReport(
        session=sessions[0].key,
        format=ARCHIVE_FORMAT,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="archive",
        sessions=[one.name[1] for family in families for one in family if one.is_whole],
    )


def _write_database(
    source: EventStore, name: str, families: list[list[SessionExtent]], path: Path
) -> int:
    with (
        translate_storage_errors(f"the copy of {name} in {path}"),
        closing(_open_log(path)) as made,
    ):
        copying = LogCopy(source, made)
        for family in families:
            copying.copy(family)
    return path.stat().st_size


def is_database(path: Path) -> bool:
    """Return whether the file is a database of cutbank.

    Raises ImportFileError for a packed file; all other readable formats are plain text.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if header.startswith(_GZIP_MAGIC):
        raise ImportFileError(
            "it is packed: unpack it; an archive of an earlier cutbank has to be restored with "
            "that one, and exported again"
        )
    return header.startswith(SQLITE_MAGIC) and header.endswith(LOG_APPLICATION_ID.to_bytes(4))


def import_database(
    store: SessionStore,
    path: Path,
    report: FileReport,
    *,
    namespace: str | None = None,
    report_bytes: Callable[[int], None] | None = None,
) -> None:
    """Copy the sessions of another cutbank database; the events stay as they were stored there.

    Events that are already stored are skipped. With `namespace` the sessions go there. A database
    that cannot be imported whole is reported as one error before anything is stored.
    """
    report.format = ARCHIVE_FORMAT
    source = None
    try:
        with translate_storage_errors(str(path)):
            source = _open_log(path)
            copying = LogCopy(source, store.events, namespace)
            families = _check_log(copying, report, report_bytes)
    except Exception as error:  # noqa: BLE001 - damaged content may fail in any way
        said = " ".join(str(error).split()) or type(error).__name__
        report.errors.append(said if said.startswith(str(path)) else f"{path}: {said[:300]}")
    else:
        restored = (one for family in families for one in family if not one.is_deleted)
        report.sessions = [one.name[1] for one in restored]
        try:
            for family in families:
                stored = copying.copy(family)
                report.added += sum(stored[topic] for topic in _BLOCK_TOPICS)
            report.complete = True
        except IntegrityError:
            report.errors.append(f"{path}: others wrote to its sessions meanwhile: import it again")
    finally:
        if source is not None:
            source.close()


def _check_log(
    copying: LogCopy, report: FileReport, report_bytes: Callable[[int], None] | None
) -> list[list[SessionExtent]]:
    """Return the source's families, after all of them were checked and compared."""
    for problem in copying.source.recorder.find_problems():
        raise ImportFileError(f"it is damaged: {problem}")
    families = find_families(copying.source)
    sessions = [one for family in families for one in family]
    names = Counter((copying.namespace or one.name[0], *one.name[1:]) for one in sessions)
    for (_, key, _), count in names.items():
        if count > 1:
            raise ImportFileError(f"it holds {count} sessions {key!r} for one namespace")
    total = sum(last - first + 1 for one in sessions for _, first, last in one.streams)
    topics = Counter[str]()
    for session in sessions:
        for row in copying.check_session(session):
            topics[row.topic] += 1
            if report_bytes and (done := topics.total()) % 100 == 0:
                report_bytes(report.bytes * done // total)
        copying.compare_session(session)
    report.entries = report.imported = report.ended["imported"] = topics.total()
    report.tool_calls = topics[ToolCalled.TOPIC]
    report.tool_results = topics[ToolReturned.TOPIC]
    report.compactions = topics[CompactBoundary.TOPIC]
    return families


def _open_log(path: Path) -> EventStore:
    return EventStore(make_environment(str(path.absolute()), synchronous="FULL", compress=False))
