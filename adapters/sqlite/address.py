"""Which file a name stands for, and what SQLite is told to open."""

import os
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4


def is_in_memory(name: str) -> bool:
    return name == ":memory:" or (name.startswith("file:") and "mode=memory" in name)


def path_of(name: str) -> Path | None:
    """The file that SQLite opens by that name, links followed; None where there is none."""
    if is_in_memory(name):
        return None
    if name.startswith("file:"):
        parts = urlsplit(name)
        if {"vfs", "immutable"} & parse_qs(parts.query).keys():
            return None
        name = unquote(parts.path)
    return Path(os.path.realpath(name))


def address_of(name: str) -> str:
    """What SQLite is told to open.

    A database in memory is this store's own. Its connections lock each other out as those of a
    file do, where with SQLite's shared cache a reader fails while another thread writes.
    """
    if is_in_memory(name):
        return f"file:/cutbank-{uuid4().hex}?vfs=memdb"
    return name
