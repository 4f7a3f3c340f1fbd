"""Whatever a policy plans, of any history: what is served is whole, covered, and smaller."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from every_policy import every_name, fitted
from hypothesis import event, given, settings
from hypothesis import strategies as st
from neutral_session import NeutralSession
from story import Chapters, Story, chapters, play, told_on
from story_rules import (
    a_conversation_is_left,
    every_rule_holds,
    pins_and_open_calls_stay,
    something_goes,
    state_of,
    texts_of,
    the_view_is_not_empty,
)
from vector_files import lines_of
from worded_windows import make_window

from cutbank import NothingToCompactError, Plan, Policy, Ranges, Trigger, Window, get_policy
from cutbank.domain.cut_points import find_legal_cuts
from cutbank.domain.policies.policy import is_due
from cutbank.domain.settlement import Settlement, settle_plan

SOMEBODY_WAITS = frozenset({Trigger.MANUAL, Trigger.OVERFLOW})
SIZES = st.lists(st.sampled_from([0, 1, 30, 300, 3_000, 30_000, 60_000]), min_size=1, max_size=9)
LIMITS = st.sampled_from([0, 100, 1_000, 10_000, 100_000])


def planned(policy: Policy, window: Window) -> Plan | None:
    """The plan, if there is one; where it had to do something, there is, or it says why not."""
    try:
        plan = policy.plan(window)
        if plan is None and window.trigger is Trigger.THRESHOLD and is_due(policy, window):
            # Nobody waits; but whoever asked would have to be told that nothing can be done.
            assert policy.plan(replace(window, trigger=Trigger.MANUAL)) is None, "it holds back"
    except NothingToCompactError as nothing:
        says_why(nothing)
        return None
    assert plan is not None or window.trigger not in SOMEBODY_WAITS, "it does nothing"
    return plan


def settled(window: Window, plan: Plan) -> Settlement | None:
    """What becomes of a plan; nothing only where nothing can."""
    try:
        return settle_plan(window, plan)
    except NothingToCompactError as nothing:
        says_why(nothing)
        if plan.cut is not None:
            assert not find_legal_cuts(window)
        return None


def says_why(nothing: NothingToCompactError) -> None:
    assert str(nothing).startswith("nothing to ")


@pytest.mark.parametrize("name", every_name())
@settings(max_examples=15, deadline=None)
@given(
    told=chapters,
    sizes=SIZES,
    limit=LIMITS,
    trigger=st.sampled_from(Trigger),
    is_fitted=st.booleans(),
)
def test_every_plan_is_settled_by_the_rules(
    name: str, *, told: Chapters, sizes: list[int], limit: int, trigger: Trigger, is_fitted: bool
) -> None:
    policy = fitted(name, limit) if is_fitted else get_policy(name)
    story = Story(sizes=sizes, limit=limit, trigger=trigger)
    for talk, acts, _ in told:
        play(story, *talk, *acts)
        before = state_of(story)
        plan = planned(policy, before.window)
        if plan is not None and settled(before.window, plan) is not None:
            every_rule_holds(story, story.settled(before.window, plan), before)
    event(f"{story.generation} generations")


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(every_name()),
    told=chapters,
    sizes=SIZES,
    limit=LIMITS,
    is_fitted=st.booleans(),
)
def test_asked_again_and_again_it_comes_to_an_end(
    *, name: str, told: Chapters, sizes: list[int], limit: int, is_fitted: bool
) -> None:
    policy = fitted(name, limit) if is_fitted else get_policy(name)
    story = Story(sizes=sizes, limit=limit)
    for talk, acts, _ in told:
        play(story, *talk, *acts)

    rounds = 0
    while (plan := planned(policy, window := story.window())) and settled(window, plan):
        before = sum(item.tokens for item in window.items)
        settlement = story.settled(window, plan)
        assert settlement.kept_tokens < before + texts_of(settlement)
        rounds += 1
        assert rounds <= 2 * len(story.blocks), "it goes on for ever"


@pytest.mark.claim("S0.7", "S0.46", "S0.49", "S1.40", "S3.18", "S3.32", "S4.52")
@pytest.mark.parametrize("folder", ["committed", pytest.param("all", marks=pytest.mark.slow)])
def test_every_plan_of_the_vectors_histories_is_settled_by_the_rules(
    folder: str, record_property: Callable[[str, object], None]
) -> None:
    """What the original programs would break, as their policies here still plan it, is repaired."""
    triggers = (Trigger.THRESHOLD, Trigger.MANUAL)
    repaired: Counter[str] = Counter()
    for history, trigger in product(lines_of(folder, "histories"), triggers):
        session = NeutralSession(history["blocks"])
        whole = session.window(0, trigger, behind=session.last_summary)
        # The view is twice as large as the model can hold, and as it has to be.
        limits = {whole.tokens // 2, 2 * whole.tokens // 3} - {0}
        for limit, name in product(limits, every_name()):
            window = replace(whole, limit=limit)
            plan = planned(fitted(name, limit), window)
            settlement = settled(window, plan) if plan else None
            if settlement is not None:
                a_conversation_is_left(window, settlement)
                repaired[name] += bool(settlement.repairs)
    record_property("repaired", ", ".join(f"{count} of {name}" for name, count in repaired.items()))
    broken = [name for name in every_name() if name.endswith("@as_shipped") and repaired[name]]
    assert len(broken) >= 5, "their plans part too little to test with"


# Windows of which nothing good can come


def test_an_empty_window_is_an_error_only_where_somebody_waits(subtests: pytest.Subtests) -> None:
    for name, limit in product(every_name(), [0, 100_000]):
        policy, window = get_policy(name), Window((), 0, limit, Trigger.THRESHOLD)
        assert not is_due(policy, window), name
        assert policy.plan(window) is None, name
        for trigger in SOMEBODY_WAITS:
            with subtests.test(name), pytest.raises(NothingToCompactError, match="nothing to "):
                policy.plan(replace(window, trigger=trigger))


def test_nothing_is_due_where_no_limit_is_known() -> None:
    for name, limit in product(every_name(), [0, -1]):
        window = make_window("u=9999 a=99999 u a", limit=limit, trigger=Trigger.THRESHOLD)

        assert not is_due(get_policy(name), window), name
        assert get_policy(name).plan(window) is None, name


BAD = {
    "empty": [],
    "one block": ["user"],
    "one block of nothing": ["user"],
    "only pins": ["user", "assistant 1", "user", "pin 0", "pin 1", "pin 2", "pin 3"],
    "only open calls": ["assistant 3"],
    "one message with open calls": ["assistant 11"],
    "only hidden blocks": ["user", "user", "hide 0", "hide 2"],
    "a pair": ["assistant 21", "results"],
    "only a result is long": ["user", "assistant 21", "results"],
}
"""Stories by what is bad about the window that they end in."""


def test_a_bad_window_ends_in_an_error_that_names_the_blocks_or_in_a_legal_view() -> None:
    limits = [-1, 0, 1, 10, 100_000_000]
    for name, bad, limit, trigger in product(every_name(), BAD, limits, Trigger):
        story = Story(sizes=[0 if "nothing" in bad else 9_000], limit=limit, trigger=trigger)
        window = told_on(story, *BAD[bad]).window()
        plan = planned(get_policy(name), window)
        settlement = settled(window, plan) if plan else None
        if settlement is not None:
            something_goes(settlement, window, Ranges())
            the_view_is_not_empty(settlement, window)
            pins_and_open_calls_stay(story, settlement)


def test_of_a_window_that_nothing_may_leave_the_largest_blocks_are_named(
    subtests: pytest.Subtests,
) -> None:
    named = r"#\d+ \w+ [\d,]+ tokens \(pinned\)"
    for name in every_name():
        window = told_on(Story(sizes=[9_000], limit=100), *BAD["only pins"]).window()
        plan = planned(get_policy(name), window)
        if plan is not None:
            with subtests.test(name), pytest.raises(NothingToCompactError, match=named):
                settle_plan(window, plan)
