"""Keeps what models wrote for replays, each text by a digest of all that it was asked for."""

import json
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from sqlite3 import DatabaseError, connect
from types import TracebackType
from typing import Any, Self

from platformdirs import user_cache_path
from pydantic import TypeAdapter

from ...domain.errors import StorageError
from ...domain.ranges import Ranges
from ...domain.record import Record
from ...domain.session_events import Usage
from ...domain.summaries.summariser import Draft

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process that writes to the same file."""


class Kept(Record):
    """A draft as the cache holds it."""

    text: str
    sections: dict[str, str] = {}
    cites: Ranges = Ranges()
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    was_truncated: bool = False

    @classmethod
    def of(cls, draft: Draft) -> "Kept":
        return cls(**{name: getattr(draft, name) for name in cls.model_fields})

    @property
    def draft(self) -> Draft:
        return Draft(**{name: getattr(self, name) for name in type(self).model_fields})


_KEPT = TypeAdapter(Kept)


class SummaryCache:
    """One SQLite file; any number of processes may share it, and anybody may delete it."""

    def __init__(self, file: Path | None = None) -> None:
        """`file` is made where there is none; else the one in the user's cache folder.

        Raises StorageError where it is no database, or cannot be made.
        """
        from sqlite_utils import Database  # noqa: PLC0415 - it takes its time

        self.file = file or user_cache_path("cutbank", appauthor=False) / "summaries.db"
        self.damage: list[str] = []
        """Entries that cannot be believed, a line each: they count as missing."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            connection = connect(self.file, timeout=LOCK_TIMEOUT, isolation_level=None)
            self._db = Database(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            if "summaries" not in self._db.table_names():
                self._db["summaries"].create(  # type: ignore[union-attr]
                    {"key": str, "draft": str, "digest": str}, pk="key", if_not_exists=True
                )
        except (DatabaseError, OSError) as error:
            raise StorageError(
                f"the cache of summaries {self.file} cannot be used ({error}): "
                "delete it, or name another with --cache"
            ) from None

    def get(self, key: str) -> Draft | None:
        """The draft of that key; None where there is none that can be believed."""
        row = self._one("SELECT draft, digest FROM summaries WHERE key = ?", key)
        if row is None:
            return None
        draft, digest = row
        if digest == _digest(key, draft):
            with suppress(ValueError):  # pydantic's is one too
                return _KEPT.validate_python(json.loads(draft)).draft
        self.damage.append(f"the entry {key[:12]} of {self.file} is not what was written there")
        return None

    def put(self, key: str, draft: Draft) -> None:
        """Keep a draft, in place of what stood there."""
        text = json.dumps(Kept.of(draft).model_dump(mode="json"))
        try:
            self._db.execute(
                "INSERT OR REPLACE INTO summaries (key, draft, digest) VALUES (?, ?, ?)",
                (key, text, _digest(key, text)),
            )
        except DatabaseError as error:
            raise StorageError(f"{self.file} cannot be written: {error}") from None

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _one(self, query: str, key: str) -> tuple[Any, Any] | None:
        try:
            found: tuple[Any, Any] | None = self._db.execute(query, (key,)).fetchone()
        except DatabaseError as error:
            raise StorageError(
                f"{self.file} cannot be read ({error}): delete it, or name another with --cache"
            ) from None
        return found


def key_of(asked: Any) -> str:
    """The key of what is asked: JSON values, whose order counts in lists alone."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def _digest(key: str, text: Any) -> str:
    said = f"{key}:{text}".encode("utf-8", "surrogatepass")
    return blake2b(said, digest_size=16).hexdigest()
