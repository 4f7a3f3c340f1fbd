"""Caches values in a separate file, whose rows have checksums."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from platformdirs import user_cache_path
from pydantic import TypeAdapter

from ....domain.errors import CacheFileError, StorageError
from ..event_log.event_mapper import dump_json
from ..private_files import make_folder
from .database_file import immediate_transaction, open_own_file, rewrite_database

CACHE_APPLICATION_ID = 0x63626361
"""SQLite's application id, `cbca`."""

SUMMARY_CACHE_FILE, BACKTEST_CACHE_FILE = "summaries.db", "backtests.db"
"""The default files of the texts that models wrote for replays, and of what backtests measured."""

_T = TypeVar("_T")

_TABLE = "CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, content BLOB, digest BLOB)"
_INSERT = "INSERT OR REPLACE INTO kept (key, content, digest) VALUES (?, ?, ?)"
_SELECT = "SELECT content, digest FROM kept WHERE key = ?"


class CheckedCache(Generic[_T]):
    """An SQLite file that any number of processes may share and any user may delete.

    Raises CacheFileError if the file is not a cache, is damaged as a whole, or cannot be written.
    """

    def __init__(self, path: Path, kind: TypeAdapter[_T], remedy: str) -> None:
        """`remedy` tells users what to do if the file cannot be used."""
        self.path = path
        self.kind = kind
        self.remedy = remedy
        self.damaged = 0
        """The number of damaged rows that were requested."""
        with self._translate_errors():
            make_folder(path.parent)
            self._connection = open_own_file(str(path), CACHE_APPLICATION_ID)
            with immediate_transaction(self._connection):
                self._connection.execute(_TABLE)
                self._connection.execute(f"PRAGMA application_id = {CACHE_APPLICATION_ID}")

    def get(self, key: str) -> _T | None:
        try:
            found = self._connection.execute(_SELECT, (key,)).fetchone()
        except sqlite3.DatabaseError:  # on an unreadable page
            self.damaged += 1
            return None
        if found is None:
            return None
        content, digest = found
        if isinstance(content, bytes) and digest == _compute_digest(key, content):
            try:
                return self.kind.validate_python(json.loads(content))
            except ValueError:  # written by a version with another meaning
                pass
        self.damaged += 1
        return None

    def put(self, key: str, kept: _T) -> None:
        """Store a value, replacing any earlier one."""
        # Not pydantic's own JSON, which cannot hold lone surrogates.
        content = dump_json(self.kind.dump_python(kept))
        with self._translate_errors():
            self._connection.execute(_INSERT, (key, content, _compute_digest(key, content)))

    def clear(self) -> None:
        with self._translate_errors():
            self._connection.execute("DELETE FROM kept")
            rewrite_database(self._connection, str(self.path))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            raise CacheFileError(f"{error}, or {self.remedy}") from None
        except (sqlite3.Error, OSError) as error:
            raise CacheFileError(
                f"the cache {self.path} cannot be used ({error}): delete it, or {self.remedy}"
            ) from None


def empty_cache(path: Path) -> None:
    """Remove all that a cache holds, also from free pages. Does nothing if there is no such cache.

    Raises CacheFileError if it cannot be written, or another process goes on reading it.
    """
    if path.exists():
        kind: TypeAdapter[Any] = TypeAdapter(Any)
        with CheckedCache(path, kind, "end the programs that use it") as cache:
            cache.clear()


def find_cache_file(name: str) -> Path:
    """Return the default place of a cache of that name."""
    return user_cache_path("cutbank", appauthor=False) / name


def make_cache_key(asked: Any) -> str:
    """Return the key of JSON values; only the order of lists matters."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def _compute_digest(key: str, content: bytes) -> bytes:
    return blake2b(key.encode() + b":" + content, digest_size=16).digest()
