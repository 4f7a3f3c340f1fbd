"""`compact --dry-run` says what a compaction costs and saves, and whose prices these are."""

from pathlib import Path

import pytest

from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.session_events import Usage

from .conftest import Run

DRY = ("compact", "long", "--set", "keep_tokens=1000", "--dry-run")


@pytest.fixture
def called(address: str, long_talk: Path) -> None:
    """The session `long`, whose newest call was one of Opus, with all of it in the cache."""
    with open_store(address) as store:
        session = store.session("long")
        usage = Usage(input=3, cache_read=12_000, cache_write=1_000, output=300)
        session.record_call(
            session.view(), call_id="c1", model="claude-opus-4-5-20251101", usage=usage
        )


def test_a_dry_run_is_priced_by_the_model_of_the_newest_call(run: Run, called: None) -> None:
    pricing = run(*DRY, "--calls", "50", "--json").json["pricing"]

    assert (pricing["model"], pricing["provider"]) == ("claude-opus-4-5", "anthropic")
    assert pricing["expected_calls"] == 50
    # Opus 4.5: $0.50 a million tokens read from the cache, $6.25 written to it.
    assert pricing["saves_per_call_usd"] == round(pricing["saves_tokens"] * 0.5 / 1e6, 6)
    assert pricing["breaks_cache_usd"] == round(pricing["breaks_cache_tokens"] * 5.75 / 1e6, 6)
    assert pricing["summary_usd"] == 0
    assert pricing["is_worthwhile"]
    assert 0 < pricing["pays_after"] <= 50
    named = run(*DRY, "--model", "openai:gpt-5.4", "--calls", "1", "--json").json["pricing"]
    assert (named["model"], named["provider"]) == ("gpt-5.4", "openai")
    assert named["saves_usd"] == named["saves_per_call_usd"]


def test_without_a_known_model_there_are_tokens_and_no_money(run: Run, long_talk: Path) -> None:
    of_none = run(*DRY)
    unheard_of = run(*DRY, "--model", "nobody/heard-of-it", "--json").json["pricing"]

    assert "no model is known" in of_none.out
    assert "$" not in of_none.out.partition("price")[2]
    assert unheard_of["model"] == "nobody/heard-of-it"
    assert unheard_of["saves_tokens"] > 0
    assert {name for name, value in unheard_of.items() if value is None} == {
        "provider",
        "saves_per_call_usd",
        "saves_usd",
        "breaks_cache_usd",
        "net_usd",
        "pays_after",
        "is_worthwhile",
    }
