"""Seed 000, rule by rule: what the settings do, and what they and odd windows are refused for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from dialects.kdcube import find_cut
from worded_windows import find_planned_cut, make_items, make_plan, make_window

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import ToolCall
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import WindowItem
from cutbank.domain.policies.reference.kdcube import KdcubeAsShipped, count_overhead
from cutbank.domain.policies.rolling_timeline import RollingTimeline
from cutbank.domain.ranges import Ranges
from cutbank.domain.settlement import settle_plan
from cutbank.domain.summaries.kdcube_template import KdcubeTemplate, list_touched_files
from cutbank.domain.summaries.summarizer import Material, SummaryPart
from cutbank.domain.summaries.templates import NO_HISTORY_TEXT
from cutbank.domain.window import OnFailure

POLICY = RollingTimeline(keep_recent_turns=0)
window = make_window


def cut(words: str, policy: RollingTimeline = POLICY, **more: Any) -> int | None:
    return find_planned_cut(policy, make_window(words, **more))


def test_the_block_that_reaches_the_share_or_the_next_message_is_kept() -> None:
    cuts = {
        "u a u a u=30 a=40": 5,
        "u a u a u=30 a=39": 4,
        "u a u a u=90": 5,
        "u c r u=30 a=35": 4,
        "u c r=40 u a=35": 4,
        "u a t/m c/m r=60": 3,
        "u a a/m c/m=40 r=40": 3,
        "u t a=80 u=30": 2,
    }
    assert {words: cut(words) for words in cuts} == cuts


def test_the_newest_turns_stay_whole_where_that_leaves_something_to_go() -> None:
    words = "u a=20 u a=20 u a=10 u a=10"

    short = replace(POLICY, keeps=0.3)

    assert cut(words, short) == 6
    assert cut(words, replace(short, keep_recent_turns=2)) == 5
    assert cut(words, replace(short, keep_recent_turns=3)) == 3
    assert cut("u=60 a=80 u a", replace(POLICY, keep_recent_turns=9), limit=140) == 2


@pytest.mark.claim("S0.21", "S0.22")
def test_it_fires_above_nine_tenths_and_not_at_them() -> None:
    for used in (89, 90, 91):
        seen = window(f"u={used - 10}", trigger=Trigger.THRESHOLD, overhead=10)

        assert POLICY.measure_usage(seen).total == used
        assert POLICY.fires(seen) is (used > 90), used
    assert count_overhead(window("")) == 1


def test_thinking_counts_towards_what_stays_and_did_not_in_the_original() -> None:
    seen = window("u a u=30 a=30 t=30 a=10")
    by_blocks = find_cut(POLICY, seen)
    by_messages = find_cut(KdcubeAsShipped(keep_recent_turns=0), seen)

    assert by_blocks is not None
    assert by_messages is not None
    assert (by_blocks.first_kept, by_messages.first_kept) == (4, 3)


@pytest.mark.claim("S0.6")
def test_a_share_of_the_limit_stays_or_of_what_was_refused_or_is_in_use() -> None:
    for trigger in [Trigger.MANUAL, Trigger.OVERFLOW, Trigger.IDLE]:
        assert cut("u a=10 u a=65", trigger=trigger) == 3, trigger
    assert cut("u a u a u a", limit=100_000, trigger=Trigger.OVERFLOW) == 2
    assert cut("u=30 a=30 u=30 a=30", limit=0) == 2
    assert cut("u a", trigger=Trigger.IDLE) is None
    with pytest.raises(NothingToCompactError, match="nothing to compact: of 60 tokens"):
        cut("u a u a u a", limit=100_000)


def test_a_plan_says_why_how_large_and_what_if_nobody_writes() -> None:
    plan = make_plan(POLICY, window("u=30 a u=30 a=40", trigger=Trigger.THRESHOLD))
    assert plan.reason == ("threshold: 110 of 100 tokens in use; of the blocks, the newest 70 stay")
    assert (plan.summary_tokens, plan.turn_tokens) == (800, 400)
    assert plan.on_failure is OnFailure.EXTRACTIVE
    forced = make_plan(
        get_policy("kdcube@as_shipped"), window("u=30 a u=30 a=40", system_prompt="s" * 400)
    )
    assert forced.on_failure is OnFailure.UNCHANGED


# Odd windows


def test_a_result_larger_than_the_limit_ends_in_a_smaller_view() -> None:
    for words in ["u a c r=20000", "u c r=20000 a", "r=20000 u a"]:
        for preset in ["kdcube", "kdcube@as_shipped"]:
            seen = window(words, limit=1_000, trigger=Trigger.THRESHOLD)
            plan = make_plan(get_policy(preset), seen)
            settlement = settle_plan(seen, plan)
            assert settlement.kept_tokens < sum(item.tokens for item in seen.items), (preset, words)
            assert settlement.kept, (preset, words)


# The form


def material(items: Sequence[WindowItem], *, prefix: Ranges | None = None, **more: Any) -> Material:
    positions = Ranges.of(item.position for item in items)
    return Material(
        removed_items=tuple(items), covers=positions, budget=800, prefix=prefix or Ranges(), **more
    )


def test_without_history_what_stood_there_stays() -> None:
    for previous, above in [(None, NO_HISTORY_TEXT), ("so far", "so far")]:
        gone = material(make_items("u a"), prefix=Ranges.span(1, 2), previous=previous)
        form = KdcubeTemplate()

        assert [asked.part for asked in form.plan_requests(gone)] == [SummaryPart.TURN], previous
        assert form.join_answers({SummaryPart.TURN: "PRE"}, gone) == (
            f"{above}\n\n---\n\n**Turn Context (split turn)**\n\nPRE"
        ), previous


def test_files_are_those_that_calls_name_however_deep_and_modified_wins() -> None:
    calls = [
        ToolCall(tool_call_id="1", name="files.read", arguments={"paths": ["b", "a"]}),
        ToolCall(tool_call_id="2", name="edit", arguments={"file": {"path": "a"}}),
        ToolCall(tool_call_id="3", name="write", arguments={"files": [{"filepath": "c"}, 4]}),
        ToolCall(tool_call_id="4", name="bash", arguments={"path": "d"}),
        ToolCall(tool_call_id="5", name="read", arguments="not json"),
    ]
    items = [
        WindowItem(position=at, block=call, turn=1, tokens=1) for at, call in enumerate(calls, 1)
    ]

    assert list_touched_files(items) == (["b"], ["a", "c"])
