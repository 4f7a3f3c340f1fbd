"""Layered: what newer output supersedes goes first, then the boundary moves, and not soon again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worded_windows import make_plan, make_window

from cutbank import NothingToCompactError, Trigger, Window
from cutbank.domain.compaction_events import Trim
from cutbank.domain.policies.layered import Layered
from cutbank.domain.settlement import settle_plan

POLICY = Layered(keep=0.4)
READ_TWICE = "u c=11 r=300 c=12 r=300 c=11 r=300 u a"


def full(words: str, limit: int = 1_000, used: int = 0, calls: int = 100) -> Window:
    window = make_window(words, limit=limit, trigger=Trigger.THRESHOLD, expected_calls=calls)
    return replace(window, in_use=used or window.block_tokens)


def test_it_fires_above_a_share_of_the_limit() -> None:
    window = full("u a u a", limit=100)

    assert not POLICY.fires(replace(window, in_use=80))
    assert POLICY.fires(replace(window, in_use=81))


def test_a_result_that_was_read_again_is_cleared_and_nothing_else() -> None:
    plan = make_plan(POLICY, full(READ_TWICE))

    assert plan.trims == (Trim(position=3, head=0),)
    assert (plan.cut, plan.summary_tokens) == (None, 0)


@pytest.mark.parametrize(
    "window",
    [
        full(READ_TWICE, calls=1),  # the prompts that are left do not pay for the broken cache
        full(READ_TWICE, used=2_000),  # it would not be enough
        full(READ_TWICE.replace("c=11 r=300 u", "c=13 r=300 u")),  # nothing was read again
        full("u c=11 r=300 c=11 u=400 a=300"),  # the newer call has no answer yet
    ],
)
def test_else_the_boundary_moves(window: Window) -> None:
    plan = make_plan(POLICY, window)

    assert plan.cut
    assert plan.summary_tokens
    assert all(trim.head for trim in plan.trims)


SIX_READS = "c/m=11 c/m=12 c/m=13 c/m=14 c/m=15 c/m=16" + 5 * " r=100" + " r=900"


@pytest.mark.parametrize("words", [f"u a=300 {SIX_READS}", f"u=500 a=300 {SIX_READS} u d"])
def test_results_that_the_model_has_not_seen_stay_and_the_largest_are_shortened(words: str) -> None:
    window = full(words, limit=2_000)

    plan = make_plan(Layered(keep=0.05), window)
    settled = settle_plan(window, plan)

    assert plan.cut == 3  # the calls stay with all their results
    assert len(plan.trims) == 1
    assert not settled.repairs
    assert 0.8 * 1_066 < settled.kept_tokens <= 1_066  # two thirds of what is below the threshold


def test_results_that_it_has_seen_are_not_shortened_but_summarized() -> None:
    window = full(f"u a {SIX_READS} a a u", limit=1_500)

    plan = make_plan(Layered(keep=0.05), window)

    assert plan.cut == 15
    assert not plan.trims
    assert plan.summary_tokens


@pytest.mark.parametrize("shown", [0.3, 0.8, 1.0])
def test_shares_are_measured_as_the_model_counts_a_result(shown: float) -> None:
    window = full("u a c r=2000", limit=2_000)
    *others, result = window.items
    window = replace(window, items=(*others, replace(result, length=int(8_000 * shown))))

    settled = settle_plan(window, make_plan(POLICY, window))

    assert 0.8 * 1_066 < settled.kept_tokens <= 1_066


@pytest.mark.parametrize(
    ("words", "cut"), [("u a=500 a u a=150 a=150 a", 4), ("u a=900 a a a a u", 3)]
)
def test_a_cut_moves_to_a_turn_that_is_near(words: str, cut: int) -> None:
    assert make_plan(POLICY, full(words)).cut == cut


@pytest.mark.parametrize(
    ("limit", "used", "tokens"),
    [
        (50_000, 0, 8_192),
        (100_000, 0, 12_500),
        (200_000, 0, 16_384),
        (1_000, 0, 300),
        (1_000, 1_200, 188),
        (1_000, 1_900, 64),
    ],
)
def test_a_summary_follows_the_limit_and_the_room_that_the_request_leaves(
    limit: int, used: int, tokens: int
) -> None:
    window = full(f"u a={limit // 2} u a={limit // 5} u a={limit // 5}", limit=limit, used=used)

    assert make_plan(POLICY, window).summary_tokens == tokens


def test_the_newest_stay_where_the_request_is_over_the_threshold() -> None:
    window = full("u a=300 u a=20 a=20 a=20", used=1_190)  # the request has 810 of these

    assert make_plan(POLICY, window).cut == 4


@pytest.mark.parametrize(
    ("trigger", "settings", "kept"),
    [
        (Trigger.THRESHOLD, {}, 40),
        (Trigger.OVERFLOW, {}, 40),
        (Trigger.MANUAL, {}, 20),
        (Trigger.IDLE, {}, 20),
        (Trigger.THRESHOLD, {"keep_tokens": 30_000}, 30),
        (Trigger.MANUAL, {"keep_tokens": 30_000}, 30),
    ],
)
def test_less_stays_between_tasks_than_in_the_middle_of_one(
    trigger: Trigger, settings: dict[str, int], kept: int
) -> None:
    window = replace(full("a=1000 " * 90, limit=100_000), trigger=trigger)

    assert make_plan(replace(POLICY, **settings), window).cut == 90 - kept + 1


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.IDLE, Trigger.OVERFLOW])
def test_what_is_asked_for_is_not_answered_by_clearing_results_alone(trigger: Trigger) -> None:
    plan = make_plan(POLICY, replace(full(READ_TWICE), trigger=trigger))

    assert plan.cut


def test_where_all_may_stay_it_says_so() -> None:
    with pytest.raises(NothingToCompactError, match="newest 400 are kept"):
        POLICY.plan(replace(full("u a"), trigger=Trigger.MANUAL))


@given(
    words=st.lists(
        st.sampled_from(
            ["u", "a", "u=40", "a=300", "c r=90", "c=11 r=250", "d!", "c=12 r", "u=700"]
        ),
        min_size=1,
        max_size=30,
    ),
    limit=st.sampled_from([400, 1_000, 5_000]),
    calls=st.sampled_from([1, 100]),
)
def test_after_it_there_is_room_for_a_tenth_and_more(
    words: list[str], limit: int, calls: int
) -> None:
    window = full(" ".join(words), limit=limit, calls=calls)
    if not POLICY.fires(window):
        return
    try:
        settled = settle_plan(window, make_plan(POLICY, window))
    except NothingToCompactError:
        return
    newest = window.items[-1].tokens
    assert settled.kept_tokens <= max(0.72 * limit, window.held_tokens + newest)
