"""What recorded calls cost, against sums by hand."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Talk, text

import cutbank
from cutbank import (
    Block,
    CompactionOptions,
    Draft,
    InvalidSettingError,
    Material,
    ReserveHeadroom,
    SessionStore,
    Usage,
)
from cutbank.domain.summaries.extractive import ExtractiveSummarizer

SONNET = "claude-sonnet-4-5-20250929"
READ = {"input": 100, "read": 10_000, "for_5m": 2_000, "for_1h": 1_000, "output": 500}
BY_HAND = (100 * 3 + 10_000 * 0.3 + 2_000 * 3.75 + 1_000 * 6 + 500 * 15) / 1_000_000
"""Dollars of READ at the prices of Sonnet 4.5."""


def usage_of(output: int) -> dict[str, Any]:
    return {
        "input_tokens": READ["input"],
        "cache_read_input_tokens": READ["read"],
        "cache_creation_input_tokens": READ["for_5m"] + READ["for_1h"],
        "cache_creation": {
            "ephemeral_5m_input_tokens": READ["for_5m"],
            "ephemeral_1h_input_tokens": READ["for_1h"],
        },
        "output_tokens": output,
    }


def write(folder: Path, session: str, *more: tuple[str, str]) -> Path:
    """A message on three lines on one day, another message three days later, and more."""
    talk = Talk()
    talk.user("Why is it brown?")
    pieces = [("msg_1", SONNET, 1), ("msg_1", SONNET, 1), ("msg_1", SONNET, READ["output"])]
    pieces += [(message, model, READ["output"]) for message, model in (("msg_2", SONNET), *more)]
    for message, model, output in pieces:
        talk.says(message, text(f"piece {talk.added}"))
        body = talk.entries[-1]["message"]
        body |= {"model": model, "usage": usage_of(output)}
    for number, entry in enumerate(talk.entries):
        day = 1 if number < 4 else 4
        entry |= {"sessionId": session, "requestId": f"req_{number}", "cwd": "/home/ada/harbour"}
        entry["timestamp"] = f"2026-01-{day:02}T12:00:00.000Z"
    path = folder / f"{session}.jsonl"
    path.write_bytes(talk.raw())
    return path


FIRST, SECOND = (f"1111111{n}-2222-3333-4444-555555555555" for n in (1, 2))


def test_costs_are_what_a_hand_calculation_gives(store: SessionStore, tmp_path: Path) -> None:
    cutbank.import_transcripts(store, write(tmp_path, FIRST))

    costs = store.costs()

    total = costs.total
    assert [(row.day, row.calls) for row in costs.rows] == [("2026-01-01", 1), ("2026-01-04", 1)]
    assert total.cost_usd == pytest.approx(2 * BY_HAND)
    assert total.cache_write_usd == pytest.approx(2 * (2_000 * 3.75 + 1_000 * 6) / 1_000_000)
    assert total.cache_read_usd == pytest.approx(2 * 0.003)
    assert (total.input_tokens, total.cache_read_tokens) == (200, 20_000)
    assert (total.cache_write_tokens, total.cache_write_1h_tokens) == (6_000, 2_000)
    assert [row.project for row in store.costs("project").rows] == ["/home/ada/harbour"]
    since = datetime(2026, 1, 3, tzinfo=UTC)
    assert store.costs("model", since=since).rows[0].cost_usd == pytest.approx(BY_HAND)


def test_a_message_that_a_resumed_file_repeats_counts_once(
    store: SessionStore, tmp_path: Path
) -> None:
    write(tmp_path, FIRST)
    write(tmp_path, SECOND, ("msg_3", SONNET))

    cutbank.import_transcripts(store, tmp_path)

    assert store.costs().total.calls == 3
    assert [(row.session, row.calls) for row in store.costs("session").rows] == [
        (FIRST, 2),
        (SECOND, 1),
    ]


def test_a_model_without_a_price_is_named_and_counted_apart(
    store: SessionStore, tmp_path: Path
) -> None:
    other = ("msg_3", "house-model-1")
    cutbank.import_transcripts(store, write(tmp_path, FIRST, other))

    costs = store.costs("session")

    assert costs.total.cost_usd == pytest.approx(2 * BY_HAND)
    assert (costs.total.unpriced_calls, costs.total.unpriced_tokens) == (1, 13_600)
    assert [(one.model, one.unpriced_calls) for one in costs.unpriced] == [("house-model-1", 1)]


def test_prices_of_the_settings_go_before_list_prices(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[models."house-model-1"]\ninput_usd = 1.0\noutput_usd = 2.0\n')
    with cutbank.open(tmp_path / "log.db", settings=settings) as store:
        session = store.session("live", project="harbour")
        session.append(Block.user("Why?"))
        usage = Usage(input=1_000_000, output=1_000_000)
        session.record_call(session.view(), call_id="1", model="house-model-1", usage=usage)
        session.record_call(session.view(), call_id="2", model="other", usage=usage, cost_usd=7.5)

        (row,) = store.costs("project").rows

    assert (row.project, row.cost_usd, row.reported_usd) == ("harbour", 10.5, 7.5)


class Paid:
    name = "paid"

    def summarize(self, material: Material) -> Draft:
        text = ExtractiveSummarizer().summarize(material).text
        usage = Usage(input=900, cache_read=50, cache_write=20, output=100)
        return Draft(text=text, model="acme/small", usage=usage, cost_usd=0.25)


def test_what_summaries_cost_is_in_the_sums(store: SessionStore) -> None:
    session = store.session("s")
    session.append(*(Block.user(f"{number}: " + "words " * 300) for number in range(40)))
    session.record_call(session.view(), call_id="c", model="acme/large", cost_usd=1.0)
    for summarizer in (Paid(), ExtractiveSummarizer()):
        options = CompactionOptions(summarizers=[summarizer])
        session.compact(ReserveHeadroom(keep_tokens=2_000), limit=20_000, options=options)
        session.append(*(Block.user(f"{number}: " + "words " * 300) for number in range(40)))

    costs = store.costs("model")

    assert (costs.total.calls, costs.total.cost_usd) == (2, 1.25)
    rows = [(row.model, row.input_tokens, row.output_tokens) for row in costs.rows]
    assert rows == [("acme/large", 0, 0), ("acme/small", 900, 100)]
    assert (costs.total.cache_read_tokens, costs.total.cache_write_tokens) == (50, 20)


def test_costs_cannot_be_summed_by_anything(store: SessionStore) -> None:
    with pytest.raises(InvalidSettingError, match="day, project, model, session"):
        store.costs("week")
