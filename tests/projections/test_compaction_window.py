"""What a policy is told of the model, its prices, and what the provider's cache holds."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

import cutbank
from cutbank.domain.models import ModelFacts, Prices
from cutbank.domain.session_events import Usage
from cutbank.domain.window import Plan, Window

MODEL = ModelFacts("m", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),))


@pytest.fixture
def session(database: str) -> Any:
    with cutbank.open(database) as store:
        session = store.session("s")
        session.set_system_prompt("p" * 400)
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


def window(session: Any) -> Window:
    session.compact(Looks())
    return Looks.seen.pop()


def called(session: Any, usage: Usage | None, model: str | None = "claude-opus-4-5") -> None:
    session.record_call(session.view(), call_id="c", model=model, usage=usage)


def test_without_a_report_nobody_knows_what_is_cached(session: Any) -> None:
    assert window(session).cached is None
    assert window(session).called is None

    called(session, None)

    assert window(session).cached is None


def test_a_report_says_what_was_read_from_the_cache_and_written_to_it(session: Any) -> None:
    called(session, Usage(input=10, cache_read=6_000, cache_write=2_000, output=5))

    assert window(session).cached == 8_000
    assert window(session).called == "claude-opus-4-5"


def test_a_provider_that_was_not_asked_to_cache_holds_nothing(session: Any) -> None:
    called(session, Usage(input=10_000, cache_read=0, cache_write=0, output=5))

    assert window(session).cached == 0


def test_a_provider_that_caches_unasked_holds_what_it_was_sent(session: Any) -> None:
    called(session, Usage(input=9_000, cache_read=0, output=5))

    assert window(session).cached == 9_000


def test_no_more_is_cached_of_a_view_than_it_has(session: Any) -> None:
    called(session, Usage(input=0, cache_read=500_000, cache_write=0, output=5))

    seen = window(session)
    assert seen.pricing(kept_tokens=0, summary_tokens=0).cached == seen.tokens


def test_a_compacted_view_that_was_never_sent_is_not_cached(session: Any) -> None:
    called(session, Usage(input=0, cache_read=9_000, cache_write=0, output=5))

    session.compact(limit=8_000, settings={"keep_tokens": "2000"})

    assert window(session).cached == 0


def test_the_requests_own_model_is_known_before_the_first_call(session: Any) -> None:
    session.set_request_settings(model="gpt-5.4", temperature=0)

    assert window(session).called == "gpt-5.4"


def test_a_policy_may_ask_for_the_price_of_what_it_thinks_of(session: Any) -> None:
    asked = replace(window(session), prices=MODEL, expected_calls=10)

    pricing = asked.pricing(kept_tokens=2_000, summary_tokens=500)

    # 100 tokens of system prompt stay; the summary and the kept blocks are written anew.
    assert (asked.tokens, asked.request) == (10_100, 100)
    assert pricing.after == 2_600
    assert pricing.breaks_cache_tokens == 2_500
    assert pricing.saves_usd == pytest.approx(10 * 7_500 * 0.3 / 1e6)
    assert pricing.breaks_cache_usd == pytest.approx(2_500 * 3.45 / 1e6)
    assert pricing.is_worthwhile()


def test_what_stands_before_the_first_change_stays_cached(session: Any) -> None:
    asked = replace(window(session), prices=MODEL, expected_calls=10)

    pricing = asked.pricing(kept_tokens=9_500, summary_tokens=0, unchanged=9_100)

    assert pricing.breaks_cache_tokens == 500


def test_a_window_without_a_model_is_priced_in_tokens(session: Any) -> None:
    pricing = window(session).pricing(kept_tokens=2_000, summary_tokens=500)

    assert pricing.saves_tokens == 7_500
    assert pricing.is_worthwhile() is None


def test_the_standing_summary_is_not_what_stays(session: Any) -> None:
    session.compact(limit=8_000, settings={"keep_tokens": "2000"})

    compacted = window(session)

    assert compacted.summary is not None
    assert compacted.besides > compacted.request == 100


def unfinished(session: Any) -> list[str]:
    return [item.block.text for item in window(session).items if item.is_unfinished]


def test_an_answer_that_was_broken_off_is_unfinished(session: Any) -> None:
    view = session.view()
    session.append(cutbank.Block.thinking("hm"), cutbank.Block.assistant("half a wo"))
    assert unfinished(session) == []

    session.record_call(view, call_id="1", stop_reason="aborted")
    shown = session.view()
    session.append(cutbank.Block.user("go on"), cutbank.Block.assistant("whole"))
    session.record_call(session.view(), call_id="2", stop_reason="end_turn")

    assert unfinished(session) == ["hm", "half a wo"]
    assert shown.entries == session.view().entries[: len(shown.entries)]


def test_what_was_answered_when_it_was_asked_again_is_finished(session: Any) -> None:
    view = session.view()
    session.record_call(view, call_id="1", stop_reason="error")
    session.record_call(view, call_id="2", stop_reason="end_turn")
    session.append(cutbank.Block.assistant("whole"))

    assert unfinished(session) == []


def test_an_answer_that_took_the_place_of_a_broken_one_is_finished(session: Any) -> None:
    session.record_call(session.view(), call_id="1", stop_reason="error")
    half = session.append(cutbank.Block.assistant("half a wo"))
    session.retract(half[0])
    session.record_call(session.view(), call_id="2", stop_reason="end_turn")
    session.append(cutbank.Block.assistant("whole"))

    assert unfinished(session) == []
