"""Seed 003, rule by rule; test_vectors_klaude.py compares with what the original answered."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from made_events import make_boundary
from worded_windows import find_planned_cut, make_plan, make_window

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import Block
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import InvalidSettingError, NothingToCompactError
from cutbank.domain.models import ModelFacts
from cutbank.domain.policies.catalog import ALIASES, POLICIES
from cutbank.domain.policies.reference.klaude_code import KlaudeAsShipped, KlaudeLater
from cutbank.domain.policies.reserve_headroom import Headroom, ReserveHeadroom
from cutbank.domain.settlement import settle_plan
from cutbank.domain.summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeVersion
from cutbank.domain.window import Plan, Window

POLICY = ReserveHeadroom(reserve_tokens=20, keep_tokens=30)


def talk(words: str, *, begins: int = 1, **more: Any) -> Window:
    """A window whose kept part may begin later than its first word."""
    boundary = make_boundary(begins, first_kept=begins) if begins > 1 else None
    return make_window(words, boundary=boundary, **more)


def cut(window: Window, policy: ReserveHeadroom = POLICY) -> int | None:
    return find_planned_cut(policy, window)


# When


@pytest.mark.claim("S3.1")
def test_it_fires_when_more_is_used_than_the_limit_less_the_reserve() -> None:
    for used, fires in [(79, False), (80, False), (81, True)]:
        window = talk(f"u=30 a={used - 60} u", overhead=20, trigger=Trigger.THRESHOLD)

        assert POLICY.fires(window) is fires, used
        assert (POLICY.plan(window) is not None) is fires, used


def test_what_the_provider_reported_counts_for_more_than_the_estimate() -> None:
    assert not POLICY.fires(talk("u=900", usage=80))
    assert POLICY.fires(talk("u=1", usage=81))


# Where


CUTS = {
    # The block that reaches the budget is kept.
    "u a u a u": 3,
    "u a u a=9 u": 2,
    "u a u a=11 u": 3,
    "u a u a u=30": 5,
    "u a u a u=300": 5,
    # A tool result is never the first kept; a turn may be split.
    "u a c r u u": 3,
    "u a c r r r=5 u": 3,
    "u a c r u=30": 5,
    "u a c r=300": 3,
    "u c r c r c r": 4,
    # A cut inside a message moves to its start.
    "u a t/m a/m c/m c/m r r": 3,
    "u a t/m=5 a/m=5 u u": 3,
    "u t/m a/m t/n a/n u u": 4,
    "u t/m c/m r c/m r r": 2,
    "u a r/m r/m u/m u u": 2,
}


def test_a_cut_keeps_the_budget_and_parts_neither_messages_nor_pairs() -> None:
    assert {history: cut(talk(history)) for history in CUTS} == CUTS
    # With a budget of nothing the newest message stays.
    assert cut(talk("u a u c/m c/m r r"), ReserveHeadroom(keep_tokens=0)) == 4


def test_what_an_earlier_boundary_kept_is_considered_again_but_not_what_it_carried() -> None:
    assert cut(talk("u a u a u a u", begins=3)) == 5
    late = talk("u c r r a u", begins=3, limit=10_000)
    # Results whose call left long ago are not kept for themselves.
    assert cut(replace(late, items=late.items[2:]), ReserveHeadroom(keep_tokens=90)) == 5
    with pytest.raises(NothingToCompactError):
        POLICY.plan(talk("u=500! a! u a u", begins=3, limit=10_000))


# Nothing to compact


@pytest.mark.claim("S3.31")
def test_whoever_waits_is_told_that_there_is_nothing_to_compact(subtests: pytest.Subtests) -> None:
    too_small = r"nothing to compact \(session too small\)"
    for trigger, history in product([Trigger.MANUAL, Trigger.OVERFLOW], ["", "u", "u a", "r r=5"]):
        window = talk(history, trigger=trigger)
        with (
            subtests.test(str((history, trigger))),
            pytest.raises(NothingToCompactError, match=too_small),
        ):
            POLICY.plan(window)
    sizes = r"of 2,600 tokens in view 2,500 may leave, .* 7,000 are kept"
    with pytest.raises(NothingToCompactError, match=sizes):
        ReserveHeadroom().plan(talk("u=1000 a=1500", overhead=100, limit=20_000))


def test_where_nobody_waits_and_enough_is_free_nothing_to_compact_is_no_error() -> None:
    assert POLICY.plan(talk("u=900", limit=10_000, trigger=Trigger.IDLE)) is None


def test_where_the_reserve_is_eaten_into_less_is_kept_than_was_set() -> None:
    for trigger in [Trigger.THRESHOLD, Trigger.IDLE]:
        assert cut(talk("u a", overhead=80, trigger=trigger)) == 2, trigger


def test_a_giant_that_stands_first_is_left_to_the_store() -> None:
    for trigger in list(Trigger):
        for history in ["u=900", "u=900 a", "c r r=900"]:
            window = talk(history, trigger=trigger)
            giant = next(item.position for item in window.items if item.tokens == 900)

            assert cut(window) == giant, (history, trigger)
    alone = talk("u=900", trigger=Trigger.OVERFLOW)
    with pytest.raises(NothingToCompactError, match="the largest blocks are #1 user 900 tokens"):
        settle_plan(alone, make_plan(POLICY, alone))


def test_an_answer_that_takes_the_whole_limit_is_refused_by_name() -> None:
    policy = ReserveHeadroom(answer_tokens=100)

    with pytest.raises(InvalidSettingError, match="answer_tokens is 100 of a limit of 100; it tak"):
        policy.fires(talk("u a"))


def test_what_an_answer_takes_is_the_models_longest_where_none_is_set() -> None:
    window = talk("u=250 a=250", limit=1_000, in_use=500)
    facts = ModelFacts("m", output=400)
    policy = ReserveHeadroom(answer_tokens=None, reserve_tokens=100)

    assert not policy.fires(replace(window, prices=ModelFacts("m", output=300)))
    assert policy.fires(replace(window, prices=replace(facts, output=401)))
    assert not policy.fires(replace(window, prices=facts))


def test_what_came_after_a_report_is_counted_only_where_that_is_asked_for() -> None:
    words = {"u": Block.user("words"), "a": Block.assistant("words")}
    window = talk("u a u=50 a=50", blocks=words, usage=70, usage_at=2, in_use=170)

    assert KlaudeAsShipped().count_in_use(window) == 70
    assert KlaudeLater().count_in_use(window) == 70 + 2 * 2


# The plan


def test_the_plan_says_why_and_how_long_the_summary_may_be() -> None:
    plan = ReserveHeadroom(reserve_tokens=3_000, keep_tokens=30).plan(
        talk("u a u a=4000 u=30", limit=5_000, trigger=Trigger.THRESHOLD)
    )

    assert plan == Plan(
        cut=5,
        reason="threshold: 4,060 tokens in use of 5,000, of which 3,000 stay free; "
        "the newest 30 are kept",
        summary_tokens=333,
        most_tokens=1_500,
        template=KLAUDE_TEMPLATES[KlaudeVersion.DOCUMENT],
    )


def test_what_is_set_by_hand_is_taken_as_it_is() -> None:
    assert ReserveHeadroom(keep_tokens=5).find_headroom(100_000) == Headroom(reserve=16_384, keep=5)
    assert ReserveHeadroom(reserve_tokens=5).find_headroom(100_000) == Headroom(
        reserve=5, keep=20_000
    )
    assert ReserveHeadroom(reserve_tokens=90_000).find_headroom(100_000).keep == 10_000
    assert Headroom(reserve=20, keep=30).summary == 1_024


# Names


def test_policies_go_by_name_and_alias() -> None:
    assert get_policy("reserve-headroom") == ReserveHeadroom()
    assert get_policy("klaude-code", keep_tokens="5") == ReserveHeadroom(keep_tokens=5)
    assert set(ALIASES.values()) <= set(POLICIES)
    assert not set(ALIASES) & set(POLICIES)
