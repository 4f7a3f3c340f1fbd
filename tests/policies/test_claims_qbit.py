"""What seed 001 says of when, where and what to prune, claim by claim."""

from dataclasses import replace

import pytest
from dialects import qbit
from qbit_vectors import case_of
from vector_files import FOLDERS, lines_of

from cutbank.adapters.settings.context_settings import ContextSettings
from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.cut_points.orphans import orphans
from cutbank.domain.item import Item
from cutbank.domain.policies.catalog import policy_named
from cutbank.domain.policies.scored_pruning import ScoredPruning
from cutbank.domain.ranges import Ranges
from cutbank.domain.utilization import Colour, Level, Pruned, Utilisation, colour_of
from cutbank.domain.window import Window

PLAIN = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)
AS_SHIPPED = policy_named(
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


def full(tokens: int, limit: int = 1_000) -> Utilisation:
    return PLAIN.marks.of(tokens, limit)


# Counting


@pytest.mark.claim("S1.2")
def test_a_token_is_about_four_characters() -> None:
    texts = ["", "a", "abcd", "abcde", "日本語", "x" * 4_001]
    window = Window(
        tuple(Item(at, Block.user(text), at, 0) for at, text in enumerate(texts, 1)), 6, 9
    )
    policy = ScoredPruning(unit="bytes")

    assert policy.weighed(window.items).tokens == [0, 1, 1, 2, 3, 1_001]
    assert ScoredPruning(unit="code-points").weighed(window.items).tokens[4] == 1
    assert ScoredPruning(unit="bytes", rounding="down").weighed(window.items).tokens[1] == 0


@pytest.mark.claim("S1.3")
def test_users_the_model_and_tools_are_counted_apart() -> None:
    window = talk("u=10 a=20 c=30 r=40 u=5")

    weighed = PLAIN.weighed(window.items)

    assert weighed.buckets == (15, 50, 40)
    assert sum(weighed.buckets) == weighed.total == PLAIN.level(window).tokens


@pytest.mark.claim("S1.4", "S1.17")
def test_reserves_and_ten_points_are_kept_free_of_what_pruning_aims_for() -> None:
    policy = ScoredPruning()

    assert policy.available(200_000) == 200_000 - 4_000 - 8_192
    assert policy.available(1_000) == 0
    assert policy.target(full(150_000, 200_000)) == int(187_808 * (0.8 - 0.1))
    assert PLAIN.target(full(850)) == 700
    assert replace(PLAIN, compaction_threshold=0.6).target(full(650)) == 500


@pytest.mark.claim("S1.5", "S1.6", "S1.7", "S1.8")
@pytest.mark.parametrize("settings", [ScoredPruning(), ContextSettings()])
def test_the_settings_are_those_of_the_document(settings: ScoredPruning | ContextSettings) -> None:
    assert settings.enabled is True
    assert settings.compaction_threshold == 0.80
    assert settings.protected_turns == 2
    assert settings.cooldown_seconds == 60


# Levels


@pytest.mark.claim("S1.10", "S1.34")
@pytest.mark.parametrize("tokens", [0, 300, 699])
def test_below_70_percent_nothing_is_done(tokens: int) -> None:
    window = talk(f"u={tokens}")

    assert PLAIN.level(window).level is Level.NORMAL
    assert PLAIN.warning(window) is None
    assert not PLAIN.fires(window)
    assert PLAIN.plan(window) is None


@pytest.mark.claim("S1.11", "S1.31")
@pytest.mark.parametrize("tokens", [700, 750, 799])
def test_from_70_percent_on_there_is_a_warning(tokens: int) -> None:
    window = talk(f"u={tokens}")

    assert PLAIN.warning(window) == Utilisation(tokens, 1_000, Level.WARNING)
    assert PLAIN.plan(window) is None


@pytest.mark.claim("S1.12", "S1.32")
@pytest.mark.parametrize("tokens", [800, 850, 899])
def test_from_80_percent_on_it_prunes(tokens: int) -> None:
    window = talk(f"u=300 u=100 u=200 u={tokens - 600}")

    assert PLAIN.level(window).level is Level.ALERT
    assert left(window) == [2, 3, 4]


@pytest.mark.claim("S1.13")
def test_from_90_percent_on_it_aims_lower() -> None:
    assert PLAIN.target(full(899)) == 700
    assert [PLAIN.target(full(tokens)) for tokens in (900, 920, 1_200)] == [560] * 3
    assert left(talk("u=300 u=300 u=200 u=100")) == [3, 4]


def test_as_shipped_levels_begin_past_their_share_and_critical_at_the_limit() -> None:
    assert isinstance(AS_SHIPPED, ScoredPruning)

    levels = [AS_SHIPPED.marks.of(tokens, 1_000).level for tokens in (700, 800, 801, 999, 1_000)]

    assert levels == [Level.NORMAL, Level.WARNING, Level.ALERT, Level.ALERT, Level.CRITICAL]


# What is removed


@pytest.mark.claim("S1.15", "S1.19")
def test_messages_are_scored_by_whose_they_are() -> None:
    weighed = PLAIN.weighed(talk("u a c r").items)

    assert weighed.scores == (850, 500, 650, 600)


@pytest.mark.claim("S1.18")
def test_of_equal_messages_the_older_is_worth_less() -> None:
    worth = PLAIN.weighed(talk("u " * 9).items).priorities

    assert list(worth) == sorted(worth)
    assert len(set(worth)) == 9


@pytest.mark.claim("S1.16", "S1.33")
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


@pytest.mark.claim("S1.36")
def test_what_is_left_is_below_the_threshold() -> None:
    window = talk("u a " * 5)
    plan = PLAIN.plan(window)
    assert plan is not None

    gone = [item for item in window.items if item.position in plan.drops]
    pruned = PLAIN.pruned(window, gone)

    assert pruned.before.share == 1.0
    assert pruned.after.share < 0.8
    assert pruned.after.tokens <= PLAIN.target(pruned.before)


@pytest.mark.claim("S1.37")
def test_the_documents_proof_is_the_same_as_shipped_and_goes_further_by_its_table() -> None:
    """At 90.0% the proof prints Alert, and the table has Critical there: the table holds."""
    window = talk("u=450 " * 10, limit=5_000)
    assert isinstance(AS_SHIPPED, ScoredPruning)
    plan = AS_SHIPPED.plan(window)
    assert plan is not None

    pruned = AS_SHIPPED.pruned(window, [i for i in window.items if i.position in plan.drops])

    assert qbit.context_pruned(pruned) == {
        "type": "context_pruned",
        "messages_removed": 3,
        "utilization_before": 0.90,
        "utilization_after": 0.63,
        "tokens_freed": 1_350,
    }
    assert left(window, replace(PLAIN, critical_threshold=1.0)) == [4, 5, 6, 7, 8, 9, 10]
    assert left(window) == [5, 6, 7, 8, 9, 10]


# What is protected


@FOLDERS
@pytest.mark.claim("S1.14", "S1.22")
def test_the_newest_turns_stay_in_every_vector(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "qbit")):
        for configured in (case.policy("qbit", unit="bytes"), case.policy("qbit")):
            plan = configured.plan(replace(case.window, trigger=Trigger.IDLE))
            newest = sorted({item.turn for item in case.window.items})
            newest = newest[-max(1, configured.protected_turns) :]
            drops = plan.drops if plan else Ranges()
            for item in case.window.items:
                assert item.turn not in newest or item.position not in drops, case.name


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


