"""However a backtest is run, and whatever its policies do, it comes to the same."""

import os
import signal
from math import inf
from pathlib import Path

import pytest
from databases import on_sqlite

import cutbank
from cutbank import Block, SessionStore
from cutbank.domain.backtest.cell import BacktestResult, Cell, CellOutcome
from cutbank.domain.errors import BacktestError

from .conftest import Bring, talk

POLICIES = ["none", "recorded", "pi", "preserve-zone"]
LIMIT = 1_000


def timeless(measured: BacktestResult) -> BacktestResult:
    """Without what a clock told."""
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    return measured.model_copy(update={"cells": cells})


def cell(measured: BacktestResult, session: str, policy: str) -> Cell:
    return next(
        one for one in measured.cells if (one.session, one.setup.policy) == (session, policy)
    )


def test_each_session_is_measured_under_each_setup_in_order(talks: SessionStore) -> None:
    measured = cutbank.backtest(talks, POLICIES, limits=(LIMIT, 2 * LIMIT), jobs=2)

    assert [(one.policy, one.limit) for one in measured.setups] == [
        (policy, limit) for limit in (LIMIT, 2 * LIMIT) for policy in POLICIES
    ]
    assert [(one.session, one.setup) for one in measured.cells] == [
        (session, setup) for session in "abc" for setup in measured.setups
    ]
    assert all(one.outcome is CellOutcome.DONE for one in measured.cells)
    assert measured.skipped == {"mute": "no model was called in it"}
    assert [one.session for one in measured.controls] == sorted(
        one.session for one in measured.controls
    )


def test_a_cell_says_what_happened_at_each_call(talks: SessionStore) -> None:
    measured = cutbank.backtest(talks, ["none", "preserve-zone"], limits=(LIMIT,), jobs=1)

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


@pytest.mark.slow
def test_it_comes_to_the_same_whoever_measures(talks: SessionStore, tmp_path: Path) -> None:
    def run(jobs: int, cache: Path | None = None) -> BacktestResult:
        return cutbank.backtest(
            talks, POLICIES, limits=(LIMIT,), budgets=(None, 300), jobs=jobs, cache=cache
        )

    one, many = run(1), run(3, tmp_path / "cache.db")
    again = run(2, tmp_path / "cache.db")

    assert timeless(one) == timeless(many)
    assert again == many, "the seconds as well: nothing was measured again"


@on_sqlite
def test_sessions_in_memory_and_on_a_clock_of_ones_own_are_measured_as_well(
    talks: SessionStore,
) -> None:
    with cutbank.open(":memory:") as store:
        for key, turns in (("a", 8), ("b", 5), ("c", 2)):
            talk(store, key, turns)
        measured = cutbank.backtest(store, ["pi"], limits=(LIMIT,), jobs=1)

    there = cutbank.backtest(talks, ["pi"], limits=(LIMIT,), jobs=1)
    assert timeless(measured).cells == timeless(there).cells


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


@on_sqlite
def test_a_policy_that_goes_wrong_costs_its_rows_and_no_others(
    talks: SessionStore, bring: Bring
) -> None:
    for name, (does, _, _) in WILD.items():
        bring(name, f"if len(items) > 9: {does}")

    long_and_short = [talks.session("b"), talks.session("c")]
    measured = cutbank.backtest(
        talks, ["none", *WILD, "pi"], sessions=long_and_short, limits=(LIMIT,), jobs=2
    )

    for name, (_, outcome, why) in WILD.items():
        found = cell(measured, "b", name)
        assert (found.outcome, why in found.why) == (outcome, True), found
        assert (found.blocks, found.calls, found.context) == (20, 10, ())
        assert cell(measured, "c", name).outcome is CellOutcome.DONE, "it is short"
    others = cutbank.backtest(
        talks, ["none", "pi"], sessions=long_and_short, limits=(LIMIT,), jobs=1
    )
    rest = tuple(one for one in timeless(measured).cells if one.setup.policy not in WILD)
    assert rest == timeless(others).cells


