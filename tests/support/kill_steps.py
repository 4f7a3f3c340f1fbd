"""Kills this very process at a named step of what it does to its database.

A step is the n-th statement that is about to run, once `begin` was called; or the moment when a
write is committed and its caller does not know yet.
"""

import os
import re
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from cutbank.adapters.storage.databases.postgres_recorder import PostgresRecorder
from cutbank.adapters.storage.databases.sqlite_recorder import SQLiteRecorder

ANY = ""
COMMITTED = "committed"

_pattern = re.compile(ANY)
_left = 0
_is_begun = False
statements: list[str] = []
"""What was run since `begin`, where nothing is to be killed."""


def install(pattern: str, nth: int) -> None:
    """Kill this process before the n-th statement that matches; or, for COMMITTED, after a write.

    With `nth` 0 it is not killed, and `statements` lists the steps.
    """
    global _pattern, _left
    _pattern, _left = re.compile(pattern), nth
    connect, ask = sqlite3.connect, psycopg.Cursor.execute

    def watched(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(_reached)
        return connection

    def asked(self: psycopg.Cursor[Any], query: Any, *arguments: Any, **named: Any) -> Any:
        _reached(query.decode() if isinstance(query, bytes) else str(query))
        return ask(self, query, *arguments, **named)

    for name in ("rename", "unlink"):
        setattr(Path, name, _announced(name, getattr(Path, name)))
    sqlite3.connect = watched  # type: ignore[assignment]
    psycopg.Cursor.execute = asked  # type: ignore[method-assign]
    for recorder in (SQLiteRecorder, PostgresRecorder):
        recorder.insert_events = _unacknowledged(recorder.insert_events)  # type: ignore[method-assign]


def _unacknowledged(insert: Callable[..., Any]) -> Callable[..., Any]:
    def inserted(*arguments: Any, **named: Any) -> Any:
        ids = insert(*arguments, **named)
        _reached(COMMITTED)
        return ids

    return inserted


def _announced(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
    def announced(path: Path, *arguments: Any, **named: Any) -> Any:
        _reached(f"FILE {name} {path.name}")
        return act(path, *arguments, **named)

    return announced


def begin() -> None:
    global _is_begun  # noqa: PLW0603 - as above
    _is_begun = True


def _reached(statement: str) -> None:
    global _left  # noqa: PLW0603 - as above
    if not _is_begun:
        return
    statements.append(" ".join(statement.split())[:60])
    if _pattern.search(statement):
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
