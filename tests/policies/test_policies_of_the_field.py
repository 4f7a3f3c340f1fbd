"""The policies that other programs ship, each by the rules that its public source has."""

from dataclasses import replace

import pytest
from worded_windows import find_planned_cut, make_plan, make_window

from cutbank import (
    InvalidSettingError,
    NothingToCompactError,
    Plan,
    Policy,
    Trigger,
    Window,
    get_policy,
)
from cutbank.domain.compaction_events import Trim
from cutbank.domain.models import ModelFacts
from cutbank.domain.policies.forget_middle import group_events
from cutbank.domain.settlement import settle_plan

THRESHOLD = Trigger.THRESHOLD


def filled(window: Window, tokens: int) -> Window:
    return replace(window, in_use=tokens, trigger=THRESHOLD)


def fewest_that_fire(policy: Policy, window: Window) -> int:
    """The fewest tokens in use, of 100, at which there is a plan."""
    plans = {used: policy.plan(filled(window, used)) for used in range(101)}
    return min(used for used, plan in plans.items() if plan)


def dropped(plan: Plan) -> list[int]:
    return list(plan.drops)


# OpenHands: llm_summarizing_condenser.py, max_size=120, keep_first=4


def test_openhands_forgets_all_but_the_first_and_the_newest_half_less_the_summary() -> None:
    policy = get_policy("openhands", max_size=10, keep_first=2)
    window = make_window(" ".join(["u a"] * 6), limit=0, trigger=THRESHOLD)

    plan = make_plan(policy, window)

    # 10 // 2 - 2 - 1 stay at the end: view[2:-2]
    assert dropped(plan) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert plan.cut is None
    assert policy.plan(replace(window, items=window.items[:10])) is None, "ten are not too many"
    assert policy.plan(replace(window, items=window.items[:11])) is not None


def test_openhands_halves_what_there_is_when_it_is_asked() -> None:
    policy = get_policy("openhands", max_size=100, keep_first=1)
    window = make_window(" ".join(["u a"] * 6))

    assert dropped(make_plan(policy, window)) == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(NothingToCompactError, match="of 1 events"):
        policy.plan(replace(window, items=window.items[:1]))


def test_openhands_counts_a_call_and_the_thought_before_it_as_one_event() -> None:
    window = make_window("u t/m a/m c/m r t a u")

    events = [[item.position for item in event] for event in group_events(window.items)]

    assert events == [[1], [2, 3, 4], [5], [6], [7], [8]]


def test_openhands_also_fires_at_a_number_of_tokens_and_needs_room_for_a_tail() -> None:
    policy = get_policy("openhands", max_tokens=50, keep_first=1, max_size=6)

    assert fewest_that_fire(policy, make_window("u a u a u")) == 51
    with pytest.raises(InvalidSettingError, match="keep_first is 59 of the 60 that stay"):
        get_policy("openhands", keep_first=59)


# Codex: compact.rs, COMPACT_USER_MESSAGE_MAX_TOKENS = 20_000, fires at 90 % of the context


def test_codex_keeps_the_newest_prompts_within_their_budget_and_the_instructions() -> None:
    policy = get_policy("codex", keep_tokens=20)
    window = make_window("d u a u=15 c r u=5 a")

    assert dropped(make_plan(policy, window)) == [2, 3, 5, 6, 8]
    smaller = get_policy("codex", keep_tokens=19)
    assert dropped(make_plan(smaller, window)) == [2, 3, 4, 5, 6, 8], "none older than what is full"
    assert fewest_that_fire(policy, window) == 90


def test_codex_has_nothing_to_do_where_there_are_only_prompts() -> None:
    with pytest.raises(NothingToCompactError, match="only prompts"):
        get_policy("codex").plan(make_window("d u u"))


# opencode: compaction.ts, two turns, a quarter of the usable context; prune over 40,000 tokens


@pytest.mark.parametrize(
    ("words", "kept", "cut"),
    [
        ("u a u a u a", 40, 3),  # two whole turns fit
        ("u a u a u a", 35, 4),  # the older one of the two is split
        ("u a u a u a/m c/m r", 30, 6),
        ("u a u a u a/m c/m r", 25, 9),  # a message with its results is not split: it leaves
        ("u a u a u a=90", 30, 7),  # nothing fits, and all leaves
    ],
)
def test_opencode_keeps_two_turns_as_far_as_they_fit(words: str, kept: int, cut: int) -> None:
    policy = get_policy("opencode", preserve_recent_tokens=kept)

    assert find_planned_cut(policy, make_window(words)) == cut


def test_opencode_leaves_the_room_of_the_longest_answer() -> None:
    policy = get_policy("opencode")
    model = ModelFacts("m", context=100, output=20)

    assert fewest_that_fire(policy, make_window("u a u a u a", prices=model)) == 80


