"""A cache gives back what was put in, tells what is damaged, and is anybody's at once."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from databases import on_sqlite
from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, SessionStore
from cutbank.adapters.backtest.cache import Cache
from cutbank.domain.backtest.cell import Cell, Setup
from cutbank.domain.backtest.result import Control
from cutbank.domain.errors import BacktestError

from .conftest import Bring
from .test_running import LIMIT, timeless

CELL = Cell(session="a", namespace="n", source=None, setup=Setup(policy="pi", limit=9), calls=3)
CONTROL = Control(session="a", namespace="n", source=None, limit=9, name="drop")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


def test_what_was_put_in_comes_out_and_what_was_put_last_counts(path: Path) -> None:
    with Cache(path) as cache:
        cache.put("k", CELL)
        cache.put("k", CELL.model_copy(update={"calls": 4}))
        cache.put("controls", (CONTROL, CONTROL))

    with Cache(path) as cache:
        assert cache.get("k") == CELL.model_copy(update={"calls": 4})
        assert cache.get("controls") == (CONTROL, CONTROL)
        assert cache.get("another") is None
        assert cache.damaged == 0


@given(
    at=st.integers(0, 10_000),
    to=st.integers(0, 255),
    column=st.sampled_from(("content", "digest")),
)
def test_a_row_that_was_changed_is_never_used(
    tmp_path_factory: pytest.TempPathFactory, at: int, to: int, column: str
) -> None:
    path = tmp_path_factory.mktemp("cache") / "cache.db"
    with Cache(path) as cache:
        cache.put("k", CELL)
    with sqlite3.connect(path) as connection:
        (was,) = connection.execute(f"SELECT {column} FROM measured").fetchone()  # noqa: S608
        at %= len(was)
        now = was[:at] + bytes([to]) + was[at + 1 :]
        connection.execute(f"UPDATE measured SET {column} = ?", (now,))  # noqa: S608
    connection.close()

    with Cache(path) as cache:
        found = cache.get("k")
        damaged = cache.damaged

    assert (found, damaged) == ((CELL, 0) if now == was else (None, 1))


@on_sqlite
def test_a_damaged_row_is_told_and_measured_anew(talks: SessionStore, path: Path) -> None:
    first = talks.backtest(["pi"], limits=(LIMIT,), jobs=1, cache=path)
    with sqlite3.connect(path) as connection:
        changed = connection.execute(
            "UPDATE measured SET content = replace(content, '\"calls\":16', '\"calls\":61')"
            " WHERE instr(content, '\"calls\":16')"
        )
        assert changed.rowcount == 1
    connection.close()
    told: list[str] = []

    second = talks.backtest(["pi"], limits=(LIMIT,), jobs=1, cache=path, remark=told.append)

    assert timeless(second) == timeless(first)
    assert told == [f"1 row was damaged in {path}, and measured anew"]
    assert talks.backtest(["pi"], limits=(LIMIT,), cache=path, remark=told.append) == second
    assert len(told) == 1


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all " * 400)


def another(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE letters (text)")
    connection.close()


def torn(path: Path) -> None:
    with Cache(path) as cache:
        cache.put("k", CELL)
    path.write_bytes(path.read_bytes()[:700])


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("damage", [garbage, another, torn, folder])
def test_a_file_that_is_no_cache_is_refused_in_one_line_and_left_alone(
    path: Path, damage: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    damage(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(BacktestError, match=r"cache\.db.*--cache") as refused:
        Cache(path)

    assert "\n" not in str(refused.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_many_at_once_lose_nothing(path: Path) -> None:
    failed: list[BaseException] = []

    def put(own: int) -> None:
        try:
            with Cache(path) as cache:
                for number in range(40):
                    cache.put(f"{own}-{number}", CELL)
                    cache.put(f"shared-{number}", CELL)
                    assert cache.get(f"shared-{number}") == CELL
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            failed.append(error)

    threads = [Thread(target=put, args=(own,)) for own in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failed
    with Cache(path) as cache:
        kept = [cache.get(f"{own}-{number}") for own in range(6) for number in range(40)]
        assert kept == [CELL] * 240
        assert cache.damaged == 0


@on_sqlite
def test_two_backtests_on_one_cache_come_to_the_same(talks: SessionStore, path: Path) -> None:
    found = []

    def run() -> None:
        found.append(talks.backtest(["none", "pi"], limits=(LIMIT,), jobs=1, cache=path))

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    one, other = found
    assert timeless(one) == timeless(other)


@on_sqlite
def test_other_code_of_a_policy_is_measured_anew(
    talks: SessionStore, bring: Bring, path: Path
) -> None:
    bring("silt", "keep = 4")
    first = talks.backtest(["silt"], limits=(LIMIT,), jobs=1, cache=path)

    bring("silt", "return None")
    second = talks.backtest(["silt"], limits=(LIMIT,), jobs=1, cache=path)

    assert sum(cell.compactions for cell in first.cells) > 0
    assert sum(cell.compactions for cell in second.cells) == 0


@on_sqlite
def test_a_session_that_went_on_is_measured_anew_and_the_others_are_not(
    talks: SessionStore, path: Path
) -> None:
    first = talks.backtest(["none"], limits=(LIMIT,), jobs=1, cache=path)
    talks.session("b").append(Block.user("More?"), Block.assistant("No."))

    second = talks.backtest(["none"], limits=(LIMIT,), jobs=1, cache=path)

    same = [one == other for one, other in zip(first.cells, second.cells, strict=True)]
    assert same == [True, False, True]
    assert second.cells[1].calls == first.cells[1].calls + 1
