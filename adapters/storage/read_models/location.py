"""Locates a log's read models, and reads one row without the code that updates them."""

import os
import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from platformdirs import user_state_path

from ....domain.errors import StorageError
from ..event_log.addresses import hide_passwords, is_postgres
from ..private_files import make_folder
from ..sqlite.database_file import is_in_memory, make_sqlite_address

LOCK_TIMEOUT_S = 1.0
"""How long to wait for a rebuild; a saved row can also be computed from the log."""


def find_read_models(address: str) -> str:
    """Return the SQLite address of the read models for the log at `address`.

    A log in memory has read models in memory. For a log on a server, or in a read-only folder, they
    are in the user's state folder.
    """
    if is_postgres(address):
        # The password does not change which log it is.
        return str(_state_folder_path(hide_passwords(address)))
    if is_in_memory(address):
        return make_sqlite_address(address)
    path, said = Path(address), dict[str, list[str]]()
    if address.startswith("file:"):
        uri = urlsplit(address)
        path, said = Path(unquote(uri.path)), parse_qs(uri.query)
    path = path.resolve()
    is_read_only = said.get("mode") == ["ro"] or "immutable" in said
    if is_read_only or not os.access(path.parent, os.W_OK):
        return str(_state_folder_path(str(path)))
    return str(path.with_name(f"{path.stem}.read{path.suffix or '.db'}"))


def _state_folder_path(name: str) -> Path:
    folder = user_state_path("cutbank", appauthor=False)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder}, where read models are kept, cannot be made ({error.strerror}):"
            " set XDG_STATE_HOME to a folder that can be written"
        ) from None
    return folder / f"{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}.db"


def read_saved_row(name: str, query: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the first row that a query finds in the read models of that name.

    Returns None also if there are none or they are unreadable; the next save rebuilds them.
    """
    address = name if name.startswith("file:") else f"{Path(name).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S)) as connection:
            row: tuple[Any, ...] | None = connection.execute(query, parameters).fetchone()
    except sqlite3.Error:
        # Missing, of another version, damaged or in use: treated as if nothing were saved.
        return None
    return row
