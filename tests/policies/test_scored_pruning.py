"""Pruning by worth where things go wrong, and what holds for every history."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dialects import qbit
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.settings.settings import Settings
from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.cut_points.orphans import orphans
from cutbank.domain.errors import InvalidSettingError, NothingToCompactError
from cutbank.domain.item import Item
from cutbank.domain.policies.catalog import policy_named
from cutbank.domain.policies.measuring.message_sizes import as_debugged
from cutbank.domain.policies.policy import settings_of
from cutbank.domain.policies.scored_pruning import ScoredPruning
from cutbank.domain.ranges import Ranges
from cutbank.domain.tool_result_size import OutputKind, ends_within, kind_of
from cutbank.domain.utilization import Level, Pruned, Utilisation
from cutbank.domain.window import Window

PAGE = (Path(__file__).parents[2] / "docs" / "policies" / "scored-pruning.md").read_text("utf-8")
PLAIN = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)


def users(*tokens: int, limit: int = 1_000, trigger: Trigger = Trigger.THRESHOLD) -> Window:
    items = tuple(Item(at, Block.user("words"), at, size) for at, size in enumerate(tokens, 1))
    return Window(items, len(items), limit, trigger)


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compaction_threshold": 0}, "compaction_threshold cannot be 0; it takes a fraction"),
        ({"compaction_threshold": 80}, "compaction_threshold cannot be 80"),
        ({"compaction_threshold": "nan"}, "compaction_threshold cannot be nan"),
        ({"protected_turns": -1}, "protected_turns cannot be -1"),
        ({"protected_turns": 1.5}, "protected_turns cannot be 1.5; it takes a whole number"),
        ({"cooldown_seconds": -1}, "cooldown_seconds cannot be -1"),
        ({"critical_threshold": 0.5}, r"critical_threshold is 0.5, below compaction_threshold"),
        ({"reserved_system_tokens": -1}, "reserved_system_tokens cannot be -1"),
        ({"levels_at": "="}, "levels_at cannot be '='; it takes >= or >"),
        ({"protects": "users"}, "protects cannot be 'users'; it takes turns or messages"),
        ({"choice": "any"}, "choice cannot be 'any'; it takes remove-lowest or keep-highest"),
        ({"enabled": "perhaps"}, "enabled cannot be 'perhaps'; it takes true or false"),
        ({"unit": "words"}, "unit cannot be 'words'"),
        ({"target": 1}, "scored-pruning has no setting 'target'"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message) as refused:
        policy_named("scored-pruning", settings)

    assert "\n" not in str(refused.value)


def test_a_threshold_above_90_percent_moves_the_critical_level() -> None:
    late = replace(PLAIN, compaction_threshold=0.95)

    assert late.marks.of(940, 1_000).level is Level.WARNING
    assert late.marks.of(950, 1_000).level is Level.CRITICAL


# Windows of which little can come


@pytest.mark.parametrize("trigger", [Trigger.THRESHOLD, Trigger.IDLE])
def test_where_nobody_waits_an_empty_window_is_no_error(trigger: Trigger) -> None:
    assert PLAIN.plan(users(trigger=trigger)) is None


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.OVERFLOW])
def test_whoever_waits_is_told_that_there_is_nothing_to_prune(trigger: Trigger) -> None:
    with pytest.raises(NothingToCompactError, match="nothing to prune: 0 tokens are in use"):
        PLAIN.plan(users(trigger=trigger))


def test_whoever_asks_is_told_how_much_may_stay() -> None:
    with pytest.raises(NothingToCompactError, match="650 tokens are in use, and 700 may stay"):
        PLAIN.plan(users(600, 50, trigger=Trigger.MANUAL))


def test_after_a_refusal_for_length_something_leaves_however_little_seems_in_use() -> None:
    plan = PLAIN.plan(users(10, 10, 10, 10, trigger=Trigger.OVERFLOW))

    assert plan is not None
    assert list(plan.drops) == [1]


@pytest.mark.parametrize("limit", [0, -1])
def test_without_a_limit_nothing_is_due(limit: int) -> None:
    window = users(9_999, 9_999, limit=limit)

    assert PLAIN.level(window) == Utilisation(19_998, limit, Level.NORMAL)
    assert PLAIN.level(window).share == 0
    assert not PLAIN.fires(window)
    assert PLAIN.plan(window) is None


def test_reserves_that_take_the_whole_limit_are_named() -> None:
    plan = ScoredPruning().plan(users(3_000, 2_000, 1_500, limit=8_000))

    assert plan is not None
    assert list(plan.drops) == [1]
    assert plan.reason == (
        "threshold: 6,500 tokens in use, 81.2% of 8,000 (Alert); what is worth least leaves until "
        "0 are left, for reserved_system_tokens and reserved_response_tokens take it all"
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
    target = policy.target(policy.level(window))
    stays = Ranges.of(item.position for item in items) - plan.drops
    assert not orphans(items, stays)
    if left > target:
        again = Window(tuple(i for i in items if i.position in stays), len(items), 1_000)
        weighed = policy.weighed(again.items)
        assert len(policy.stays(weighed, weighed.total, 0)) == len(weighed.messages)


# Texts


@pytest.mark.parametrize(
    ("text", "debugged"),
    [
        ("plain", '"plain"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a\n\tb\\\r\0", '"a\\n\\tb\\\\\\r\\0"'),
        ("日本\u200d\u0301\x07", '"日本\\u{200d}\\u{301}\\u{7}"'),
    ],
)
def test_a_text_is_escaped_as_rust_does_it(text: str, debugged: str) -> None:
    assert as_debugged(text) == debugged


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", OutputKind.TEXT),
        ("a few plain words", OutputKind.TEXT),
        ("fn f() { g(); }", OutputKind.CODE),
        ("2026-01-01 10:00 WARN disk is full", OutputKind.LOG),
    ],
)
def test_what_a_tool_answered_with_is_told_by_looks(text: str, kind: OutputKind) -> None:
    assert kind_of(text) is kind


@given(st.text(max_size=2_000), st.integers(1, 600))
def test_the_ends_of_a_text_never_overlap_and_fit(text: str, most: int) -> None:
    ends = ends_within(text, most)

    if ends is None:
        assert len(text.encode()) <= max(4 * most, 99)
        return
    assert ends.head + ends.tail < len(text)
    shown = text[: ends.head] + (text[-ends.tail :] if ends.tail else "")
    assert len(shown.encode()) <= 4 * most


# The page


def test_the_page_shows_the_settings_and_the_events_as_they_are() -> None:
    (section,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (events,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    names = {setting.name for setting in settings_of(ScoredPruning)}

    settings = Settings.model_validate(tomllib.loads(section))
    assert settings.policy == ScoredPruning()
    assert names >= set(re.findall(r"^\| `([a-z_]+)`", PAGE, re.MULTILINE))
    full = Utilisation(170_000, 200_000, Level.ALERT)
    half = Utilisation(130_000, 200_000, Level.NORMAL)
    assert [json.loads(line) for line in events.splitlines()] == [
        qbit.context_warning(Utilisation(150_000, 200_000, Level.WARNING)),
        qbit.context_pruned(Pruned(full, half, messages=3)),
        qbit.tool_response_truncated("read_file", 50_000, 25_000),
    ]
