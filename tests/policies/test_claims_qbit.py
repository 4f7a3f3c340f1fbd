"""What seed 001 says of when, where and what to prune, claim by claim."""

from dataclasses import replace

import pytest

from cutbank.adapters.settings.compaction_settings import ContextSettings
from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.item import Item
from cutbank.domain.policies.catalog import build_policy
from cutbank.domain.policies.scored_pruning import ScoredPruning
from cutbank.domain.utilization import Color, UsageLevel, Utilization, find_color
from cutbank.domain.window import Window
from cutbank.projections.hook_payloads import context_pruned

PLAIN = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)
AS_SHIPPED = build_policy(
    "qbit@as_shipped", {"reserved_system_tokens": 0, "reserved_response_tokens": 0}
)


def talk(
    said: str, *, limit: int = 1_000, trigger: Trigger = Trigger.THRESHOLD, **more: object
) -> Window:
    """A window of one item a word: `u` user, `a` assistant, `c` call, `r` its result, `l` a call
    that only looks; `=5` says how many tokens, else it is 100. Turns begin with users.

    Texts are as long as that in characters of four a token.
    """
    items: list[Item] = []
    turn, call = 1, 0
    for at, word in enumerate(said.split(), 1):
        kind, _, size = word.partition("=")
        tokens = int(size or 100)
        turn += kind == "u" and at > 1
        call = at if kind in "cl" else call
        block = block_of(kind, call, tokens)
        items.append(Item(at, block, turn, tokens, call if kind == "r" else None))
    return Window(tuple(items), len(items), limit, trigger, **more)  # type: ignore[arg-type]


def block_of(kind: str, call: int, tokens: int) -> AnyBlock:
    text = "x" * 4 * tokens
    match kind:
        case "u":
            return Block.user(text)
        case "a":
            return Block.assistant(text)
        case "r":
            return ToolResult(tool_call_id=f"c{call}", content=text)
        case _:
            name = "read_file" if kind == "l" else "bash"
            return ToolCall(tool_call_id=f"c{call}", name=name, arguments={"x": text})


def left(window: Window, policy: ScoredPruning = PLAIN) -> list[int]:
    """Positions that stay."""
    plan = policy.plan(window)
    assert plan is not None
    assert plan.cut is None
    assert plan.summary_tokens == 0
    return [item.position for item in window.items if item.position not in plan.drops]


def full(tokens: int, limit: int = 1_000) -> Utilization:
    return PLAIN.level_marks.measure(tokens, limit)


# Counting


@pytest.mark.claim("S1.2")
def test_a_token_is_about_four_characters() -> None:
    texts = ["", "a", "abcd", "abcde", "日本語", "x" * 4_001]
    window = Window(
        tuple(Item(at, Block.user(text), at, 0) for at, text in enumerate(texts, 1)), 6, 9
    )
    policy = ScoredPruning(unit="bytes")

    assert policy.weigh(window.items).tokens == [0, 1, 1, 2, 3, 1_001]
    assert ScoredPruning(unit="code-points").weigh(window.items).tokens[4] == 1
    assert ScoredPruning(unit="bytes", rounding="down").weigh(window.items).tokens[1] == 0


@pytest.mark.claim("S1.3")
def test_users_the_model_and_tools_are_counted_apart() -> None:
    window = talk("u=10 a=20 c=30 r=40 u=5")

    weighed = PLAIN.weigh(window.items)

    assert weighed.buckets == (15, 50, 40)
    assert sum(weighed.buckets) == weighed.total == PLAIN.measure_level(window).tokens


@pytest.mark.claim("S1.4", "S1.17")
def test_reserves_and_ten_points_are_kept_free_of_what_pruning_aims_for() -> None:
    policy = ScoredPruning()

    assert policy.count_available_tokens(200_000) == 200_000 - 4_000 - 8_192
    assert policy.count_available_tokens(1_000) == 0
    assert policy.compute_target(full(150_000, 200_000)) == int(187_808 * (0.8 - 0.1))
    assert PLAIN.compute_target(full(850)) == 700
    assert replace(PLAIN, compaction_threshold=0.6).compute_target(full(650)) == 500


@pytest.mark.claim("S1.5", "S1.6", "S1.7", "S1.8")
def test_the_settings_are_those_of_the_document() -> None:
    both: tuple[ScoredPruning | ContextSettings, ...] = (ScoredPruning(), ContextSettings())
    for settings in both:
        assert settings.enabled is True, settings
        assert settings.compaction_threshold == 0.80, settings
        assert settings.protected_turns == 2, settings
        assert settings.cooldown_seconds == 60, settings


# Levels


