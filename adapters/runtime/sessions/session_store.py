"""Opens a store: all sessions of one database."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eventsourcing.persistence import IntegrityError

from ....domain.errors import InvalidSettingError, NotFoundError, StorageError
from ....domain.hooks import Listener
from ....domain.session import Session
from ....domain.session_events import Parent
from ...storage.databases.database_file import find_database_path
from ...storage.event_log.addresses import hide_passwords, is_postgres, make_absolute
from ...storage.event_log.chain import SessionName
from ...storage.event_log.event_store import EventStore, get_utc_now, make_environment
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.private_files import is_shared
from .session_log import SessionLog, check_name, check_time_zone, list_logs
from .store_context import Opening, StoreContext
from .stored_session import StoredSession

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from ...storage.read_models.index_queries import CostReport
    from ...storage.read_models.read_models import ReadModelFollower, ReadModels
    from ...storage.read_models.search import SearchHit
    from ..erasing import ErasureReport, RetentionReport

logger = logging.getLogger("cutbank.storage")


def open_store(
    path: str | Path,
    *,
    synchronous: str = "FULL",
    compress: bool = False,
    settings: "Settings | str | Path | None" = None,
    clock: Callable[[], datetime] = get_utc_now,
) -> "SessionStore":
    """Open the database at `path`, or create it; this is `cutbank.open`.

    `path` is a file, which stays the same one if the current folder changes; `:memory:` keeps all
    in this process; `postgresql://...` or `host=... dbname=...` is a server's database, in which
    the schema `cutbank`, or the one that `?schema=` names, is created. `synchronous="NORMAL"` is
    faster, but a power cut may lose the last commits; FULL, the default, loses none. `compress`
    stores events as Zstandard too, as large contents always are. An older database is migrated, a
    newer one refused. `settings` are a file or a value; by default they are read as `cutbank
    settings` describes, when the first compaction needs them. Raises StorageError, in one line, if
    the database cannot be opened.
    """
    address = make_absolute(str(path))
    name = hide_passwords(address)
    env = make_environment(address, synchronous=synchronous, compress=compress)
    with translate_storage_errors(name):
        store = SessionStore(StoreContext(EventStore(env, clock), name, settings))
    if clock is get_utc_now:
        store.context.opening = Opening(address, synchronous, compress)
    file = None if is_postgres(address) else find_database_path(address)
    if file is not None and is_shared(file):
        _warn_shared(file)
    _finish_erasure(store.context)
    return store


open = open_store
"""The public name."""


def _finish_erasure(context: StoreContext) -> None:
    """Make up for an erasure that was interrupted."""
    try:
        with translate_storage_errors(context.name):
            if context.events.recorder.has_unfinished_erasure():
                from ..erasing import finish_erasure  # noqa: PLC0415 - start-up time

                finish_erasure(context)
    except StorageError as error:
        logger.warning("an erasure is not finished: %s", error)


def _list_names(sessions: Sequence[StoredSession | str], namespace: str) -> list[SessionName]:
    names = [
        (namespace, one) if isinstance(one, str) else (one.namespace, one.key) for one in sessions
    ]
    return list(dict.fromkeys(names))


@cache
def _warn_shared(file: Path) -> None:
    """Once in a process."""
    logger.warning("%s can be read by others: if they should not, chmod 600 it", file)


class SessionStore:
    """All sessions of one database."""

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        """The log, for tools that work on events."""
        self.listeners: list[Listener] = context.added_listeners
        """Called with each event of each compaction in this store: see `domain.hooks`."""

    def __repr__(self) -> str:
        return f"<store {self.name}>"

    @property
    def name(self) -> str:
        """The address of the database, without a password."""
        return self.context.name

    @property
    def events(self) -> EventStore:
        """The log itself."""
        return self.context.events

    @property
    def settings(self) -> "Settings":
        """How sessions are compacted where a call does not say.

        Raises InvalidSettingError, one line for each mistake, with file and line or variable.
        """
        return self.context.settings

    def apply_settings(self, settings: "Settings") -> None:
        """Use these settings from now on; work that was begun ends by the old ones.

        Loops keep the settings that they were made with. Raises NotFoundError, and changes nothing,
        if the vocabulary of the tokenizer is not on this machine.
        """
        self.context.apply_settings(settings)

    def set_tokenizer(self, name: str) -> None:
        """Count the tokens of new blocks with `chars/4`, `o200k_base`, ...

        Counts that were recorded stay as they are. Raises NotFoundError if the vocabulary is not on
        this machine, and InvalidSettingError for a name that does not exist.
        """
        self.context.set_tokenizer(name)

    def session(
        self,
        key: str,
        *,
        namespace: str = "default",
        create: bool = True,
        subject: str | None = None,
        parent: Parent | None = None,
        source: str | None = None,
        title: str | None = None,
        project: str | None = None,
    ) -> StoredSession:
        """The session of that key; opened if there is none, unless `create` is False.

        `subject` is whom it is about, for erasure; `parent` the session and call that a
        sub-agent works for; `project` the folder that the agent works in, or a name, by which
        costs are summed. Raises NotFoundError, saying what exists.
        """
        check_name("session key", key)
        check_name("namespace", namespace)
        if subject is not None:
            check_name("subject", subject)
        with (
            translate_storage_errors(self.context.name),
            self.events.lock_streams(self.events.find_session_id(namespace, key)),
        ):
            if self.events.load_session(namespace, key) is None:
                if not create:
                    raise NotFoundError(self._describe_missing(namespace, key))
                opened = Session.open(
                    namespace,
                    key,
                    generation=self.events.find_generation(namespace, key),
                    clock=self.events.clock,
                    subject=subject,
                    parent=parent,
                    source=source,
                    title=title,
                    project=project,
                )
                with suppress(IntegrityError):  # another process opened it: that is as good
                    self.events.save(opened)
            return StoredSession(SessionLog(self.context, namespace, key))

    def sessions(
        self,
        namespace: str | None = None,
        *,
        prefix: str = "",
        since: datetime | None = None,
        after: StoredSession | None = None,
        limit: int | None = None,
    ) -> list[StoredSession]:
        """List sessions by namespace and key; `info` says when each was changed, and its sizes.

        Only those whose keys begin with `prefix`, in which something was said `since` then, that
        come `after` the last one of the page before, and at most `limit` of them. Raises
        InvalidSettingError for a time without a time zone.
        """
        last = (after.namespace, after.key) if after else ("", "")
        if since is None:
            found = list_logs(self.context, namespace, prefix=prefix, after=last, limit=limit)
            return [StoredSession(log) for log in found]
        from ...storage.read_models.index_queries import find_active_sessions  # noqa: PLC0415 - start-up time

        check_time_zone(since)
        self.read_models.catch_up(search=False)
        active = find_active_sessions(self.read_models, since)
        found = list_logs(self.context, namespace, prefix=prefix, after=last)
        return [StoredSession(log) for log in found if (log.namespace, log.key) in active][:limit]

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Store all that this thread writes until the block ends in one transaction, or nothing.

        That is what sessions append, record, retract and configure, and which are opened, forked or
        deleted.
        Reads in the block see it, and all others once it is stored. An error that leaves the block
        undoes it, ConflictError of a stale `expect` as any other. A batch within another one is a
        part of it: undone alone if its own error is caught. Keep it short, for with SQLite all
        other writers wait, and await nothing in it: `run_async` runs a function that holds it.
        Compactions, imports, erasures, and what the read models answer (search, costs) cannot be
        part of it, and raise StorageError.
        """
        with ExitStack() as transaction:
            with translate_storage_errors(self.name):
                transaction.enter_context(self.events.batch())
            yield
            with translate_storage_errors(self.name):
                transaction.close()

    def delete(
        self,
        *sessions: StoredSession | str,
        namespace: str = "default",
        by: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Delete sessions, given as such or by key, in one transaction: as if never written.

        They are gone from lists, search, views and idle work, and their names are free at once;
        forks keep what they share as their own. The content stays in the file until it is erased.
        `by` and `reason` are recorded. Raises NotFoundError, and deletes none, if one is not there.
        """
        from ...storage.event_log.deletion import delete_sessions  # noqa: PLC0415 - start-up time

        with translate_storage_errors(self.name):
            delete_sessions(self.events, _list_names(sessions, namespace), by=by, reason=reason)

    def erase(
        self,
        *sessions: StoredSession | str,
        namespace: str = "default",
        subject: str | None = None,
        forks: bool = False,
        dry_run: bool = False,
        by: str | None = None,
        reason: str | None = None,
    ) -> "ErasureReport":
        """Delete sessions, or all about a subject, and remove every byte of their content.

        What was deleted before under these names goes too. Types, positions, sizes and digests of
        the events stay, with `by`, `reason` and the time. Writes the whole file again, for which
        others wait. A crash is made up for at the next opening. Raises NotFoundError if there is
        nothing, and ConflictError if a fork shares a part that is to go: `forks` erases it as well.
        With `dry_run`, only say what would go.
        """
        from ..erasing import erase  # noqa: PLC0415 - start-up time

        if (subject is None) == (not sessions):
            raise InvalidSettingError("nothing to erase: give either sessions or a subject")
        names = _list_names(sessions, namespace)
        return erase(
            self.context,
            names,
            subject=subject,
            forks=forks,
            dry_run=dry_run,
            by=by,
            reason=reason,
        )

    def apply_retention(self, *, dry_run: bool = False, by: str | None = None) -> "RetentionReport":
        """Erase what is older than the settings, section `retention`, say; see `erase`.

        The time of a session's newest event counts. With `dry_run`, only say what would go.
        """
        from ..erasing import apply_retention  # noqa: PLC0415 - start-up time

        return apply_retention(self.context, dry_run=dry_run, by=by)

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        namespace: str | None = None,
        limit: int = 20,
    ) -> "list[SearchHit]":
        """Full text over everything ever said, hidden, retracted or compacted away or not.

        `query` is words, `"phrases"`, `-words` that must not be there, and `beginnings*`. Takes
        in first what is new; the best matches come first, or the newest of very many. `session`
        searches one of `namespace`, or else of the default one. Raises InvalidSettingError for a
        query that cannot be understood, NotFoundError for a session that does not exist.
        """
        if session is not None:
            self.session(session, namespace=namespace or "default", create=False)
        return self.read_models.search(query, session=session, namespace=namespace, limit=limit)

    def costs(
        self, by: str = "day", *, since: datetime | None = None, namespace: str | None = None
    ) -> "CostReport":
        """What the recorded calls of models cost, summed by `day`, `project`, `model` or `session`.

        A call costs what the log says, or else its tokens at the prices of its day: those of the
        settings, or list prices. Calls that an agent copied into another file count once. Models
        without a known price are named in `unpriced`, and no sum holds them. Takes in what is new
        first. Raises InvalidSettingError for any other `by`.
        """
        from ...models.context_limits import make_overrides  # noqa: PLC0415 - as above
        from ...storage.read_models.index_queries import sum_costs  # noqa: PLC0415 - as above

        self.read_models.catch_up(search=False)
        overrides = make_overrides(self.settings)
        with translate_storage_errors(self.read_models.name):
            return sum_costs(self.read_models, overrides, by=by, since=since, namespace=namespace)

    @property
    def read_models(self) -> "ReadModels":
        """The disposable file next to the database that answers questions about all sessions."""
        return self.context.read_models

    def follow_log(self) -> "ReadModelFollower":
        """Keep the read models up to date, from a thread, until `stop()` or the store is closed."""
        from ...storage.read_models.read_models import ReadModelFollower  # noqa: PLC0415 - start-up time

        follower = ReadModelFollower(self.read_models)
        self.context.background.append(follower)
        return follower

    def backup(self, target: str | Path) -> None:
        """Copy the whole database, as it is now, into a new file; others may go on writing."""
        path = Path(target)
        if path.exists():
            raise StorageError(f"{path} exists already: give a new path")
        with translate_storage_errors(str(path)):
            self.events.recorder.backup(path)

    def close(self) -> None:
        """Close the database; sessions of this store cannot be used any more.

        Summaries that are written ahead are cancelled; followers and schedulers are stopped.
        """
        self.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _describe_missing(self, namespace: str, key: str) -> str:
        keys = [key for _, key in self.events.recorder.select_sessions(namespace, limit=6)]
        known = ", ".join(keys[:5]) + (" and more" if len(keys) > 5 else "")
        return f"no session {key!r} in {self.name} (there is: {known or 'none yet'})"
