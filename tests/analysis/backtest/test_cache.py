"""A cache gives back what was put in, tells what is damaged, and is anybody's at once."""

import sqlite3
from pathlib import Path

import pytest
from databases import on_sqlite

import cutbank
from cutbank import Block, SessionStore

from .conftest import Bring
from .test_running import LIMIT, timeless


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


@on_sqlite
def test_a_damaged_row_is_told_and_measured_anew(talks: SessionStore, path: Path) -> None:
    first = cutbank.backtest(talks, ["pi"], limits=(LIMIT,), jobs=1, cache=path)
    with sqlite3.connect(path) as connection:
        changed = connection.execute(
            "UPDATE kept SET content = replace(content, '\"calls\":16', '\"calls\":61')"
            " WHERE instr(content, '\"calls\":16')"
        )
        assert changed.rowcount == 1
    connection.close()
    told: list[str] = []

    second = cutbank.backtest(
        talks, ["pi"], limits=(LIMIT,), jobs=1, cache=path, remark=told.append
    )

    assert timeless(second) == timeless(first)
    assert told == [f"1 row was damaged in {path}, and measured again"]
    assert (
        cutbank.backtest(talks, ["pi"], limits=(LIMIT,), jobs=1, cache=path, remark=told.append)
        == second
    )
    assert len(told) == 1


@on_sqlite
def test_a_cache_that_cannot_be_written_any_more_costs_what_is_kept_and_no_answer(
    talks: SessionStore, path: Path
) -> None:
    told: list[str] = []

    def spoil(done: int, _: int) -> None:
        if done == 1:
            with sqlite3.connect(path) as connection:
                connection.execute("DROP TABLE kept")
            connection.close()

    found = cutbank.backtest(
        talks, ["pi"], limits=(LIMIT,), jobs=1, cache=path, progress=spoil, remark=told.append
    )

    assert timeless(found) == timeless(cutbank.backtest(talks, ["pi"], limits=(LIMIT,), jobs=1))
    (line,) = told
    assert str(path) in line
    assert line.endswith("nothing more is kept")


@on_sqlite
def test_other_code_of_a_policy_is_measured_anew(
    talks: SessionStore, bring: Bring, path: Path
) -> None:
    bring("silt", "keep = 4")
    first = cutbank.backtest(talks, ["silt"], limits=(LIMIT,), jobs=1, cache=path)

    bring("silt", "return None")
    second = cutbank.backtest(talks, ["silt"], limits=(LIMIT,), jobs=1, cache=path)

    assert sum(cell.compactions for cell in first.cells) > 0
    assert sum(cell.compactions for cell in second.cells) == 0


@on_sqlite
def test_a_session_that_went_on_is_measured_anew_and_the_others_are_not(
    talks: SessionStore, path: Path
) -> None:
    first = cutbank.backtest(talks, ["none"], limits=(LIMIT,), jobs=1, cache=path)
    talks.session("b").append(Block.user("More?"), Block.assistant("No."))

    second = cutbank.backtest(talks, ["none"], limits=(LIMIT,), jobs=1, cache=path)

    same = [one == other for one, other in zip(first.cells, second.cells, strict=True)]
    assert same == [True, False, True]
    assert second.cells[1].calls == first.cells[1].calls + 1
