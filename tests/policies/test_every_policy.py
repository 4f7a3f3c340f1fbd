"""Whatever a policy plans, of any history: what is served is whole, covered, and smaller."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from neutral_session import NeutralSession
from story import Chapters, Story, chapters
from story_rules import (
    a_conversation_is_left,
    every_block_has_one_fate,
    nothing_is_parted,
    pins_and_open_calls_stay,
    something_goes,
    the_view_is_not_empty,
    what_stays_is_told_apart,
    what_was_done_to_a_block_lasts,
)
from vector_files import FOLDERS, lines_of

from cutbank.domain.compaction_events import Trigger
from cutbank.domain.coverage import Settlement, settle
from cutbank.domain.cut_points import legal_cuts
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.policies.catalog import POLICIES, policy_named
from cutbank.domain.policies.policy import Policy, is_due, presets_of
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Plan, Window


def named() -> Iterator[str]:
    """Every policy by name, and with each of its presets."""
    for name, policy in POLICIES.items():
        yield name
        yield from (f"{name}@{preset}" for preset in presets_of(policy))


EVERY_POLICY = pytest.mark.parametrize("name", list(named()))
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
        return settle(window, plan)
    except NothingToCompactError as nothing:
        says_why(nothing)
        if plan.cut is not None:
            assert not legal_cuts(window)
        return None


def says_why(nothing: NothingToCompactError) -> None:
    assert str(nothing).startswith("nothing to ")


@EVERY_POLICY
@settings(max_examples=100, deadline=None)
@given(told=chapters, sizes=SIZES, limit=LIMITS, trigger=st.sampled_from(Trigger))
def test_every_plan_is_settled_by_the_rules(
    name: str, told: Chapters, sizes: list[int], limit: int, trigger: Trigger
) -> None:
    policy, story = policy_named(name, {}), Story(sizes=sizes, limit=limit, trigger=trigger)
    for talk, acts, _ in told:
        for verb, n in (*talk, *acts):
            getattr(story, verb)(n)
        window, fates = story.window(), {at: story.fate(at) for at in story.blocks}
        covered = story.summary.covers if story.summary else Ranges()
        plan = planned(policy, window)
        if plan is None or settled(window, plan) is None:
            continue
        settlement = story.settled(window, plan)
        every_block_has_one_fate(story, settlement)
        nothing_is_parted(story, settlement, window)
        pins_and_open_calls_stay(story, settlement)
        what_was_done_to_a_block_lasts(story, fates)
        something_goes(settlement, window, covered)
        the_view_is_not_empty(settlement, window)
        what_stays_is_told_apart(story, settlement, window)
    event(f"{story.generation} generations")


@EVERY_POLICY
@settings(max_examples=60, deadline=None)
@given(told=chapters, sizes=SIZES, limit=LIMITS)
def test_asked_again_and_again_it_comes_to_an_end(
    name: str, told: Chapters, sizes: list[int], limit: int
) -> None:
    policy, story = policy_named(name, {}), Story(sizes=sizes, limit=limit)
    for talk, acts, _ in told:
        for verb, n in (*talk, *acts):
            getattr(story, verb)(n)

    rounds = 0
    while (plan := planned(policy, window := story.window())) and settled(window, plan):
        before = sum(item.tokens for item in window.items)
        assert story.settled(window, plan).kept_tokens < before
        rounds += 1
        assert rounds <= 2 * len(story.blocks), "it goes on for ever"


@EVERY_POLICY
@FOLDERS
def test_every_plan_of_the_vectors_histories_is_settled_by_the_rules(
    folder: str, name: str
) -> None:
    policy = policy_named(name, {})
    for history in lines_of(folder, "histories"):
        session = NeutralSession(history["blocks"])
        for limit in (300, 3_000):
            window = session.window(limit, behind=session.last_summary)
            plan = planned(policy, window)
            settlement = settled(window, plan) if plan else None
            if settlement is not None:
                a_conversation_is_left(window, settlement)
