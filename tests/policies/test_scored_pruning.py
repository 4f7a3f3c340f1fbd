"""Seed 001: when, where and what to prune, claim by claim, and what holds for every history."""

from dataclasses import replace
from functools import partial

import pytest
from worded_windows import make_plan, make_window

from cutbank import Block, ScoredPruning, Trigger, Window, WindowItem
from cutbank.adapters.runtime.compaction.event_sink import context_pruned
from cutbank.adapters.settings.compaction_settings import ContextSettings
from cutbank.domain.context_limit import Color, UsageLevel, Utilization, find_color
from cutbank.domain.policies.reference.qbit import QbitAsShipped, escape_like_rust

PLAIN = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)
talk = partial(make_window, tokens=100, limit=1_000, trigger=Trigger.THRESHOLD)


def drops(window: Window, policy: ScoredPruning = PLAIN) -> list[int]:
    plan = make_plan(policy, window)
    assert (plan.cut, plan.summary_tokens) == (None, 0)
    return list(plan.drops)


def compute_target(tokens: int, limit: int = 1_000, policy: ScoredPruning = PLAIN) -> int:
    return policy.compute_target(policy.level_marks.measure(tokens, limit))


# Counting


@pytest.mark.claim("S1.2")
def test_a_token_is_about_four_characters() -> None:
    texts = ["", "a", "abcd", "abcde", "日本語", "x" * 4_001]
    items = [WindowItem(at, Block.user(text), at, 0) for at, text in enumerate(texts, 1)]

    assert QbitAsShipped().weigh(items).tokens == [0, 1, 1, 2, 3, 1_001]


@pytest.mark.claim("S1.4", "S1.17")
def test_reserves_and_ten_points_are_kept_free_of_what_pruning_aims_for() -> None:
    shipped = ScoredPruning()

    assert shipped.count_available_tokens(1_000) == 0
    available = 200_000 - 4_000 - 8_192
    assert compute_target(150_000, 200_000, shipped) == int(available * (0.8 - 0.1))
    assert compute_target(850) == 700
    assert compute_target(650, policy=replace(PLAIN, compaction_threshold=0.6)) == 500


@pytest.mark.claim("S1.5", "S1.6", "S1.7", "S1.8")
def test_the_settings_are_those_of_the_document() -> None:
    names = ["enabled", "compaction_threshold", "protected_turns", "cooldown_seconds"]

    for settings in (ScoredPruning(), ContextSettings()):
        assert [getattr(settings, name) for name in names] == [True, 0.80, 2, 60]


# Levels


@pytest.mark.claim("S1.10", "S1.11", "S1.12", "S1.31", "S1.32", "S1.34")
def test_from_70_percent_on_there_is_a_warning_and_from_80_on_it_prunes() -> None:
    for tokens in (300, 699, 700, 799, 800, 899):
        window = talk(f"u=100 u=100 u={tokens - 200}")
        is_warned, is_full = 700 <= tokens < 800, tokens >= 800
        warning = Utilization(tokens, 1_000, UsageLevel.WARNING) if is_warned else None

        assert is_full or PLAIN.find_warning(window) == warning, tokens
        assert PLAIN.fires(window) is is_full, tokens
        assert (PLAIN.measure_level(window).level is UsageLevel.ALERT) is is_full, tokens
        assert (PLAIN.plan(window) is not None) is is_full, tokens


@pytest.mark.claim("S1.13")
def test_from_90_percent_on_it_aims_lower() -> None:
    assert [compute_target(tokens) for tokens in (899, 900, 1_200)] == [700, 560, 560]
    assert drops(talk("u=300 u=300 u=200 u=100")) == [1, 2]


def test_a_threshold_above_90_percent_moves_the_critical_level() -> None:
    late = replace(PLAIN, compaction_threshold=0.95)

    assert late.level_marks.measure(940, 1_000).level is UsageLevel.WARNING
    assert late.level_marks.measure(950, 1_000).level is UsageLevel.CRITICAL


# What is removed


@pytest.mark.claim("S1.14", "S1.16", "S1.33")
def test_the_oldest_of_equals_leave_until_the_rest_fits() -> None:
    window = talk("u=85 " * 10)

    assert drops(window) == [1, 2]
    assert drops(window, replace(PLAIN, protected_turns=9)) == [1]


