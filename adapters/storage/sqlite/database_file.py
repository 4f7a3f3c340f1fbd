"""Which file a name stands for, and what SQLite is told to open."""

import os
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4


def is_in_memory(name: str) -> bool:
    return name == ":memory:" or (name.startswith("file:") and "mode=memory" in name)


def make_absolute_name(name: str) -> str:
    """The same file by a name that does not depend on the current folder."""
    if not name or is_in_memory(name):
        return name
    if not name.startswith("file:"):
        return os.path.abspath(name)  # noqa: PTH100 - keeps links, as the name is shown
    parts = urlsplit(name)
    if parts.netloc or parts.path.startswith("/") or "vfs" in parse_qs(parts.query):
        return name
    return f"file:{quote(os.getcwd())}/{name.removeprefix('file:')}"  # noqa: PTH109 - text


def find_database_path(name: str) -> Path | None:
    """The file that SQLite opens by that name, links followed; None where there is none."""
    if is_in_memory(name):
        return None
    if name.startswith("file:"):
        parts = urlsplit(name)
        if {"vfs", "immutable"} & parse_qs(parts.query).keys():
            return None
        name = unquote(parts.path)
    return Path(os.path.realpath(name))


def creates_file(name: str) -> bool:
    """Whether SQLite makes the file where there is none."""
    mode = parse_qs(urlsplit(name).query).get("mode") if name.startswith("file:") else None
    return mode in (None, ["rwc"])


def make_sqlite_address(name: str) -> str:
    """What SQLite is told to open.

    A database in memory is this store's own. Its connections lock each other out as those of a
    file do, where with SQLite's shared cache a reader fails while another thread writes.
    """
    if is_in_memory(name):
        return f"file:/cutbank-{uuid4().hex}?vfs=memdb"
    return name
