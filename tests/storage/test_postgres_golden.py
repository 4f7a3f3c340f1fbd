"""A log that a file of any version holds is served by a server as it was by the file."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from databases import connected_to
from psycopg.sql import SQL, Identifier, Placeholder
from served_views import check_served

import cutbank
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.postgres.postgres_storage import COPIED_TABLES

OLDEST, *_, _NEWEST_QUERY = sorted((Path(__file__).parent / "golden").glob("*.sql"))
AS_KEPT: dict[str, Callable[[Any], Any]] = {
    "originator_id": lambda id: UUID(bytes=id),
    "complete": bool,
}


@pytest.fixture
def engine() -> str:
    return "postgres"


def moved(file: Path, database: str) -> None:
    """All rows of a file, in a server's tables."""
    cutbank.open(file).close()  # an older one is migrated
    cutbank.open(database).close()
    with closing(sqlite3.connect(file)) as source, connected_to(database) as target:
        for table, columns in COPIED_TABLES.items():
            names = columns.split(", ")
            keep = [AS_KEPT.get(name, lambda value: value) for name in names]
            rows = source.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
            insert = SQL("INSERT INTO {} ({}) VALUES ({})").format(
                Identifier(table),
                SQL(", ").join(map(Identifier, names)),
                SQL(", ").join([Placeholder()] * len(names)),
            )
            target.cursor().executemany(
                insert,
                [[one(value) for one, value in zip(keep, row, strict=True)] for row in rows],
            )
            if names[0] in {"id", "notification_id"} and rows:
                sequence = f"{table}_{names[0]}_seq"
                newest = max(row[0] for row in rows)
                target.execute("SELECT setval(%s, %s)", (sequence, newest))


@pytest.mark.parametrize("dump", [OLDEST, _NEWEST_QUERY], ids=lambda path: path.stem)
def test_a_log_of_any_version_is_served_as_it_was_and_goes_on(
    database: str, tmp_path: Path, dump: Path
) -> None:
    file = tmp_path / "log.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    moved(file, database)
    served: list[dict[str, Any]] = json.loads(
        dump.with_suffix(".views.json").read_text(encoding="utf-8")
    )

    with cutbank.open(database) as store:
        check_served(store, served)
        verdict = verify(store)
        assert verdict.violations == []
        assert verdict.calls > 0
        for session in store.sessions():
            if not session.log.state.closed:
                session.append(Block.user("and on it goes"))
        store.backup(tmp_path / "back.db")

    with cutbank.open(tmp_path / "back.db") as back:
        assert verify(back).is_ok
