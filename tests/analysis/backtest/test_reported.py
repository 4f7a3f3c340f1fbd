"""What a session really sent is what its replay says: as it was reported, and not estimated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import on_sqlite
from transcripts import NO_SESSIONS, SESSIONS

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.backtest.cells import CellBench
from cutbank.adapters.analysis.backtest.imported_transcripts import import_temporarily
from cutbank.adapters.analysis.backtest.session_log import MeasuredSession, describe_log
from cutbank.adapters.models.context_limits import find_facts
from cutbank.domain.backtest.cell import Bill, Cell, Setup
from cutbank.domain.session_events import ModelCalled, Usage
from cutbank.domain.token_estimate import estimate_block

MODEL, OTHER = "claude-sonnet-4-5", "claude-haiku-4-5"
OVERHEAD, RATIO = 5_000, 1.5
"""What the provider of these tests counts besides the blocks, and of one estimated token."""


def work(session: StoredSession, turns: int, *, model: str = MODEL, output: int = 40) -> None:
    """Turns whose calls are reported as by a provider that caches each prompt but its end."""
    for _ in range(turns):
        session.append(Block.user("Where does the bank slide? " * 40))
        view = session.view()
        seen = OVERHEAD + round(RATIO * view.tokens)
        usage = Usage(input=10, cache_read=seen // 2, cache_write=seen - seen // 2 - 10)
        session.record_call(
            view,
            call_id=f"call {session.position}",
            model=model,
            usage=usage.model_copy(update={"output": output}),
        )
        session.append(Block.assistant("Below the bend. " * 60))


def reported(session: StoredSession) -> list[ModelCalled]:
    """The newest record of each call that tells its size."""
    log = MeasuredSession.read(session).recording.log
    calls = {one.event.call_id: one.event for one in log if isinstance(one.event, ModelCalled)}
    return [call for call in calls.values() if call.usage and call.usage.context]


def bench_of(session: StoredSession) -> CellBench:
    log, settings = MeasuredSession.read(session), session.log.settings
    read = describe_log(log)
    return CellBench(
        log,
        settings,
        {one: find_facts(settings, one, at=read.last_call_time) for one in read.models},
    )


def cell_of(session: StoredSession, policy: str, limit: int = 200_000) -> Cell:
    bench = bench_of(session)
    return bench.measure_cell(
        Setup(policy=policy, limit=limit), bench.facts.get(bench.log.model or "")
    )


def tokens_of(calls: list[ModelCalled]) -> int:
    return sum(call.usage.context or 0 for call in calls if call.usage)


def cost_of(session: StoredSession, calls: list[ModelCalled]) -> float | None:
    """At list prices; None where one is not known."""
    facts = bench_of(session).facts
    costs = []
    for call in calls:
        known = facts.get(call.model or "")
        costs.append(known.compute_cost(call.usage) if known and call.usage else None)
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None


@on_sqlite
def test_what_is_recorded_has_the_tokens_and_the_cost_that_were_reported(
    session: StoredSession,
) -> None:
    work(session, 20)
    session.compact("pi", limit=20_000, options=CompactionOptions(settings={"keep_tokens": 2_000}))
    work(session, 10, model=OTHER)
    session.append(Block.assistant("No response requested."))

    cell = cell_of(session, "recorded")

    calls = reported(session)
    assert cell.bill.prompt_tokens == tokens_of(calls)
    assert cell.bill.usd == pytest.approx(cost_of(session, calls))
    assert cell.reports == 30
    assert cell.overhead == pytest.approx(OVERHEAD, rel=0.1)
    done = cutbank.replay(session, "recorded")
    assert done.tokens == tokens_of(calls)
    assert done.calibration


@on_sqlite
def test_what_no_call_compacted_is_refused_where_the_model_could_not_have_held_it(
    session: StoredSession,
) -> None:
    work(session, 30)
    sizes = [call.usage.context or 0 for call in reported(session) if call.usage]
    limit = sizes[20]

    cell = cell_of(session, "none", limit)

    assert session.view().tokens < limit
    assert cell.refused == sum(size > limit for size in sizes) > 0


@on_sqlite
def test_another_policys_prompts_are_as_large_as_the_model_would_count_them(
    session: StoredSession,
) -> None:
    work(session, 40)

    done = cutbank.replay(session, "pi", settings={"keep_tokens": 3_000}, limit=30_000)

    assert done.compactions
    assert done.calibration
    assert done.calibration.chars_per_token == pytest.approx(4 / RATIO, rel=0.05)
    last = done.compactions[-1].boundary
    kept = [one for one in session.view().entries if one.position in last.kept]
    expected = OVERHEAD + RATIO * sum(estimate_block(one.block) for one in kept)
    summary = done.compactions[-1].summary
    assert last.post_tokens == pytest.approx(
        expected + (summary.tokens if summary else 0), rel=0.05
    )


@on_sqlite
def test_without_reports_all_tokens_are_estimates(session: StoredSession) -> None:
    for _ in range(3):
        session.append(Block.user("Where? " * 40), Block.assistant("Below the bend. " * 60))

    cell = cell_of(session, "none")

    assert (cell.reports, cell.overhead, cell.chars_per_token) == (0, None, None)
    assert cell.context[-1] == sum(one.tokens for one in session.view().entries[:-1])
    assert cutbank.replay(session, "none").calibration is None


@pytest.fixture(scope="module")
def real_sessions() -> Iterator[SessionStore]:
    with import_temporarily(Path(SESSIONS or "")) as (store, _):
        yield store


@pytest.mark.slow
@pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)
def test_each_real_session_costs_what_its_reports_say(real_sessions: SessionStore) -> None:
    priced = 0
    for session in real_sessions.sessions():
        calls = reported(session)
        if not calls:
            continue
        bill = recorded_bill(session)
        assert bill.prompt_tokens == pytest.approx(tokens_of(calls), rel=0.05), session.key
        cost = cost_of(session, calls)
        if cost is not None:
            priced += 1
            assert bill.usd == pytest.approx(cost, rel=0.1), session.key
    assert priced


def recorded_bill(session: StoredSession) -> Bill:
    return cell_of(session, "recorded").bill