@pytest.mark.claim("S1.10", "S1.11", "S1.31", "S1.34")
def test_below_70_percent_nothing_is_done_and_from_there_on_there_is_a_warning() -> None:
    for tokens in (0, 300, 699, 700, 799):
        window = talk(f"u={tokens}")
        level = UsageLevel.WARNING if tokens >= 700 else UsageLevel.NORMAL
        warning = Utilization(tokens, 1_000, UsageLevel.WARNING) if tokens >= 700 else None

        assert PLAIN.measure_level(window).level is level, tokens
        assert PLAIN.find_warning(window) == warning, tokens
        assert not PLAIN.fires(window), tokens
        assert PLAIN.plan(window) is None, tokens


@pytest.mark.claim("S1.12", "S1.32")
def test_from_80_percent_on_it_prunes() -> None:
    for tokens in [800, 850, 899]:
        window = talk(f"u=300 u=100 u=200 u={tokens - 600}")

        assert PLAIN.measure_level(window).level is UsageLevel.ALERT, tokens
        assert left(window) == [2, 3, 4], tokens


@pytest.mark.claim("S1.13")
def test_from_90_percent_on_it_aims_lower() -> None:
    assert PLAIN.compute_target(full(899)) == 700
    assert [PLAIN.compute_target(full(tokens)) for tokens in (900, 920, 1_200)] == [560] * 3
    assert left(talk("u=300 u=300 u=200 u=100")) == [3, 4]


def test_as_shipped_levels_begin_past_their_share_and_critical_at_the_limit() -> None:
    assert isinstance(AS_SHIPPED, ScoredPruning)

    levels = [
        AS_SHIPPED.level_marks.measure(tokens, 1_000).level
        for tokens in (700, 800, 801, 999, 1_000)
    ]

    assert levels == [
        UsageLevel.NORMAL,
        UsageLevel.WARNING,
        UsageLevel.ALERT,
        UsageLevel.ALERT,
        UsageLevel.CRITICAL,
    ]


# What is removed


@pytest.mark.claim("S1.14", "S1.16", "S1.33")
def test_the_oldest_of_equals_leave_until_the_rest_fits() -> None:
    window = talk("u=85 " * 10)

    assert left(window) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert left(window, replace(PLAIN, protected_turns=9)) == list(range(2, 11))


@pytest.mark.claim("S1.16")
def test_what_is_worth_least_leaves_first() -> None:
    assert left(talk("u a u a u=1 a u=250 u")) == [1, 3, 5, 6, 7, 8]


@pytest.mark.claim("S1.20")
def test_calls_that_only_look_leave_before_what_was_said() -> None:
    window = talk("u=10 a=90 u=10 c=10 r=90 u=10 l=10 r=290 u=10 a=190 u=10 a=90")

    assert left(window) == [1, 2, 3, 4, 5, 6, 9, 10, 11, 12]
    assert 7 in left(window, replace(PLAIN, looks_leave_first=False))


@pytest.mark.claim("S1.37")
def test_the_documents_proof_is_the_same_as_shipped_and_goes_further_by_its_table() -> None:
    """At 90.0% the proof prints Alert, and the table has Critical there: the table holds."""
    window = talk("u=450 " * 10, limit=5_000)
    assert isinstance(AS_SHIPPED, ScoredPruning)
    plan = AS_SHIPPED.plan(window)
    assert plan is not None

    pruned = AS_SHIPPED.describe_pruning(
        window, [i for i in window.items if i.position in plan.drops]
    )

    assert context_pruned(pruned) == {
        "type": "context_pruned",
        "messages_removed": 3,
        "utilization_before": 0.90,
        "utilization_after": 0.63,
        "tokens_freed": 1_350,
    }
    assert left(window, replace(PLAIN, critical_threshold=1.0)) == [4, 5, 6, 7, 8, 9, 10]
    assert left(window) == [5, 6, 7, 8, 9, 10]


# What is protected


@pytest.mark.claim("S1.22")
def test_the_current_turn_stays_even_where_none_is_protected() -> None:
    policy = replace(PLAIN, protected_turns=0)

    assert left(talk("u a u=500 c=200 r=200"), policy) == [3, 4, 5]


def test_what_is_pinned_or_waits_stays_and_others_leave_in_its_place() -> None:
    window = talk("u=400 u=100 a c=10 r=190 u u")
    items = list(window.items)
    pinned = replace(window, items=[replace(items[0], is_pinned=True), *items[1:]])

    assert 1 not in left(window)
    assert 1 in left(pinned)


# What is told


@pytest.mark.claim("S1.26")
def test_between_two_prunings_there_is_a_minute() -> None:
    rows: list[tuple[float | None, bool]] = [(None, True), (10, False), (59, False), (60, True)]
    for since, fires in rows:
        window = talk("u=500 u=200 u=200 u", since_boundary_s=since)

        assert PLAIN.fires(window) is fires, since
        assert (PLAIN.plan(window) is not None) is fires, since
        assert PLAIN.plan(replace(window, trigger=Trigger.OVERFLOW)) is not None, since


@pytest.mark.claim("S1.27", "S1.35")
def test_where_it_is_off_nothing_happens() -> None:
    off = replace(PLAIN, enabled=False)
    window = talk("u " * 12)

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
