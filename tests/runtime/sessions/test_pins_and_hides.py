"""Pins and hides take effect at the next boundary, for whole groups, and last."""

import pytest
from opened_stores import store_of
from short_sessions import call, compacted, positions, result, said, words

from cutbank import Block, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import (
    InvalidPositionError,
)
from cutbank.domain.ranges import Ranges


def test_pins_and_hides_take_effect_at_the_next_boundary(
    session: StoredSession, five: list[int]
) -> None:
    before = session.view().entries
    session.pin(five[0])
    session.hide(five[3])
    session.hide(five[4], replacement="not for you")
    assert session.view().entries == before

    compacted(session, five[2])

    view = session.view()
    assert [entry.text.split()[0] for entry in view.entries] == ["q0", "q2", "not"]
    assert view.entries[0].is_pinned
    assert view.entries[0].text == before[0].text
    assert view.entries[-1].block == before[-1].block


def test_pins_and_hides_are_carried_from_boundary_to_boundary(
    session: StoredSession, five: list[int]
) -> None:
    session.pin(five[0])
    session.hide(five[4], replacement="not for you")
    compacted(session, five[2])
    for number in range(5, 8):
        newest = session.append(said(f"q{number}")).last
        compacted(session, newest)
        kept = words(session.view())
        assert kept[0] == "q0"
        assert kept[-1] == f"q{number}"
        assert "q4" not in kept

    session.unpin(five[0])
    newest = session.append(said("q8")).last
    assert words(session.view())[0] == "q0"
    compacted(session, newest)

    assert words(session.view()) == ["q8"]
    assert verify(store_of(session)).is_ok


def test_pinning_what_was_summarised_brings_it_back_at_the_next_boundary(
    session: StoredSession, five: list[int]
) -> None:
    compacted(session, five[3])
    session.pin(five[1])
    assert words(session.view()) == ["q3", "q4"]

    newest = session.append(said("q5")).last
    compacted(session, newest)

    view = session.view()
    assert words(view) == ["q1", "q5"]
    assert view.summary is not None
    assert five[1] not in view.summary.covers
    assert {five[0], five[2], five[3], five[4]} <= set(view.summary.covers)
    assert verify(store_of(session)).is_ok


def test_a_pin_takes_the_whole_message_and_its_results(session: StoredSession) -> None:
    session.append(said("q0"))
    asked = session.append(
        Block.thinking("hm", message_id="m1"),
        Block.assistant("I look", message_id="m1"),
        call("c1").model_copy(update={"message_id": "m1"}),
        call("c2").model_copy(update={"message_id": "m1"}),
    )
    answers = session.append(result("c2"), result("c1"))
    newest = session.append(said("q1")).last

    pinned = session.pin(answers.first)

    assert pinned == Ranges.span(asked.first, answers.last)
    compacted(session, newest)
    assert positions(session.view()) == [*pinned, newest]


def test_only_blocks_that_are_there_are_pinned_or_hidden(
    session: StoredSession, five: list[int]
) -> None:
    session.retract(five[0])
    for act in (session.pin, session.unpin, session.hide):
        with pytest.raises(InvalidPositionError, match=f"#{five[0]} was retracted"):
            act(five[0])
        with pytest.raises(InvalidPositionError, match="#1 is not a block"):
            act(1)
        with pytest.raises(InvalidPositionError, match="#999"):
            act(999)