@pytest.mark.slow
@on_sqlite
def test_a_policy_that_loops_for_ever_is_given_up(talks: SessionStore, bring: Bring) -> None:
    bring("loops", "while window.after > 30: pass")

    measured = cutbank.backtest(talks, ["loops", "none"], limits=(LIMIT,), jobs=1, timeout_s=5)

    assert cell(measured, "a", "loops").outcome is CellOutcome.TIMED_OUT
    assert cell(measured, "a", "loops").why == "it took more than 5 seconds"
    others = [one for one in measured.cells if one.session != "a" or one.setup.policy != "loops"]
    assert {one.outcome for one in others} == {CellOutcome.DONE}


@on_sqlite
def test_what_went_wrong_is_not_kept(talks: SessionStore, bring: Bring, tmp_path: Path) -> None:
    cache, flag = tmp_path / "cache.db", tmp_path / "flag"
    bring("moody", f"assert os.path.exists({str(flag)!r})")
    first = cutbank.backtest(talks, ["moody"], limits=(LIMIT,), jobs=1, cache=cache)

    flag.touch()
    second = cutbank.backtest(talks, ["moody"], limits=(LIMIT,), jobs=1, cache=cache)

    assert {one.outcome for one in first.cells} == {CellOutcome.FAILED}
    assert {one.outcome for one in second.cells} == {CellOutcome.DONE}


@on_sqlite
def test_what_is_done_is_kept_when_it_is_interrupted(talks: SessionStore, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"

    def interrupt(done: int, _total: int) -> None:
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    def run(**how: object) -> BacktestResult:
        return cutbank.backtest(talks, ["none", "pi"], limits=(LIMIT,), jobs=1, cache=cache, **how)  # type: ignore[arg-type]

    with pytest.raises(KeyboardInterrupt):
        run(progress=interrupt)
    told: list[int] = []
    rest = run(progress=lambda done, _: told.append(done))

    assert timeless(rest) == timeless(
        cutbank.backtest(talks, ["none", "pi"], limits=(LIMIT,), jobs=1)
    )
    assert told[-1] == 4 * 3
    assert run() == rest


@on_sqlite
def test_nothing_is_written_to_the_database(talks: SessionStore) -> None:
    before = {one.key: (one.position, one.log.lineages) for one in talks.sessions()}

    cutbank.backtest(talks, POLICIES, limits=(LIMIT,), jobs=1)

    assert {one.key: (one.position, one.log.lineages) for one in talks.sessions()} == before


@on_sqlite
def test_a_session_that_cannot_be_read_costs_its_rows_and_no_others(talks: SessionStore) -> None:
    writer = talks.events.recorder.datastore.writer
    writer.execute("DROP TRIGGER stored_events_are_immutable")
    broken = writer.execute(
        "UPDATE stored_events SET state = x'00' WHERE originator_version = 5"
        " AND originator_id = (SELECT originator_id FROM streams WHERE session = 'b')"
    )
    assert broken.rowcount == 1

    measured = cutbank.backtest(talks, ["none"], limits=(LIMIT,), jobs=1)

    assert cell(measured, "b", "none").outcome is CellOutcome.FAILED
    assert "cannot be read" in cell(measured, "b", "none").why
    assert cell(measured, "a", "none").outcome is CellOutcome.DONE


@on_sqlite
def test_numbers_that_cannot_be_are_refused_before_anything_begins(store: SessionStore) -> None:
    with pytest.raises(BacktestError, match="there are no sessions in"):
        cutbank.backtest(store, ["pi"])
    store.session("a").append(Block.user("hello"))
    with pytest.raises(BacktestError, match="needs a process, not 0"):
        cutbank.backtest(store, ["pi"], jobs=0)
    with pytest.raises(BacktestError, match="more than 0 seconds"):
        cutbank.backtest(store, ["pi"], timeout_s=0)
    with pytest.raises(BacktestError, match="not waited for inf seconds: 1,000,000 at most"):
        cutbank.backtest(store, ["pi"], timeout_s=inf)
