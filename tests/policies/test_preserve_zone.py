"""What preserve-zone does with settings that contradict each other, and where nothing helps."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from worded_windows import make_plan, make_window

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import BlockKind, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import WindowItem
from cutbank.domain.policies.preserve_zone import PreserveZone
from cutbank.domain.policies.reference.claude_sdk import GoatAsShipped
from cutbank.domain.ranges import Ranges
from cutbank.domain.settlement import settle_plan
from cutbank.domain.summaries.summarizer import Material
from cutbank.domain.summaries.templates import ClaudeSdkTemplate
from cutbank.domain.window import OnFailure, Plan, Window

POLICY = PreserveZone(max_output_tokens=0)
BLOCKS = {"r": ToolResult(tool_call_id="c", content="x" * 4_000)}
talk = partial(make_window, blocks=BLOCKS)


# Where nothing helps


def test_where_the_reserve_alone_fires_the_setting_is_named() -> None:
    window = talk("u a", limit=10_000, trigger=Trigger.THRESHOLD)

    assert PreserveZone().fires(window)
    with pytest.raises(NothingToCompactError, match=r"max_output_tokens holds 16,384 of 10,000"):
        PreserveZone().plan(window)


def test_a_newest_message_larger_than_the_zone_would_leave_and_the_store_keeps_it() -> None:
    """The document plans to preserve nothing (its split is the end); no view is left empty."""
    window = talk("u a u=500")
    plan = make_plan(POLICY, window)
    assert plan.cut == 4

    settled = settle_plan(window, plan)

    assert settled.kept == Ranges.of([3])
    assert [(one.rule, one.wanted, one.got) for one in settled.repairs] == [
        ("nearest-legal-cut", 4, 3)
    ]
    assert GoatAsShipped().find_split(window) == 2


def test_where_results_are_never_shortened_none_is_planned() -> None:
    window = talk("u c r a", limit=100_000, trigger=Trigger.THRESHOLD)

    assert replace(POLICY, prune_over=None).plan(window) is None


def test_a_giant_result_alone_is_shortened() -> None:
    for name in ["claude-sdk", "preserve-zone@as_shipped"]:
        window = talk("c r=5000", limit=1_000)
        plan = make_plan(get_policy(name), window)

        settled = settle_plan(window, plan)

        assert [trim.position for trim in settled.trims] == [2], name


def test_what_stepping_back_parts_is_repaired() -> None:
    window = make_window("u=10 c=10 r=200 c=10 r=20 a=10", limit=100)
    plan = make_plan(GoatAsShipped(max_output_tokens=0, preserve_ratio=0.5), window)
    assert plan.cut == 3
    assert window.items[2].kind is BlockKind.TOOL_RESULT

    settled = settle_plan(window, plan)

    assert settled.kept == Ranges.of([2, 3, 4, 5, 6])
    assert [one.rule for one in settled.repairs][:1] == ["nearest-legal-cut"]


# The plan


def test_the_plan_says_how_full_it_was_and_what_is_kept() -> None:
    plan = POLICY.plan(talk("u=60 a=10 u=26", trigger=Trigger.THRESHOLD))

    assert plan == Plan(
        cut=2,
        reason="threshold: 96% full, which is critical; the newest 40 tokens are kept",
        summary_tokens=4_096,
        template=ClaudeSdkTemplate(),
        on_failure=OnFailure.NOTICE,
    )


# Pruning


def old_result(used: int, **settings: Any) -> Plan | None:
    """What becomes of a window with one old and long result, so full."""
    window = talk("c r=100 u u u", limit=1_000, trigger=Trigger.THRESHOLD, in_use=used)
    policy = PreserveZone(max_output_tokens=0, preserve_recent=2, **settings)
    plan = policy.plan(window)
    assert policy.fires(window) is (plan is not None)
    return plan


def test_below_the_threshold_old_results_are_shortened_and_nothing_leaves() -> None:
    plan = old_result(140)

    assert plan is not None
    assert (plan.cut, plan.summary_tokens) == (None, 0)
    assert [(trim.position, trim.head) for trim in plan.trims] == [(2, 200)]
    assert plan.reason == "threshold: 1 old tool results are longer than 1,000 characters"
    # The same where a cut could be made, and on request where no cut can be made.
    wide = talk("u=500 c r=100 u u u", limit=1_000, trigger=Trigger.THRESHOLD, in_use=700)
    small = talk("c r=100 u u u", limit=1_000)
    for window, at in ((wide, 3), (small, 2)):
        found = make_plan(PreserveZone(max_output_tokens=0, preserve_recent=2), window)
        assert (found.cut, [trim.position for trim in found.trims]) == (None, [at])


def test_shortening_waits_until_it_saves_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert old_result(140) is not None
    assert old_result(140, prune_over=None) is None
    for gain, is_shortened in [(0.1, True), (0.5, False), (0.0, True)]:
        monkeypatch.setattr(PreserveZone, "prune_gain", gain)
        assert (old_result(700) is not None) is is_shortened, gain


def test_a_pinned_result_and_one_that_is_short_already_fire_nothing() -> None:
    pinned = talk("c r=100! u u u", limit=1_000, trigger=Trigger.THRESHOLD, in_use=140)
    policy = PreserveZone(max_output_tokens=0, preserve_recent=2)

    assert not policy.list_old_results(pinned)
    assert not policy.fires(pinned)
    assert policy.plan(pinned) is None


def test_an_old_result_is_read_once_until_there_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def fit(_: object, text: str, most: int) -> int | None:
        read.append(len(text))
        return 200 if len(text) > most else None

    monkeypatch.setattr(PreserveZone, "fit_head", fit)
    window = talk("c r=500 u u u", limit=1_000, trigger=Trigger.THRESHOLD, in_use=540)
    policy = PreserveZone(max_output_tokens=0, preserve_recent=2)

    assert [policy.fires(window) for _ in range(3)] == [True] * 3
    assert read.count(4_000) == 1
    assert not policy.fires(replace(window, items=window.items[:3]))


def test_a_character_is_not_cut_in_two() -> None:
    result = ToolResult(tool_call_id="c", content="x" + "é" * 1_000)
    window = Window(items=(WindowItem(1, result, 1, 500),), after=1, limit=1_000)
    policy = GoatAsShipped(preserve_recent=0)

    assert [trim.head for trim, _ in policy.list_old_results(window)] == [100]


# The summary


def test_an_earlier_summary_goes_on_where_nothing_new_was_asked() -> None:
    material = Material(removed_items=(), covers=Ranges(), budget=9, previous="Before.")

    assert ClaudeSdkTemplate().join_answers({}, material) == "Before."
    assert ClaudeSdkTemplate().turn_sections == ()
