"""Maps database names to files and to SQLite's addresses."""

import os
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4


def is_in_memory(name: str) -> bool:
    return name == ":memory:" or (name.startswith("file:") and "mode=memory" in name)


def make_absolute_name(name: str) -> str:
    """Return the same file's name independent of the current folder."""
    if not name or is_in_memory(name):
        return name
    if not name.startswith("file:"):
        return os.path.abspath(name)  # noqa: PTH100 - keeps links, as in messages
    parts = urlsplit(name)
    if parts.netloc or parts.path.startswith("/") or "vfs" in parse_qs(parts.query):
        return name
    return f"file:{quote(os.getcwd())}/{name.removeprefix('file:')}"  # noqa: PTH109 - text


def find_database_path(name: str) -> Path | None:
    """Return the file that SQLite opens by that name, following links; None if there is none."""
    if is_in_memory(name):
        return None
    if name.startswith("file:"):
        parts = urlsplit(name)
        if {"vfs", "immutable"} & parse_qs(parts.query).keys():
            return None
        name = unquote(parts.path)
    return Path(os.path.realpath(name))


def creates_file(name: str) -> bool:
    """Return whether SQLite creates a missing file."""
    mode = parse_qs(urlsplit(name).query).get("mode") if name.startswith("file:") else None
    return mode in (None, ["rwc"])


def make_sqlite_address(name: str) -> str:
    """Return the address for SQLite.

    A database in memory belongs to one store. It uses memdb, whose connections lock like those of a
    file; with SQLite's shared cache, a reader would fail while another thread writes.
    """
    if is_in_memory(name):
        return f"file:/cutbank-{uuid4().hex}?vfs=memdb"
    return name
