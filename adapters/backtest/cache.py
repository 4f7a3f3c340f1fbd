"""Keeps what was measured, by its fingerprint, so that a backtest goes on where it stopped."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from platformdirs import user_cache_path
from pydantic import TypeAdapter, ValidationError

from ...domain.backtest.cell import Cell
from ...domain.backtest.result import Control
from ...domain.errors import BacktestError
from .errands import Result

APPLICATION = 0x63626274
"""By which SQLite says whose file it is: `cbbt`."""
BUSY_S = 30.0
"""How long another backtest on the same file is waited for."""

_TABLE = "create table if not exists measured (key text primary key, content blob, digest blob)"
_INSERT = "insert or replace into measured (key, content, digest) values (?, ?, ?)"
_SELECT = "select content, digest from measured where key = ?"
_RESULT: TypeAdapter[Result] = TypeAdapter(Cell | tuple[Control, ...])


class Cache:
    """A file of rows that prove themselves: one that does not is measured anew.

    Any number of backtests may use it at once. Raises BacktestError, in one line, where the file
    is none of this kind, is damaged, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """Rows that were not what had been written."""
        with self._plainly():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            with self._plainly():
                self._open()
        except BaseException:
            self._connection.close()
            raise

    def get(self, key: str) -> Result | None:
        """What was measured under that fingerprint; None where nothing sound is there."""
        try:
            found = self._connection.execute(_SELECT, (key,)).fetchone()
        except sqlite3.DatabaseError:  # on a page that cannot be read
            self.damaged += 1
            return None
        if found is None:
            return None
        content, digest = found
        if not isinstance(content, bytes) or digest != _digest(key, content):
            self.damaged += 1
            return None
        try:
            return _RESULT.validate_json(content)
        except ValidationError:  # it was written so, by a version that meant something else by it
            self.damaged += 1
            return None

    def put(self, key: str, result: Result) -> None:
        content = _RESULT.dump_json(result)
        with self._plainly():
            # By hand: what a library looks up after it another backtest may have replaced.
            self._connection.execute(_INSERT, (key, content, _digest(key, content)))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        connection = self._connection
        connection.execute("pragma journal_mode")  # whether it is a database at all
        connection.execute("begin immediate")
        (application,) = connection.execute("pragma application_id").fetchone()
        (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
        if tables and application != APPLICATION:
            raise BacktestError(
                f"{self.path} is another program's database: name another file with --cache"
            )
        connection.execute(f"pragma application_id = {APPLICATION}")
        connection.execute(_TABLE)
        connection.execute("commit")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise BacktestError(
                f"the cache {self.path} cannot be used ({error}): remove it, name another with"
                " --cache, or do without by --no-cache"
            ) from None


def usual_cache() -> Path:
    """Where a cache is that nobody named."""
    return user_cache_path("cutbank", appauthor=False) / "backtests.db"


def _digest(key: str, content: bytes) -> bytes:
    return blake2b(key.encode() + content, digest_size=16).digest()