def test_opencode_prunes_old_output_when_that_frees_enough() -> None:
    policy = get_policy("opencode", prune=True)
    words = "u c r=30000 c r=30000 c r=20000 u c r=15000 u c r=90000 u a"
    window = make_window(words, limit=1_000_000, trigger=THRESHOLD, in_use=300_000)

    plan = make_plan(policy, window)

    # Of all before the newest two turns, the newest 40,000 tokens are protected.
    assert [trim.position for trim in plan.trims] == [3, 5]
    assert plan.cut is None
    little = make_window("u c r=19000 c r=39000 u a u a", limit=1_000_000, trigger=THRESHOLD)
    assert policy.plan(little) is None


# LangChain: summarization.py, keep=("messages", 20); deepagents: trigger 0.85, keep 0.10


def test_langchain_keeps_messages_and_moves_back_from_a_result_to_its_call() -> None:
    policy = get_policy("langchain", keep_messages=3)
    window = make_window("u a u a/m c/m r u a")

    assert find_planned_cut(policy, window) == 5, "the result is third, and begins at its call"
    assert settle_plan(window, make_plan(policy, window)).first_kept == 4
    assert find_planned_cut(get_policy("langchain", keep_messages=4), window) == 4
    assert fewest_that_fire(policy, window) == 85
    with pytest.raises(NothingToCompactError, match="newest 20 messages"):
        get_policy("langchain").plan(window)


def test_deepagents_keep_a_tenth_of_the_context() -> None:
    policy = get_policy("langchain@deepagents")

    assert find_planned_cut(policy, make_window("u a u a u a", tokens=5)) == 5
    assert find_planned_cut(policy, make_window("u a u a u a=90")) == 6


# ADK: compaction.py, compaction_interval and overlap_size


def test_adk_summarizes_each_interval_of_turns_that_are_over() -> None:
    policy = get_policy("google-adk", interval=2, overlap=1)
    window = make_window("u a u a u", limit=0, trigger=THRESHOLD)

    assert find_planned_cut(policy, window) == 3
    assert policy.plan(replace(window, items=window.items[:3])) is None
    assert find_planned_cut(get_policy("google-adk", interval=2, overlap=0), window) == 5
    with pytest.raises(NothingToCompactError, match="1 turns are over, and 1 stay"):
        policy.plan(make_window("u a u"))


# Anthropic: clear_tool_uses_20250919, trigger 100,000 tokens of 200,000, keep 3


def test_anthropic_clears_all_results_but_the_newest_and_those_of_excluded_tools() -> None:
    policy = get_policy("anthropic", keep=1, trigger_tokens=50)
    window = filled(make_window("u c r=60 l r=60 c r=60 c r=60", limit=1_000), 51)

    plan = make_plan(policy, window)

    assert plan.trims == tuple(Trim(position=at, head=0) for at in (3, 5, 7))
    assert (plan.cut, plan.summary_tokens, settle_plan(window, plan).removed_items) == (None, 0, ())
    excluding = replace(policy, exclude_tools="read_file, other")
    assert [trim.position for trim in make_plan(excluding, window).trims] == [3, 7]
    assert policy.plan(filled(window, 50)) is None
    assert fewest_that_fire(get_policy("anthropic", keep=0), replace(window, limit=100)) == 51


def test_anthropic_clears_nothing_that_frees_too_little() -> None:
    window = make_window("u c r=60 c r=60", limit=1_000)

    with pytest.raises(NothingToCompactError, match="frees no more than 500 tokens"):
        get_policy("anthropic", keep=0, clear_at_least=500).plan(window)


def test_observation_masking_keeps_ten_results_at_any_size() -> None:
    window = make_window(" ".join(["u", *["c r=60"] * 12]), limit=0, trigger=THRESHOLD)

    plan = make_plan(get_policy("anthropic@observation-masking"), window)

    assert [trim.position for trim in plan.trims] == [3, 5]


# In sequence


def test_combined_policies_decide_in_their_order() -> None:
    policy = get_policy(
        "combine", policies="anthropic keep=0 trigger_tokens=10, codex keep_tokens=0"
    )
    both = make_window("u c r=60 a", limit=100)

    first = make_plan(policy, filled(both, 95))
    second = make_plan(policy, filled(make_window("u a u a", limit=100), 95))

    assert (len(first.trims), dropped(first)) == (1, [])
    assert dropped(second) == [1, 2, 3, 4]
    assert policy.plan(filled(make_window("u a u a", limit=100), 50)) is None
    with pytest.raises(NothingToCompactError):
        policy.plan(make_window("d"))


@pytest.mark.parametrize("words", ["nowhere", "combine", "pi keep=3", "pi, ", "pi@nowhere"])
def test_a_combination_of_what_there_is_not_is_refused(words: str) -> None:
    with pytest.raises(InvalidSettingError):
        get_policy("combine", policies=words)
