"""However a backtest is run, and whatever its policies do, it comes to the same."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cutbank
from cutbank import BacktestError, Block, CutbankError, SessionStore
from cutbank.adapters.analysis.backtest.backtest_pool import BenchTerms, Worker
from cutbank.domain.backtest_cell import BacktestResult, Cell, CellOutcome, Setup

from .conftest import Bring, talk

POLICIES = ["none", "recorded", "pi", "preserve-zone"]
LIMIT = 1_000


def measure(store: SessionStore, policies: list[str], **how: Any) -> BacktestResult:
    """In one process, at one limit, unless `how` says otherwise."""
    return cutbank.backtest(store, policies, **{"limits": (LIMIT,), "jobs": 1, **how})


def timeless(measured: BacktestResult) -> BacktestResult:
    """Without what a clock told."""
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    return measured.model_copy(update={"cells": cells})


def cell(measured: BacktestResult, session: str, policy: str) -> Cell:
    return next(
        one for one in measured.cells if (one.session, one.setup.policy) == (session, policy)
    )


def outcomes(measured: BacktestResult) -> set[CellOutcome]:
    return {one.outcome for one in measured.cells}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


# What comes of it


def test_each_session_is_measured_under_each_setup_in_order(talks: SessionStore) -> None:
    before = {one.key: (one.position, one.log.lineages) for one in talks.sessions()}

    measured = measure(talks, POLICIES, limits=(LIMIT, 2 * LIMIT), jobs=2)

    assert [(one.policy, one.limit) for one in measured.setups] == [
        (policy, limit) for limit in (LIMIT, 2 * LIMIT) for policy in POLICIES
    ]
    assert [(one.session, one.setup) for one in measured.cells] == [
        (session, setup) for session in "abc" for setup in measured.setups
    ]
    assert outcomes(measured) == {CellOutcome.DONE}
    assert measured.skipped == {"mute": "no model was called in it"}
    controls = [one.session for one in measured.controls]
    assert controls == sorted(controls)
    after = {one.key: (one.position, one.log.lineages) for one in talks.sessions()}
    assert after == before, "a backtest writes nothing"


def test_a_cell_says_what_happened_at_each_call(talks: SessionStore) -> None:
    measured = measure(talks, ["none", "preserve-zone"])

    none, zone = cell(measured, "a", "none"), cell(measured, "a", "preserve-zone")
    assert (none.calls, none.blocks, none.compactions) == (16, 32, 0)
    assert len(none.context) == 16
    assert list(none.context) == sorted(none.context)
    assert none.refused == sum(tokens > LIMIT for tokens in none.context) > 0
    assert "never compacted" in none.why
    assert zone.compactions == sum(zone.by_trigger.values()) == len(zone.boundaries) > 1
    assert zone.peak_tokens == max(zone.context) <= LIMIT
    assert zone.bill.prompt_tokens == sum(zone.context) < none.bill.prompt_tokens
    assert zone.why == ""
    assert (zone.broken, zone.orphaned, zone.repairs) == (0, 0, {})


def test_sessions_in_memory_and_on_a_clock_of_ones_own_are_measured_as_well(
    talks: SessionStore,
) -> None:
    with cutbank.open(":memory:") as store:
        for key, turns in (("a", 8), ("b", 5), ("c", 2)):
            talk(store, key, turns)
        measured = measure(store, ["pi"])

    assert timeless(measured).cells == timeless(measure(talks, ["pi"])).cells


REFUSED: list[tuple[dict[str, Any], type[CutbankError], str]] = [
    ({"sessions": []}, BacktestError, "there are no sessions in"),
    ({"jobs": 0}, BacktestError, "needs a process, not 0"),
    ({"timeout_s": 0}, BacktestError, "more than 0, not 0"),
]


@pytest.mark.parametrize(("how", "error", "said"), REFUSED)
def test_what_cannot_be_is_refused_before_anything_begins(
    store: SessionStore, how: dict[str, Any], error: type[CutbankError], said: str
) -> None:
    store.session("a").append(Block.user("hello"))

    with pytest.raises(error, match=said):
        measure(store, ["pi"], **how)


# What goes wrong


WILD = {
    "raises": (
        "raise ZeroDivisionError('of silt')",
        CellOutcome.FAILED,
        "ZeroDivisionError: of silt",
    ),
    "ends": ("os._exit(3)", CellOutcome.DIED, "its process ended with 3"),
    "vanishes": ("os.kill(os.getpid(), 9)", CellOutcome.DIED, "its process was killed, as where"),
    "gorges": ("bytes(1 << 62)", CellOutcome.DIED, "it ran out of memory"),
}
"""What policies do once a session is long, what becomes of their rows, and what these say."""


def test_a_policy_that_goes_wrong_costs_its_rows_and_no_others(
    talks: SessionStore, bring: Bring
) -> None:
    for name, (does, _, _) in WILD.items():
        bring(name, f"if len(items) > 9: {does}")
    long_and_short = [talks.session("b"), talks.session("c")]

    measured = measure(talks, ["none", *WILD, "pi"], sessions=long_and_short, jobs=2)

    for name, (_, outcome, why) in WILD.items():
        found = cell(measured, "b", name)
        assert (found.outcome, why in found.why) == (outcome, True), found
        assert (found.blocks, found.calls, found.context) == (20, 10, ())
        assert cell(measured, "c", name).outcome is CellOutcome.DONE, "it is short"
    others = measure(talks, ["none", "pi"], sessions=long_and_short)
    rest = tuple(one for one in timeless(measured).cells if one.setup.policy not in WILD)
    assert rest == timeless(others).cells


@pytest.mark.slow
def test_a_policy_that_loops_for_ever_is_given_up(talks: SessionStore, bring: Bring) -> None:
    bring("loops", "while window.after > 30: pass")

    measured = measure(talks, ["loops", "none"], timeout_s=5)

    late = cell(measured, "a", "loops")
    assert (late.outcome, late.why) == (CellOutcome.TIMED_OUT, "it took more than 5 seconds")
    assert {one.outcome for one in measured.cells if one != late} == {CellOutcome.DONE}


def test_a_session_that_cannot_be_read_costs_its_rows_and_no_others(talks: SessionStore) -> None:
    writer = talks.events.recorder.datastore.writer
    writer.execute("DROP TRIGGER stored_events_are_immutable")
    broken = writer.execute(
        "UPDATE stored_events SET state = x'00' WHERE originator_version = 5"
        " AND originator_id = (SELECT originator_id FROM streams WHERE session = 'b')"
    )
    assert broken.rowcount == 1

    measured = measure(talks, ["none"])

    assert cell(measured, "b", "none").outcome is CellOutcome.FAILED
    assert "cannot be read" in cell(measured, "b", "none").why
    assert cell(measured, "a", "none").outcome is CellOutcome.DONE


# What is kept


def test_what_went_wrong_is_not_kept_nor_what_other_code_measured(
    talks: SessionStore, bring: Bring, tmp_path: Path, cache: Path
) -> None:
    flag = tmp_path / "flag"
    bring("moody", f"assert os.path.exists({str(flag)!r})")
    assert outcomes(measure(talks, ["moody"], cache=cache)) == {CellOutcome.FAILED}
    flag.touch()
    first = measure(talks, ["moody"], cache=cache)
    assert outcomes(first) == {CellOutcome.DONE}
    assert sum(one.compactions for one in first.cells) > 0

    bring("moody", "return None")

    assert sum(one.compactions for one in measure(talks, ["moody"], cache=cache).cells) == 0


def test_a_cache_that_cannot_be_written_any_more_costs_what_is_kept_and_no_answer(
    talks: SessionStore, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    terms = BenchTerms(talks.name, talks.settings, cache)
    worker, setup = Worker(), Setup(policy="pi", limit=LIMIT)
    session = worker.open_session(terms, "default", "a")
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute("DROP TABLE kept")

    found, again = worker.measure(session, setup), session.measure(setup)
    worker.store.close()

    assert isinstance(found, Cell)
    assert isinstance(again, Cell)
    assert found.context == again.context
    (line,) = caplog.messages
    assert str(cache) in line
    assert line.endswith("nothing more is kept")


def test_a_session_that_went_on_is_measured_anew_and_the_others_are_not(
    talks: SessionStore, cache: Path
) -> None:
    first = measure(talks, ["none"], cache=cache)
    talks.session("b").append(Block.user("More?"), Block.assistant("No."))

    second = measure(talks, ["none"], cache=cache)

    same = [one == other for one, other in zip(first.cells, second.cells, strict=True)]
    assert same == [True, False, True]
    assert second.cells[1].calls == first.cells[1].calls + 1
