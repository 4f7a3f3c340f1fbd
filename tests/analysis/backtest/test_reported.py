"""What a session really sent is what its replay says: as reported, at the prices of its day."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from transcripts import NO_SESSIONS, SESSIONS

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.backtest.cells import MeasuredSession, read_recorded_calls
from cutbank.adapters.analysis.backtest.report import write_report
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.adapters.interfaces.commands.backtest import import_temporarily
from cutbank.adapters.models.model_catalog import look_up_facts
from cutbank.domain.backtest_cell import Cell, CellOutcome, Setup
from cutbank.domain.billing import PricedCall
from cutbank.domain.blocks import Origin
from cutbank.domain.session_events import ModelCalled, Usage
from cutbank.domain.token_estimate import estimate_block

MODEL, OTHER = "claude-sonnet-4-5", "claude-haiku-4-5"
OVERHEAD, RATIO = 5_000, 1.5
"""What the provider of these tests counts besides the blocks, and of one estimated token."""


def work(session: StoredSession, turns: int, *, model: str = MODEL) -> None:
    """Turns whose calls are reported as by a provider that caches each prompt but its end."""
    for _ in range(turns):
        session.append(Block.user("Where does the bank slide? " * 40))
        view = session.view()
        seen = OVERHEAD + round(RATIO * view.tokens)
        written = seen - seen // 2 - 10
        usage = Usage(input=10, cache_read=seen // 2, cache_write=written, output=40)
        session.record_call(view, call_id=f"call {session.position}", model=model, usage=usage)
        session.append(Block.assistant("Below the bend. " * 60))


def read(session: StoredSession) -> MeasuredSession:
    return MeasuredSession.read(session, session.log.settings)


def reported(session: StoredSession) -> list[ModelCalled]:
    """The newest record of each call that tells its size."""
    log = read(session).recording.log.values()
    calls = {one.event.call_id: one.event for one in log if isinstance(one.event, ModelCalled)}
    return [call for call in calls.values() if call.usage and call.usage.context]


def cell_of(session: StoredSession, policy: str, limit: int = 200_000) -> Cell:
    cell = read(session).measure(Setup(policy=policy, limit=limit))
    assert isinstance(cell, Cell)
    return cell


def sizes_of(calls: list[ModelCalled]) -> list[int]:
    return [call.usage.context or 0 for call in calls if call.usage]


def cost_of(session: StoredSession, calls: list[ModelCalled]) -> float | None:
    """At list prices; None where one is not known."""
    facts = read(session).facts
    costs = []
    for call in calls:
        known = facts.get(call.model or "")
        costs.append(known.compute_cost(call.usage) if known and call.usage else None)
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None


# Tokens and costs


def test_what_is_recorded_has_the_tokens_and_the_cost_that_were_reported(
    session: StoredSession,
) -> None:
    work(session, 20)
    session.compact("pi", limit=20_000, options=CompactionOptions(settings={"keep_tokens": 2_000}))
    work(session, 10, model=OTHER)
    session.append(Block.user("Stop."), Block.assistant("No response requested."))

    cell = cell_of(session, "recorded")

    calls = reported(session)
    assert cell.bill.prompt_tokens == sum(sizes_of(calls))
    assert cell.bill.usd == pytest.approx(cost_of(session, calls))
    assert cell.reports == 30
    assert (cell.calls, cell.context[-1]) == (31, 0), "no model read that"
    assert cell.overhead == pytest.approx(OVERHEAD, rel=0.1)
    done = cutbank.replay(session, "recorded")
    assert done.tokens == sum(sizes_of(calls))
    assert done.calibration


def test_what_no_call_compacted_is_refused_where_the_model_could_not_have_held_it(
    session: StoredSession,
) -> None:
    work(session, 30)
    sizes = sizes_of(reported(session))
    limit = sizes[20]

    cell = cell_of(session, "none", limit)

    assert session.view().tokens < limit
    assert cell.refused == sum(size > limit for size in sizes) > 0


def test_another_policys_prompts_are_as_large_as_the_model_would_count_them(
    session: StoredSession,
) -> None:
    work(session, 40)

    done = cutbank.replay(session, "pi", settings={"keep_tokens": 3_000}, limit=30_000)

    assert done.calibration
    assert done.calibration.chars_per_token == pytest.approx(4 / RATIO, rel=0.05)
    last, summary = done.compactions[-1].boundary, done.compactions[-1].summary
    kept = [one for one in session.view().entries if one.position in last.kept]
    expected = OVERHEAD + RATIO * sum(estimate_block(one.block) for one in kept)
    expected += summary.tokens if summary else 0
    assert last.post_tokens == pytest.approx(expected, rel=0.05)


def test_without_reports_all_tokens_are_estimates(session: StoredSession) -> None:
    for _ in range(3):
        session.append(Block.user("Where? " * 40), Block.assistant("Below the bend. " * 60))

    cell = cell_of(session, "none")

    assert (cell.reports, cell.overhead, cell.chars_per_token) == (0, None, None)
    assert cell.context[-1] == sum(one.tokens for one in session.view().entries[:-1])
    assert cutbank.replay(session, "none").calibration is None


def test_a_recorded_model_has_the_prices_of_its_day_and_a_named_one_those_of_today(
    store: SessionStore,
) -> None:
    model = "o3"  # whose prices fell between these days
    days = {"before": datetime(2025, 6, 1, tzinfo=UTC), "after": datetime(2025, 7, 1, tzinfo=UTC)}
    prices: dict[str, float] = {}
    for key, day in {**days, "undated": None}.items():
        session = store.session(key)
        origin = Origin(format="elsewhere", time=day and day.isoformat())
        session.append(Block.user("a question " * 400, origin=origin))
        view = session.view()
        session.append(Block.assistant("an answer", origin=origin))
        session.record_call(view, call_id="one", model=model)
        facts = look_up_facts(model, at=day)
        assert facts is not None
        prices[key] = facts.prices[0].input
    assert prices["before"] != prices["after"]

    for named, expected in ((None, prices), (model, dict.fromkeys(prices, prices["undated"]))):
        cells = cutbank.backtest(store, ["none"], model=named, jobs=1).cells
        assert {
            cell.session: round(1e6 * (cell.bill.uncached_usd or 0) / cell.bill.prompt_tokens, 6)
            for cell in cells
        } == expected


# Pauses and answers


@pytest.mark.parametrize(
    ("minutes", "gaps"),
    [
        ([0, 1, 21], [None, 60.0, 1_200.0]),
        ([None, None, None], [None, None, None]),
        ([10, 2, 30], [None, 0.0, 1_200.0]),  # a clock that was set back
    ],
)
def test_pauses_are_those_of_the_source_and_records_without_a_time_hide_none(
    session: StoredSession, minutes: list[float | None], gaps: list[float | None]
) -> None:
    began, seen = datetime(2025, 3, 1, 12, tzinfo=UTC), None
    for number, minute in enumerate(minutes):
        time = None if minute is None else (began + timedelta(minutes=minute)).isoformat()
        origin = Origin(format="elsewhere", time=time)
        session.append(Block.user(f"question {number}", origin=origin))
        view = session.view()
        if seen is not None:
            session.record_call(seen, call_id=f"call {number}", model="m")
        session.append(Block.assistant("a" * 40, origin=origin))
        seen = view

    log = read_recording(session)
    assert isinstance(log.log[log.calls[2].last_seen_position].event, ModelCalled)
    assert [one.gap_s for one in calls_of(session)] == gaps


def test_an_answer_is_of_the_size_that_was_reported_or_else_of_its_blocks(
    session: StoredSession,
) -> None:
    for number, usage in enumerate([Usage(input=90, output=7), None]):
        session.append(Block.user(f"question {number}"))
        view = session.view()
        session.append(Block.assistant("a" * 40))
        session.record_call(view, call_id=f"call {number}", model="m", usage=usage)

    assert [one.output for one in calls_of(session)] == [7, 10]


def calls_of(session: StoredSession) -> list[PricedCall]:
    return list(read_recorded_calls(read_recording(session)))


# Real sessions


@pytest.fixture(scope="module")
def real_sessions() -> Iterator[SessionStore]:
    if not SESSIONS:
        pytest.skip(NO_SESSIONS)
    with import_temporarily(Path(SESSIONS)) as (store, _):
        yield store


@pytest.mark.slow
def test_each_real_session_costs_what_its_reports_say(real_sessions: SessionStore) -> None:
    priced = 0
    for session in real_sessions.sessions():
        calls = reported(session)
        if not calls:
            continue
        bill = cell_of(session, "recorded").bill
        assert bill.prompt_tokens == pytest.approx(sum(sizes_of(calls)), rel=0.05), session.key
        cost = cost_of(session, calls)
        if cost is not None:
            priced += 1
            assert bill.usd == pytest.approx(cost, rel=0.1), session.key
    assert priced


@pytest.mark.slow
def test_a_report_over_all_real_sessions(real_sessions: SessionStore, tmp_path: Path) -> None:
    policies = ["none", "recorded", "reserve-headroom"]
    limits, cache = (64_000,), tmp_path / "cache.db"
    measured = cutbank.backtest(real_sessions, policies, limits=limits, cache=cache)
    again = cutbank.backtest(real_sessions, policies, limits=limits, cache=cache)

    assert again == measured
    assert {cell.outcome for cell in measured.cells} == {CellOutcome.DONE}
    counted = len(real_sessions.sessions()) - len(measured.skipped)
    assert len(measured.cells) == counted * len(policies) * len(limits) > 0
    for cell in measured.cells:
        assert 0 <= cell.canonical.hits <= cell.canonical.stakes
        assert sum(cell.context) == cell.bill.prompt_tokens
        assert len(cell.lost) == cell.canonical.stakes - cell.canonical.hits
        if cell.setup.policy == "none":
            assert cell.canonical.hits == cell.canonical.stakes
    full = [one for one in measured.controls if one.name == "full history"]
    assert all(one.scores.hits == one.scores.stakes for one in full)
    written = write_report(measured, tmp_path / "report")
    assert [path.name for path in written] == ["report.html", "measured.json"]
    kept = json.loads((tmp_path / "report" / "measured.json").read_text(encoding="utf-8"))
    assert len(kept["cells"]) == len(measured.cells)