@pytest.mark.claim("S1.16")
def test_what_is_worth_least_leaves_first() -> None:
    assert drops(talk("u a u a u=1 a u=250 u")) == [2, 4]


@pytest.mark.claim("S1.20")
def test_calls_that_only_look_leave_before_what_was_said() -> None:
    window = talk("u=10 a=90 u=10 c=10 r=90 u=10 l=10 r=290 u=10 a=190 u=10 a=90")

    assert drops(window) == [7, 8]
    as_others = talk("u=10 a=90 u=10 c=10 r=90 u=10 c=10 r=290 u=10 a=190 u=10 a=90")
    assert 7 not in drops(as_others)


@pytest.mark.claim("S1.37")
def test_the_documents_proof_is_the_same_as_shipped_and_goes_further_by_its_table() -> None:
    """At 90.0% the proof prints Alert, and the table has Critical there: the table holds."""
    window = talk("u=450 " * 10, limit=5_000)
    shipped = QbitAsShipped(reserved_system_tokens=0, reserved_response_tokens=0)

    gone = [window.items[at - 1] for at in drops(window, shipped)]

    assert context_pruned(shipped.describe_pruning(window, gone)) == {
        "type": "context_pruned",
        "messages_removed": 3,
        "utilization_before": 0.90,
        "utilization_after": 0.63,
        "tokens_freed": 1_350,
    }
    assert drops(window) == [1, 2, 3, 4]


@pytest.mark.claim("S1.22")
def test_the_current_turn_stays_even_where_none_is_protected() -> None:
    assert drops(talk("u a u=500 c=200 r=200"), replace(PLAIN, protected_turns=0)) == [1, 2]


def test_what_is_pinned_stays_and_others_leave_in_its_place() -> None:
    assert 1 in drops(talk("u=400 u=100 a c=10 r=190 u u"))
    assert 1 not in drops(talk("u=400! u=100 a c=10 r=190 u u"))


@pytest.mark.claim("S1.26")
def test_between_two_prunings_there_is_a_minute() -> None:
    for since, fires in [(None, True), (10, False), (59, False), (60, True)]:
        window = talk("u=500 u=200 u=200 u", since_boundary_s=since)

        assert PLAIN.fires(window) is fires, since
        assert (PLAIN.plan(window) is not None) is fires, since
        assert PLAIN.plan(replace(window, trigger=Trigger.OVERFLOW)) is not None, since


@pytest.mark.claim("S1.27", "S1.35")
def test_where_it_is_off_nothing_happens() -> None:
    off, window = replace(PLAIN, enabled=False), talk("u " * 12)

    assert off.plan(window) is None
    assert off.find_warning(window) is None
    assert not off.fires(window)


@pytest.mark.claim("S1.28")
def test_the_meter_has_the_documents_colours() -> None:
    shares = (0.0, 0.499, 0.5, 0.749, 0.75, 0.849, 0.85, 1.2)

    assert [find_color(share) for share in shares] == [
        *[Color.GREEN] * 2,
        *[Color.YELLOW] * 2,
        *[Color.ORANGE] * 2,
        *[Color.RED] * 2,
    ]


# Windows of which little can come


def test_after_a_refusal_for_length_something_leaves_however_little_seems_in_use() -> None:
    assert drops(talk("u=10 u=10 u=10 u=10", trigger=Trigger.OVERFLOW)) == [1]


def test_reserves_that_take_the_whole_limit_are_named() -> None:
    plan = make_plan(ScoredPruning(), talk("u=3000 u=2000 u=1500", limit=8_000))
    assert list(plan.drops) == [1]
    assert plan.reason == (
        "threshold: 6,500 tokens in use, 81.2% of 8,000 (Alert); the least valuable blocks leave "
        "until 0 are left, because reserved_system_tokens and reserved_response_tokens take the "
        "whole limit"
    )


def test_where_all_is_protected_the_plan_leaves_it_to_the_store() -> None:
    assert drops(talk("u=900")) == []


# Texts


def test_a_text_is_escaped_as_rust_does_it() -> None:
    rows: list[tuple[str, str]] = [
        ("plain", '"plain"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a\n\tb\\\r\0", '"a\\n\\tb\\\\\\r\\0"'),
        ("日本\u200d\u0301\x07", '"日本\\u{200d}\\u{301}\\u{7}"'),
    ]

    assert [(text, escape_like_rust(text)) for text, _ in rows] == rows
