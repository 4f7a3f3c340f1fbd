"""A cache gives back what was put in, tells what is damaged, and is anybody's at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from faulty import closing
from hypothesis import example, given
from hypothesis import strategies as st

from cutbank import CacheFileError, Draft, Ranges, Usage
from cutbank.adapters.analysis.backtest.result_cache import open_result_cache
from cutbank.adapters.analysis.deciders import open_summary_cache
from cutbank.domain.backtest_cell import Cell, ControlResult, Setup

CELL = Cell(session="a", namespace="n", source=None, setup=Setup(policy="pi", limit=9), calls=3)
CONTROL = ControlResult(session="a", namespace="n", source=None, limit=9, name="drop")
TEXTS = st.text(st.characters())
"""With halves of surrogate pairs, as models write them."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


def test_what_was_put_in_comes_out_and_what_was_put_last_counts(path: Path) -> None:
    last = CELL.model_copy(update={"calls": 4})
    with open_result_cache(path) as cache:
        for key, value in (("k", CELL), ("k", last), ("controls", (CONTROL, CONTROL))):
            cache.put(key, value)
    with open_summary_cache(path) as summaries:
        summaries.put("summary", Draft("They spoke of clay."))

    with open_result_cache(path) as cache:
        assert cache.get("k") == last
        assert cache.get("controls") == (CONTROL, CONTROL)
        assert cache.get("another") is None
        assert cache.damaged == 0
        assert cache.get("summary") is None  # which is something else
        assert cache.damaged == 1


@example(
    text="", sections={"\ud800": ""}, cites=Ranges(), usage=None, cost_usd=None, was_truncated=False
)
@given(
    text=TEXTS,
    sections=st.dictionaries(TEXTS, TEXTS),
    cites=st.frozensets(st.integers(1, 90)).map(Ranges.of),
    usage=st.none() | st.builds(Usage, input=st.integers(0, 9), output=st.integers(0, 9)),
    cost_usd=st.none() | st.floats(0, 1e6),
    was_truncated=st.booleans(),
)
def test_a_draft_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, **fields: Any
) -> None:
    draft = Draft(text, **fields)
    with open_summary_cache(tmp_path_factory.mktemp("cache") / "s.db") as cache:
        cache.put("key", draft)

        assert cache.get("key") == draft


@given(
    at=st.integers(0, 10_000),
    to=st.integers(0, 255),
    column=st.sampled_from(("content", "digest")),
)
def test_a_row_that_was_changed_is_never_used(
    tmp_path_factory: pytest.TempPathFactory, at: int, to: int, column: str
) -> None:
    path = tmp_path_factory.mktemp("cache") / "cache.db"
    with open_result_cache(path) as cache:
        cache.put("k", CELL)
    with closing(path) as connection:
        (was,) = connection.execute(f"SELECT {column} FROM kept").fetchone()  # noqa: S608
        at %= len(was)
        now = was[:at] + bytes([to]) + was[at + 1 :]
        connection.execute(f"UPDATE kept SET {column} = ?", (now,))  # noqa: S608

    with open_result_cache(path) as cache:
        found = cache.get("k")
        damaged = cache.damaged

    assert (found, damaged) == ((CELL, 0) if now == was else (None, 1))


def test_a_row_that_was_spoilt_is_told_and_can_be_put_anew(path: Path) -> None:
    for harm in (
        "UPDATE kept SET digest = NULL",
        "UPDATE kept SET content = NULL",
        "UPDATE kept SET content = 'nonsense'",
        "INSERT OR REPLACE INTO kept SELECT 'k', content, digest FROM kept WHERE key = 'other'",
    ):
        with open_result_cache(path) as cache:
            cache.put("k", CELL)
            cache.put("other", CELL)
        with closing(path) as connection:
            connection.execute(harm)

        with open_result_cache(path) as cache:
            assert cache.get("k") is None
            assert cache.damaged == 1
            cache.put("k", CELL)
            assert cache.get("k") == CELL


@pytest.mark.parametrize("damage", ["garbage", "another program's", "torn", "a folder"])
def test_a_file_that_is_no_cache_is_refused_in_one_line_and_left_alone(
    path: Path, damage: str
) -> None:
    path.parent.mkdir()
    match damage:
        case "garbage":
            path.write_bytes(b"no database at all " * 400)
        case "a folder":
            path.mkdir()
        case "torn":
            open_result_cache(path).close()
            path.write_bytes(path.read_bytes()[:700])
        case _:
            with closing(path) as connection:
                connection.execute("CREATE TABLE letters (text)")
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(CacheFileError, match=r"^[^\n]*cache\.db[^\n]*--cache[^\n]*$"):
        open_result_cache(path)

    assert (path.read_bytes() if path.is_file() else None) == before


def test_many_at_once_lose_nothing(path: Path) -> None:
    """From the making of the file on: one cannot switch to a log while another writes."""
    starting = Barrier(6)

    def put(own: int) -> None:
        starting.wait(60)
        with open_result_cache(path) as cache:
            for number in range(10):
                cache.put(f"{own}-{number}", CELL)
                cache.put(f"shared-{number}", CELL)
                assert cache.get(f"shared-{number}") == CELL

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(put, range(6)))

    with open_result_cache(path) as cache:
        kept = [cache.get(f"{own}-{number}") for own in range(6) for number in range(10)]
        assert kept == [CELL] * 60
        assert cache.damaged == 0
