"""Opens the database: the named one, the environment's, or the one in the data folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_data_path

from ....domain.errors import StorageError
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.addresses import hide_passwords, is_postgres, make_absolute
from ...storage.event_log.database_addresses import has_log_tables
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.private_files import make_folder
from ...storage.sqlite.sqlite_storage import adopt_copy
from ..opening import open as open_store
from .invocation import DATABASE_VARIABLE, Invocation
from .session_lookup import LAST_WORD, find_session


@contextmanager
def open_call_store(
    call: Invocation, *, creates: bool = False, adopts: bool = False
) -> Iterator[SessionStore]:
    """Open the database for one verb; if the verb `creates`, make a missing named one.

    With `adopts`, a copy that was made in use is accepted from now on.
    """
    address = find_call_database(call, creates=creates)
    if adopts:
        adopt_copy(address)
    with (
        open_store(address, settings=call.settings_file) as store,
        translate_storage_errors(store.name),
    ):
        yield store


@contextmanager
def open_call_session(
    call: Invocation, key: str, *, creates: bool = False
) -> Iterator[StoredSession]:
    """Open the session that `key` names; if the verb `creates`, make a missing one."""
    with open_call_store(call, creates=creates) as store:
        if creates and key != LAST_WORD:
            yield store.session(key, namespace=call.namespace)
        else:
            yield find_session(store, key, call.namespace)


def find_call_database(call: Invocation, *, creates: bool = False) -> str:
    if call.db == "":
        raise StorageError("--db needs a path or an address")
    named = call.db or os.environ.get(DATABASE_VARIABLE)
    if not named:
        return str(_default_path())
    if named.startswith("file:"):
        return named  # SQLite's own notation, which may request read-only access
    if is_postgres(named):
        if not creates and not has_log_tables(named):
            raise StorageError(
                f"{hide_passwords(named)} holds no sessions: `import`, `append` and `demo` "
                "make the tables"
            )
        return named
    make_absolute(named)  # raises for an invalid path
    path = Path(named)
    with suppress(RuntimeError):  # an unknown home: use the name literally
        path = path.expanduser()
    if not creates and not path.exists():
        # Opening creates a file, so a typo in the path would show an empty database.
        raise StorageError(f"{path} does not exist: `import`, `append` and `demo` make it")
    return str(path)


def _default_path() -> Path:
    folder = user_data_path("cutbank", appauthor=False)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be made ({error.strerror}): name a database with --db"
        ) from None
    return folder / "cutbank.db"
