"""Erases the sessions of a store, with all that was made of them."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from ...domain.errors import ConflictError, NotFoundError
from ..storage.databases.checked_cache import (
    BACKTEST_CACHE_FILE,
    SUMMARY_CACHE_FILE,
    empty_cache,
    find_cache_file,
)
from ..storage.databases.database_file import find_database_path
from ..storage.databases.sqlite_schema import LOG_APPLICATION_ID
from ..storage.event_log.addresses import is_postgres
from ..storage.event_log.chain import SessionName
from ..storage.event_log.deletion import delete_sessions, find_forks, find_subject
from ..storage.event_log.erasure import (
    TOMBSTONES,
    ErasedContent,
    erase_contents,
    mark_erased,
    measure_contents,
)
from ..storage.event_log.log_tables import DeletedStream
from ..storage.event_log.storage_errors import translate_storage_errors
from .sessions.store_context import StoreContext


@dataclass(slots=True)
class ErasureReport:
    """What an erasure removed, or would, and where else the content is; as in `erase --json`."""

    sessions: list[SessionName] = field(default_factory=list)
    """The namespace and key of each session, also of those that had been deleted before."""
    content: ErasedContent = field(default_factory=ErasedContent)
    still_in: list[str] = field(default_factory=list)
    """The backups and archives that were found with the content: erase it there as well."""
    is_dry_run: bool = False


@dataclass(slots=True)
class RetentionReport(ErasureReport):
    """What was erased since it was older than the settings say; as in `retention --json`."""

    kept_for_forks: list[SessionName] = field(default_factory=list)
    """Sessions of that age of which younger forks share a part."""


def erase(
    context: StoreContext,
    names: Sequence[SessionName] = (),
    *,
    subject: str | None = None,
    forks: bool = False,
    dry_run: bool = False,
    by: str | None = None,
    reason: str | None = None,
) -> ErasureReport:
    """Remove the content of these sessions, or of a subject's; see `SessionStore.erase`."""
    context.events.refuse_batch("an erasure")
    with translate_storage_errors(context.name):
        living, deleted = _find_wanted(context, names, subject)
        ids = _find_ids(context, living, deleted)
        shared = [one for one in find_forks(context.events, ids) if one[0] not in living]
        if shared and not forks:
            (_, key), segment = shared[0]
            raise ConflictError(
                f"the fork {key!r} shares positions {segment.first} to {segment.last} of what is to"
                " be erased: erase its forks as well, with forks=True or --forks, or delete it"
            )
        living += dict.fromkeys(name for name, _ in shared)
        report = ErasureReport(is_dry_run=dry_run)
        if dry_run:
            report.sessions = _list_names(living, deleted)
            report.content = measure_contents(
                context.events, _list_streams(context, living, deleted)
            )
            return report
        return _erase(context, report, living, deleted, by=by, reason=reason)


def apply_retention(
    context: StoreContext,
    *,
    dry_run: bool = False,
    by: str | None = None,
    rewrite: bool = True,
) -> RetentionReport:
    """Erase what is older than the settings say, by the time of its newest event.

    A session of which a younger fork shares a part stays as long as that fork. Without `rewrite`,
    a server's free space goes as it is used again.
    """
    context.events.refuse_batch("retention")
    report = RetentionReport(is_dry_run=dry_run)
    with translate_storage_errors(context.name):
        living, deleted = _find_expired(context)
        ids = _find_ids(context, living, deleted)
        kept = {
            segment.originator_id
            for name, segment in find_forks(context.events, ids)
            if name not in living
        }
        gone = [one for one in deleted if one.originator_id not in kept]
        expired = [one for one in living if context.events.find_session_id(*one) not in kept]
        report.kept_for_forks = [one for one in living if one not in expired]
        report.kept_for_forks += [one[1:3] for one in deleted if one not in gone]
        reason = "older than the settings keep"
        if dry_run or not (expired or gone):
            report.sessions = _list_names(expired, gone)
            return report
        _erase(context, report, expired, gone, by=by, reason=reason, rewrite=rewrite)
    return report


def finish_erasure(context: StoreContext, *, rewrite: bool = True) -> ErasedContent:
    """Remove the content of all sessions whose erasure is recorded; each step may be repeated."""
    models = context.find_read_models()
    if models is not None:
        models.forget_erased()
    for cache in (SUMMARY_CACHE_FILE, BACKTEST_CACHE_FILE):
        empty_cache(find_cache_file(cache))
    content, ids = erase_contents(context.events)
    context.events.recorder.purge(rewrite=rewrite)
    mark_erased(context.events, ids)
    return content


