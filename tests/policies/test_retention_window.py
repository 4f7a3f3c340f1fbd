"""Seed 002, rule by rule: where its cuts stand, when it fires, and what it refuses."""

from dataclasses import replace
from functools import partial

import pytest
from worded_windows import find_planned_cut, make_plan, make_window

from cutbank.domain.blocks import Block, ToolCall
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import WindowItem
from cutbank.domain.policies.reference.tunacode import TunacodeAsShipped, TunacodeLater
from cutbank.domain.policies.retention_window import RetentionWindow
from cutbank.domain.settlement import settle_plan

POLICY = RetentionWindow(keep_recent_tokens=30, reserve_tokens=20)
IN_TEXT = TunacodeAsShipped(keep_recent_tokens=30, reserve_tokens=20)
LATER = TunacodeLater(keep_recent_tokens=30, reserve_tokens=20)
CALL = ToolCall(tool_call_id="c", name="t" * 37)
talk = partial(make_window, blocks={"c": CALL}, trigger=Trigger.THRESHOLD)
cut = find_planned_cut


@pytest.mark.claim("S2.5", "S2.6", "S2.7")
def test_a_cut_stands_behind_a_prompt_or_a_finished_message() -> None:
    cuts = {
        "u a u a u a": 4,  # as much as was asked for, right behind a prompt
        "u a u a u a u": 5,
        "u a u c r a": 4,  # at the call, for it stands right behind a prompt
        "u a c r c r a": 3,  # back from a result, and from the call that follows one
        "u a u a~ u a": 4,  # what precedes the cut is finished
        "u a a~ u a u": 3,  # and here it is not
        "u a d a d a": 3,  # nobody is answered behind a reminder
    }
    for policy in (POLICY, IN_TEXT):
        assert {words: cut(policy, talk(words)) for words in cuts} == cuts


def test_where_no_message_ends_the_cut_that_was_meant_is_for_the_store_to_repair() -> None:
    window = talk("c r c r c r c r")
    plan = POLICY.plan(window)

    assert POLICY.find_cut(window, 5) == 0
    assert plan is not None
    assert plan.cut == 6
    settled = settle_plan(window, plan)
    assert settled.first_kept == 5
    assert [(repair.wanted, repair.got) for repair in settled.repairs] == [(6, 5)]


def test_a_run_of_tools_that_would_fire_again_is_cut_inside() -> None:
    window = talk("u c r c r c r c r c r")

    plan = POLICY.plan(window)

    assert plan is not None
    assert plan.cut == 9
    assert settle_plan(window, plan).first_kept == 8
    # Behind the prompt, and all the rest stays.
    assert cut(IN_TEXT, window) == 2
    assert cut(POLICY, replace(window, limit=150, in_use=101)) == 2


@pytest.mark.claim("S2.18", "S2.19")
def test_a_forced_compaction_cuts_where_less_is_there_than_is_to_be_kept(
    subtests: pytest.Subtests,
) -> None:
    for trigger in [Trigger.MANUAL, Trigger.OVERFLOW]:
        window = talk("u a u", trigger=trigger)
        wide = replace(POLICY, keep_recent_tokens=1_000)

        plan = make_plan(wide, window)
        assert plan.cut == 4, trigger  # behind all there is
        assert settle_plan(window, plan).first_kept == 3, trigger  # no view is empty
        with (
            subtests.test(str(trigger)),
            pytest.raises(NothingToCompactError, match="keep_recent_tokens"),
        ):
            TunacodeAsShipped(keep_recent_tokens=1_000).plan(window)
        assert cut(LATER, window) == 4, trigger
        assert cut(POLICY, talk("u a u a u a", trigger=trigger)) == 4, trigger


def test_behind_unfinished_words_there_is_a_cut_where_that_is_wanted() -> None:
    window = talk("u a u~ a~ u a u")

    assert cut(POLICY, window) == 4
    assert cut(LATER, window) == 5
    assert cut(LATER, talk("u a c~ u a u")) == 3  # not behind a call


@pytest.mark.claim("S2.14", "S2.15")
def test_it_fires_above_the_limit_less_the_reserve_and_what_is_kept() -> None:
    for used, fires in [(50, False), (51, True)]:
        window = talk("u a u a u a", in_use=used)

        assert POLICY.fires(window) is fires, used
        assert (POLICY.plan(window) is not None) is fires, used


def test_in_a_unit_of_text_what_is_used_is_what_the_messages_say() -> None:
    assert not IN_TEXT.fires(talk("u a u a u", in_use=10**9))
    assert IN_TEXT.fires(talk("u a u a u a", in_use=0))


def test_its_unit_has_arguments_as_python_prints_them_and_an_image_by_its_address() -> None:
    call = ToolCall(tool_call_id="c", name="read", arguments='{"a":1,"b":2,"c":3,"d":4}')
    image = Block.image("https://example.org/a.png")

    assert IN_TEXT.count_tokens([WindowItem(1, call, turn=1, tokens=0)]) == (1 + 4 + 32) // 4
    assert IN_TEXT.count_tokens([WindowItem(1, image, turn=1, tokens=0)]) == 25 // 4


def test_absurd_settings_end_in_a_plan_or_in_an_error_that_names_the_setting() -> None:
    window = talk("u a u a u a")

    with pytest.raises(NothingToCompactError, match="keep_recent_tokens"):
        replace(POLICY, keep_recent_tokens=10**12).plan(window)
    assert cut(replace(POLICY, keep_recent_tokens=0, reserve_tokens=90), window) == 6
    assert cut(replace(POLICY, reserve_tokens=10**12), window) == 4
