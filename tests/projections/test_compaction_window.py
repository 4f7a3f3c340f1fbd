"""What a policy is told of the model, its prices, and what the provider's cache holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import cutbank
from cutbank import CompactionOptions, ModelFacts, Plan, Prices, StoredSession, Usage, Window

MODEL = ModelFacts("m", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),))


@pytest.fixture
def session() -> Iterator[StoredSession]:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        session.configure(system_prompt="p" * 400)
        session.append(*(cutbank.Block.user("w" * 4_000) for _ in range(10)))
        yield session


@dataclass(frozen=True)
class Looks:
    """A policy that looks at its window and leaves it as it is."""

    name: ClassVar[str] = "looks"
    seen: ClassVar[list[Window]] = []

    def plan(self, window: Window) -> Plan | None:
        self.seen.append(window)
        return None


def window(session: StoredSession) -> Window:
    session.compact(Looks())
    return Looks.seen.pop()


def called(
    session: StoredSession, usage: Usage | None, model: str | None = "claude-opus-4-5"
) -> None:
    session.record_call(session.view(), call_id="c", model=model, usage=usage)


def test_a_report_says_what_the_provider_holds(session: StoredSession) -> None:
    session.configure(request_settings={"model": "gpt-5.4", "temperature": 0})
    assert (window(session).cached, window(session).called_model) == (None, "gpt-5.4")
    reports = [
        (None, None),
        (8_000, Usage(input=10, cache_read=6_000, cache_write=2_000, output=5)),
        (0, Usage(input=10_000, cache_read=0, cache_write=0, output=5)),  # was not asked to cache
        (9_000, Usage(input=9_000, cache_read=0, output=5)),  # caches unasked
    ]
    for cached, usage in reports:
        called(session, usage)

        assert window(session).cached == cached
    assert window(session).called_model == "claude-opus-4-5"

    called(session, Usage(input=0, cache_read=500_000, cache_write=0, output=5))
    seen = window(session)
    assert seen.price(kept_tokens=0, summary_tokens=0).cached == seen.tokens


def test_a_compacted_view_is_not_cached_and_its_summary_is_not_what_stays(
    session: StoredSession,
) -> None:
    called(session, Usage(input=0, cache_read=9_000, cache_write=0, output=5))

    session.compact(limit=8_000, options=CompactionOptions(settings={"keep_tokens": "2000"}))

    compacted = window(session)
    assert compacted.cached == 0
    assert compacted.summary is not None
    assert compacted.overhead_tokens > compacted.request_tokens == 100


def test_a_policy_may_ask_for_the_price_of_what_it_thinks_of(session: StoredSession) -> None:
    asked = replace(window(session), prices=MODEL, expected_calls=10)

    pricing = asked.price(kept_tokens=2_000, summary_tokens=500)

    # 100 tokens of system prompt stay; the summary and the kept blocks are written anew.
    assert (asked.tokens, asked.request_tokens) == (10_100, 100)
    assert pricing.after == 2_600
    assert pricing.cache_tokens_lost == 2_500
    assert pricing.saved_usd == pytest.approx(10 * 7_500 * 0.3 / 1e6)
    assert pricing.cache_loss_usd == pytest.approx(2_500 * 3.45 / 1e6)
    assert pricing.is_worthwhile()
    unchanged = asked.price(kept_tokens=9_500, summary_tokens=0, unchanged=9_100)
    assert unchanged.cache_tokens_lost == 500
    unpriced = window(session).price(kept_tokens=2_000, summary_tokens=500)
    assert (unpriced.tokens_saved, unpriced.is_worthwhile()) == (7_500, None)


def test_an_answer_that_was_broken_off_is_unfinished_until_it_is_asked_for_again(
    session: StoredSession,
) -> None:
    def unfinished() -> list[str]:
        return [item.block.text for item in window(session).items if item.is_unfinished]

    for is_half_stored in (False, True):
        view = session.view()
        session.record_call(view, call_id=f"1 {is_half_stored}", stop_reason="error")
        if is_half_stored:
            session.retract(session.append(cutbank.Block.assistant("half a wo"))[0])
            view = session.view()
        session.record_call(view, call_id=f"2 {is_half_stored}", stop_reason="end_turn")
        session.append(cutbank.Block.assistant("whole"))
    view = session.view()
    session.append(cutbank.Block.thinking("hm"), cutbank.Block.assistant("half a wo"))
    assert unfinished() == []

    session.record_call(view, call_id="3", stop_reason="aborted")
    session.append(cutbank.Block.user("go on"), cutbank.Block.assistant("whole"))
    session.record_call(session.view(), call_id="4", stop_reason="end_turn")

    assert unfinished() == ["hm", "half a wo"]