@FOLDERS
@pytest.mark.claim("S1.40")
def test_no_pair_is_parted_in_any_vector(folder: str) -> None:
    parted_as_shipped = 0
    for case in map(case_of, lines_of(folder, "qbit")):
        everything = Ranges.of(case.ids)
        for name, settings in (("qbit", {"unit": "bytes"}), ("qbit@as_shipped", {})):
            plan = case.policy(name, **settings).plan(case.window)
            alone = orphans(case.window.items, everything - plan.drops) if plan else None
            if name == "qbit":
                assert not alone, case.name
            parted_as_shipped += bool(alone)
    assert parted_as_shipped


# What is told


@pytest.mark.claim("S1.23")
def test_a_warning_is_told_as_the_document_shows() -> None:
    assert qbit.context_warning(full(150_000, 200_000)) == {
        "type": "context_warning",
        "utilization": 0.75,
        "total_tokens": 150_000,
        "max_tokens": 200_000,
    }


@pytest.mark.claim("S1.24")
def test_a_pruning_is_told_as_the_document_shows() -> None:
    pruned = Pruned(full(170_000, 200_000), full(130_000, 200_000), messages=3)

    told = qbit.context_pruned(pruned)

    assert told == {
        "type": "context_pruned",
        "messages_removed": 3,
        "utilization_before": 0.85,
        "utilization_after": 0.65,
        "tokens_freed": 40_000,
    }
    assert qbit.context_pruned(pruned, as_shipped=True).keys() == told.keys() - {"tokens_freed"}


@pytest.mark.claim("S1.25")
def test_a_shortened_answer_is_told_as_the_document_shows() -> None:
    assert qbit.tool_response_truncated("read_file", 50_000, 25_000) == {
        "type": "tool_response_truncated",
        "tool_name": "read_file",
        "original_tokens": 50_000,
        "truncated_tokens": 25_000,
    }


@pytest.mark.claim("S1.26")
@pytest.mark.parametrize(("since", "fires"), [(None, True), (10, False), (59, False), (60, True)])
def test_between_two_prunings_there_is_a_minute(since: float | None, fires: bool) -> None:
    window = talk("u=500 u=200 u=200 u", since_boundary_s=since)

    assert PLAIN.fires(window) is fires
    assert (PLAIN.plan(window) is not None) is fires
    assert PLAIN.plan(replace(window, trigger=Trigger.OVERFLOW)) is not None


@pytest.mark.claim("S1.27", "S1.35")
def test_where_it_is_off_nothing_happens() -> None:
    off = replace(PLAIN, enabled=False)
    window = talk("u " * 12)

    assert off.plan(window) is None
    assert off.warning(window) is None
    assert not off.fires(window)


@pytest.mark.claim("S1.28")
def test_the_meter_has_the_documents_colours() -> None:
    shares = (0.0, 0.499, 0.5, 0.749, 0.75, 0.849, 0.85, 1.2)

    assert [colour_of(share) for share in shares] == [
        *[Colour.GREEN] * 2,
        *[Colour.YELLOW] * 2,
        *[Colour.ORANGE] * 2,
        *[Colour.RED] * 2,
    ]
