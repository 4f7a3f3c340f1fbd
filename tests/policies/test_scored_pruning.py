"""Pruning by worth where things go wrong, and what holds for every history."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.counting.estimators import escape_like_rust
from cutbank.domain.cut_points import find_orphans
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import Item
from cutbank.domain.policies.scored_pruning import ScoredPruning
from cutbank.domain.ranges import Ranges
from cutbank.domain.tool_result_size import OutputKind, detect_output_kind, find_ends
from cutbank.domain.utilization import UsageLevel, Utilization
from cutbank.domain.window import Window

PLAIN = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)


def users(*tokens: int, limit: int = 1_000, trigger: Trigger = Trigger.THRESHOLD) -> Window:
    items = tuple(Item(at, Block.user("words"), at, size) for at, size in enumerate(tokens, 1))
    return Window(items, len(items), limit, trigger)


# Settings


def test_a_threshold_above_90_percent_moves_the_critical_level() -> None:
    late = replace(PLAIN, compaction_threshold=0.95)

    assert late.level_marks.measure(940, 1_000).level is UsageLevel.WARNING
    assert late.level_marks.measure(950, 1_000).level is UsageLevel.CRITICAL


# Windows of which little can come


def test_where_nobody_waits_an_empty_window_is_no_error() -> None:
    for trigger in [Trigger.THRESHOLD, Trigger.IDLE]:
        assert PLAIN.plan(users(trigger=trigger)) is None, trigger


def test_whoever_waits_is_told_that_there_is_nothing_to_prune(subtests: pytest.Subtests) -> None:
    for trigger in [Trigger.MANUAL, Trigger.OVERFLOW]:
        with (
            subtests.test(str(trigger)),
            pytest.raises(NothingToCompactError, match="nothing to prune: 0 tokens are in use"),
        ):
            PLAIN.plan(users(trigger=trigger))


def test_after_a_refusal_for_length_something_leaves_however_little_seems_in_use() -> None:
    plan = PLAIN.plan(users(10, 10, 10, 10, trigger=Trigger.OVERFLOW))

    assert plan is not None
    assert list(plan.drops) == [1]


def test_without_a_limit_nothing_is_due() -> None:
    for limit in [0, -1]:
        window = users(9_999, 9_999, limit=limit)

        assert PLAIN.measure_level(window) == Utilization(19_998, limit, UsageLevel.NORMAL), limit
        assert PLAIN.measure_level(window).share == 0, limit
        assert not PLAIN.fires(window), limit
        assert PLAIN.plan(window) is None, limit


def test_reserves_that_take_the_whole_limit_are_named() -> None:
    plan = ScoredPruning().plan(users(3_000, 2_000, 1_500, limit=8_000))

    assert plan is not None
    assert list(plan.drops) == [1]
    assert plan.reason == (
        "threshold: 6,500 tokens in use, 81.2% of 8,000 (Alert); the least valuable blocks leave "
        "until 0 are left, because reserved_system_tokens and reserved_response_tokens take the "
        "whole limit"
    )


def test_where_all_is_protected_the_plan_leaves_it_to_the_store() -> None:
    plan = PLAIN.plan(users(900))

    assert plan is not None
    assert not plan.drops


# Every history


@given(
    st.lists(st.tuples(st.sampled_from("uacr"), st.integers(0, 300)), max_size=25),
    st.integers(0, 4),
    st.sampled_from(["turns", "messages"]),
    st.sampled_from(["remove-lowest", "keep-highest"]),
)
def test_what_is_left_fits_or_all_that_may_leave_has_left(
    words: list[tuple[str, int]], newest: int, protects: str, choice: str
) -> None:
    items: list[Item] = []
    open_call = 0
    turn = 1
    for at, (kind, tokens) in enumerate(words, 1):
        turn += kind == "u"
        if kind == "c":
            open_call = at
        answered = open_call if kind == "r" else None
        blocks: dict[str, AnyBlock] = {
            "u": Block.user("words"),
            "a": Block.assistant("words"),
            "c": ToolCall(tool_call_id=f"c{at}", name="bash"),
            "r": ToolResult(tool_call_id=f"c{open_call or 'none'}"),
        }
        items.append(Item(at, blocks[kind], turn, tokens, answered or None))
    policy = replace(PLAIN, protected_turns=newest, protects=protects, choice=choice)
    window = Window(tuple(items), len(items), 1_000, Trigger.THRESHOLD)

    plan = policy.plan(window)

    assert (plan is not None) is policy.fires(window)
    if plan is None:
        return
    left = sum(item.tokens for item in items if item.position not in plan.drops)
    target = policy.compute_target(policy.measure_level(window))
    stays = Ranges.of(item.position for item in items) - plan.drops
    assert not any(find_orphans(items, stays))
    if left > target:
        again = Window(tuple(i for i in items if i.position in stays), len(items), 1_000)
        weighed = policy.weigh(again.items)
        assert len(policy.choose_staying(weighed, weighed.total, 0)) == len(weighed.messages)


# Texts


def test_a_text_is_escaped_as_rust_does_it() -> None:
    rows: list[tuple[str, str]] = [
        ("plain", '"plain"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a\n\tb\\\r\0", '"a\\n\\tb\\\\\\r\\0"'),
        ("日本\u200d\u0301\x07", '"日本\\u{200d}\\u{301}\\u{7}"'),
    ]
    for text, debugged in rows:
        assert escape_like_rust(text) == debugged, text


def test_what_a_tool_answered_with_is_told_by_looks() -> None:
    rows: list[tuple[str, OutputKind]] = [
        ("", OutputKind.TEXT),
        ("a few plain words", OutputKind.TEXT),
        ("fn f() { g(); }", OutputKind.CODE),
        ("2026-01-01 10:00 WARN disk is full", OutputKind.LOG),
    ]
    for text, kind in rows:
        assert detect_output_kind(text) is kind, text


@given(st.text(max_size=2_000), st.integers(1, 600))
def test_the_ends_of_a_text_never_overlap_and_fit(text: str, most: int) -> None:
    ends = find_ends(text, most)

    if ends is None:
        assert len(text.encode()) <= max(4 * most, 99)
        return
    assert ends.head + ends.tail < len(text)
    shown = text[: ends.head] + (text[-ends.tail :] if ends.tail else "")
    assert len(shown.encode()) <= 4 * most