def _erase(
    context: StoreContext,
    report: RetentionReport | ErasureReport,
    living: Sequence[SessionName],
    deleted: Sequence[DeletedStream],
    *,
    by: str | None,
    reason: str | None,
    rewrite: bool = True,
) -> ErasureReport:
    ids = _find_ids(context, living, deleted)
    report.sessions = _list_names(living, deleted)
    delete_sessions(context.events, living, by=by, reason=reason, erase=True, deleted=deleted)
    report.content = finish_erasure(context, rewrite=rewrite)
    report.still_in = [str(path) for path in _find_copies(context, ids)]
    return report


def _find_wanted(
    context: StoreContext, names: Sequence[SessionName], subject: str | None
) -> tuple[list[SessionName], list[DeletedStream]]:
    """Return the sessions to erase: those that are there, and those that were deleted before.

    Raises NotFoundError if there is none.
    """
    recorder = context.events.recorder
    if subject is not None:
        living, deleted = find_subject(context.events, subject)
        if not living and not deleted:
            raise NotFoundError(f"nothing about the subject {subject!r} is left to erase")
        return living, deleted
    living = [name for name in names if context.events.load_session(*name) is not None]
    deleted = [
        one
        for name in names
        for one in recorder.select_deleted(*name)
        if one.lineage is None and one.erased is None
    ]
    known = {*living, *((one.namespace, one.session) for one in deleted)}
    for namespace, key in names:
        if (namespace, key) not in known:
            raise NotFoundError(f"no session {key!r} in {context.name}, and none was deleted")
    return living, deleted


def _find_expired(context: StoreContext) -> tuple[list[SessionName], list[DeletedStream]]:
    """Return what is older than the settings keep, and what of it was deleted before."""
    settings, events, now = context.settings.retention, context.events, context.events.clock()

    def is_expired(namespace: str, id: UUID) -> bool:
        if (age := settings.find_age(namespace)) is None:
            return False
        (newest,) = events.recorder.select_events(id, desc=True, limit=1)
        return events.mapper.to_domain_event(newest).timestamp + age <= now

    return (
        [
            name
            for name in events.recorder.select_sessions()
            if is_expired(name[0], events.find_session_id(*name))
        ],
        [
            one
            for one in events.recorder.select_deleted()
            if one.lineage is None
            and one.erased is None
            and is_expired(one.namespace, one.originator_id)
        ],
    )


def _find_ids(
    context: StoreContext, living: Iterable[SessionName], deleted: Iterable[DeletedStream]
) -> set[UUID]:
    find = context.events.find_session_id
    return {find(*name) for name in living} | {one.originator_id for one in deleted}


def _list_streams(
    context: StoreContext, living: Iterable[SessionName], deleted: Iterable[DeletedStream]
) -> Iterator[UUID]:
    """Yield the streams of these sessions, and of their lineages."""
    recorder = context.events.recorder
    for name in living:
        yield from (one.originator_id for one in recorder.select_streams(*name))
    for gone in deleted:
        for one in recorder.select_deleted(gone.namespace, gone.session):
            if one.generation == gone.generation:
                yield one.originator_id


def _list_names(
    living: Iterable[SessionName], deleted: Iterable[DeletedStream]
) -> list[SessionName]:
    return sorted({*living, *((one.namespace, one.session) for one in deleted)})


def _find_copies(context: StoreContext, ids: set[UUID]) -> Iterator[Path]:
    """Yield the databases in the folder of backups, and beside this one, with the content."""
    own = None if is_postgres(context.name) else find_database_path(context.name)
    folders = [own.parent] if own else []
    if backups := context.settings.maintenance.backup_folder:
        folders.append(Path(backups).expanduser())
    seen: set[Path] = set()
    for folder in folders:
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                file = path.resolve()
                if file not in {own, *seen} and file.is_file() and _holds_content(file, ids):
                    seen.add(file)
                    yield path


def _holds_content(file: Path, ids: set[UUID]) -> bool:
    """Return whether a database holds what one of these streams said; False for other files."""
    # What an erasure leaves carries nothing, but for the last events, which say that it is gone.
    query = (
        "SELECT 1 FROM stored_events WHERE originator_id = ? AND carried <> '{}' AND topic NOT IN"
        " (SELECT id FROM topics WHERE topic IN (SELECT value FROM json_each(?))) LIMIT 1"
    )
    tombstones = json.dumps(sorted(TOMBSTONES))
    with (
        suppress(OSError, sqlite3.Error),
        closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as found,
    ):
        (application,) = found.execute("PRAGMA application_id").fetchone()
        if application != LOG_APPLICATION_ID:
            return False
        return any(found.execute(query, (id.bytes, tombstones)).fetchone() for id in ids)
    return False
