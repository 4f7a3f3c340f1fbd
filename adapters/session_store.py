"""What callers hold first: a store of sessions in one database."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from eventsourcing.persistence import IntegrityError

from ..domain.errors import (
    NotFoundError,
    StorageError,
)
from ..domain.session import Session, session_id
from ..domain.session_events import (
    Parent,
)
from .databases import environment, shown
from .event_store import EventStore, utc_now
from .plain_errors import speaking_plainly
from .stored_session import StoredSession, check_name


def open_store(
    path: str | Path,
    *,
    synchronous: str = "FULL",
    compress: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> "SessionStore":
    """Open the database at `path`, or make it.

    `path` is a file; `:memory:` keeps all in this process; `postgresql://...` is a server's
    database, in which the schema `cutbank`, or the one that `?schema=` names, is made.
    `synchronous="NORMAL"` is faster, and a power cut may lose the last commits; FULL, the default,
    loses none. `compress` stores what is written from now on as Zstandard. An older database is
    migrated, a newer one refused.
    Raises StorageError, in one line, where it cannot be opened.
    """
    address = str(path)
    name = shown(address)
    env = environment(address, synchronous=synchronous, compress=compress)
    with speaking_plainly(name):
        return SessionStore(EventStore(env, clock), name)


class SessionStore:
    """All sessions of one database."""

    def __init__(self, events: EventStore, name: str) -> None:
        self.events = events
        self.name = name

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
    ) -> "StoredSession":
        """The session of that key; opened if there is none, unless `create` is False.

        `subject` is whom it is about, for erasure; `parent` the session and call that a
        sub-agent works for. Raises NotFoundError, saying what exists.
        """
        check_name("session key", key)
        check_name("namespace", namespace)
        if subject is not None:
            check_name("subject", subject)
        with (
            speaking_plainly(self.name),
            self.events.deciding_on(session_id(namespace, key)),
        ):
            if self.events.session(namespace, key) is None:
                if not create:
                    raise NotFoundError(self._no_session(namespace, key))
                opened = Session.open(
                    namespace,
                    key,
                    clock=self.events.clock,
                    subject=subject,
                    parent=parent,
                    source=source,
                    title=title,
                )
                with suppress(IntegrityError):  # another process opened it: that is as good
                    self.events.save(opened)
            return StoredSession(self, namespace, key)

    def sessions(self, namespace: str | None = None) -> list["StoredSession"]:
        """All sessions, by namespace and key."""
        with speaking_plainly(self.name):
            streams = self.events.recorder.select_streams(namespace)
        return [
            StoredSession(self, stream.namespace, stream.session)
            for stream in streams
            if stream.lineage is None
        ]

    def backup(self, target: str | Path) -> None:
        """Copy the whole database, as it is now, into a new file; others may go on writing."""
        path = Path(target)
        if path.exists():
            raise StorageError(f"{path} exists already: give a new path")
        with speaking_plainly(str(path)):
            self.events.recorder.backup(path)

    def close(self) -> None:
        """Close the database; sessions of this store cannot be used any more."""
        self.events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _no_session(self, namespace: str, key: str) -> str:
        streams = self.events.recorder.select_streams(namespace)
        keys = [stream.session for stream in streams if stream.lineage is None]
        known = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
        return f"no session {key!r} in {self.name} (there is: {known or 'none yet'})"
