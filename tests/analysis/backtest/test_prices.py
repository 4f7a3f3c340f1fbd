"""What was recorded costs what it cost on its day, whenever the backtest is run."""

from datetime import UTC, datetime

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.models.model_catalog import look_up_facts
from cutbank.domain.blocks import Origin

DAYS = {
    "before": datetime(2025, 6, 1, tzinfo=UTC),
    "after": datetime(2025, 7, 1, tzinfo=UTC),
    "undated": None,
}
MODEL = "o3"
"""Whose prices fell between these days."""


def asked(store: SessionStore, key: str, day: datetime | None) -> None:
    session = store.session(key)
    origin = Origin(format="elsewhere", time=day and day.isoformat())
    session.append(Block.user("a question " * 400, origin=origin))
    view = session.view()
    session.append(Block.assistant("an answer", origin=origin))
    session.record_call(view, call_id="one", model=MODEL)


def dollars_a_million(day: datetime | None) -> float:
    facts = look_up_facts(MODEL, at=day)
    assert facts is not None
    return facts.prices[0].input


def costs(store: SessionStore, model: str | None = None) -> dict[str, float]:
    """In dollars for a million tokens of each session's only prompt."""
    cells = cutbank.backtest(store, ["none"], limits=(32_000,), model=model, jobs=1).cells
    found: dict[str, float] = {}
    for cell in cells:
        assert cell.bill.uncached_usd is not None
        found[cell.session] = round(1e6 * cell.bill.uncached_usd / cell.bill.prompt_tokens, 6)
    return found


def test_a_recorded_model_has_the_prices_of_its_day_and_a_named_one_those_of_today(
    store: SessionStore,
) -> None:
    for key, day in DAYS.items():
        asked(store, key, day)

    assert dollars_a_million(DAYS["before"]) != dollars_a_million(DAYS["after"])
    assert costs(store) == {key: dollars_a_million(day) for key, day in DAYS.items()}
    assert costs(store, MODEL) == dict.fromkeys(DAYS, dollars_a_million(None))
