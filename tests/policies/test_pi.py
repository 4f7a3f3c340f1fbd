"""What pi decides, rule by rule, and what it answers where its program would do nothing."""

from functools import partial

import pytest
from pi_preparation import find_pi_cut
from story import Story, told_on
from worded_windows import find_planned_cut, make_plan, make_window

from cutbank import Material, NothingToCompactError, Pi, Ranges, Trigger
from cutbank.domain.compaction_events import Digest
from cutbank.domain.policies.reference.pi_mono import PiAsShipped
from cutbank.domain.settlement import settle_plan
from cutbank.domain.summaries.summarizer import SummaryPart
from cutbank.domain.summaries.templates import PiTemplate

POLICY = Pi(reserve_tokens=20, keep_tokens=30)
SHIPPED = PiAsShipped(reserve_tokens=20, keep_tokens=30)
cut = partial(find_planned_cut, POLICY)


def test_it_fires_past_the_limit_less_the_reserve() -> None:
    for used, fires in ((80, False), (81, True)):
        window = make_window(f"u={used - 10} u", trigger=Trigger.THRESHOLD)
        assert POLICY.fires(window) is fires, used
        assert (POLICY.plan(window) is not None) is fires, used


def test_it_never_fires_unasked_where_it_is_off() -> None:
    window = make_window("u=900 u", trigger=Trigger.THRESHOLD, limit=10)

    assert not Pi(enabled=False).fires(window)
    assert Pi(enabled=False).plan(window) is None


def test_the_message_that_reaches_the_budget_is_kept_or_else_the_next() -> None:
    cuts = {
        "u a u a u": 3,
        "u a u a=9 u": 2,
        "u a c r=40 u": 5,
        "u a c r r=30 a": 6,
        "u a d d u=30": 3,
    }
    assert {history: cut(make_window(history)) for history in cuts} == cuts


def test_where_its_program_did_nothing_what_reached_the_budget_is_told() -> None:
    for history, meant in [("u a c r=40", 4), ("u=40 a", 1)]:
        window = make_window(history)

        assert find_pi_cut(POLICY, window).first_kept == 1, history
        plan = make_plan(POLICY, window)
        assert plan.cut == meant, history
        assert settle_plan(window, plan).removed_items, history


def test_whoever_asks_is_told_that_all_is_kept(subtests: pytest.Subtests) -> None:
    for trigger in Trigger:
        with (
            subtests.test(str(trigger)),
            pytest.raises(NothingToCompactError, match=r"the newest 30 \(keep_tokens\) that stay"),
        ):
            SHIPPED.plan(make_window("u=5 a=5", trigger=trigger, limit=20))


def test_the_settings_fit_the_limit_unless_they_are_to_be_as_shipped() -> None:
    assert Pi().find_headroom(100_000) == (16_384, 20_000)
    assert Pi().find_headroom(20_000) == (10_000, 10_000)
    assert Pi().find_headroom(0) == (16_384, 20_000)
    assert PiAsShipped().find_headroom(10_000) == (16_384, 20_000)


def test_summaries_are_written_into_the_reserve() -> None:
    plan = make_plan(Pi(), make_window("u=9000 a=9000 u=30000", limit=100_000))
    assert (plan.summary_tokens, plan.turn_tokens) == (13_107, 8_192)


def test_what_an_earlier_boundary_kept_may_leave_unless_it_is_to_be_as_shipped() -> None:
    story = told_on(Story(), "user", "user", "user", "compact 3", "user", "user", "user")
    window = story.window()

    assert [len(one.list_open_items(window)) for one in (POLICY, SHIPPED)] == [5, 3]


# The summary


def material(*, prefix: bool, history: bool = True, previous: str | None = None) -> Material:
    items = make_window("u a u a").items
    return Material(
        removed_items=tuple(items if history else items[2:]),
        covers=Ranges.span(1, 4),
        budget=80,
        turn_budget=50,
        prefix=Ranges.span(3, 4) if prefix else Ranges(),
        previous=previous,
        digest=Digest(read_files=("a.py",)),
    )


def test_of_a_split_turn_alone_the_earlier_summary_stays_as_it_was() -> None:
    before = "What was.\n\n<modified-files>\nold.py\n</modified-files>"
    split = material(prefix=True, history=False, previous=before)
    kept, forgotten = PiTemplate(), PiTemplate(keeps_previous=False)

    assert [one.part for one in kept.plan_requests(split)] == [SummaryPart.TURN]
    joined = kept.join_answers({SummaryPart.TURN: "It began."}, split)
    assert joined.startswith("What was.\n\n---\n\n**Turn Context (split turn):**\n\nIt began.")
    assert joined.endswith("\n\n<read-files>\na.py\n</read-files>")
    assert "old.py" not in joined
    assert forgotten.join_answers({SummaryPart.TURN: "It began."}, split).startswith(
        "No prior history.\n"
    )


def test_history_and_turn_are_asked_for_apart_each_with_its_allowance() -> None:
    asked = PiTemplate().plan_requests(material(prefix=True, previous="What was."))

    assert [(one.part, one.budget, one.previous) for one in asked] == [
        (SummaryPart.HISTORY, 80, "What was."),
        (SummaryPart.TURN, 50, None),
    ]
