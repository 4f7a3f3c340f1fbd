"""What a session says of its calls, its requests and its end; pins, hides and recall."""

from collections.abc import Callable
from functools import partial

import pytest
from opened_stores import store_of
from short_sessions import call, compacted, number_of_rows, positions, result, said, words

from cutbank import Block, Ranges, SessionStore, StoredSession, end_turn, verify
from cutbank.domain.errors import InvalidPositionError, SessionClosedError

# Calls, requests and the end


def test_a_closed_session_is_viewed_and_forked_and_not_changed(
    store: SessionStore, session: StoredSession, five: list[int]
) -> None:
    session.append(call("c1"))
    session.close("done")
    rows = number_of_rows(store)

    acts: list[Callable[[], object]] = [
        lambda: session.append(Block.user("more")),
        lambda: session.pin(five[0]),
        lambda: session.hide(five[0]),
        lambda: session.retract(five[0]),
        lambda: session.cancel_tool_call("c1", "late"),
        lambda: session.configure(system_prompt="x"),
        session.close,
    ]
    for act in acts:
        with pytest.raises(SessionClosedError, match="fork it to go on"):
            act()

    assert number_of_rows(store) == rows
    assert words(session.view())[:5] == ["q0", "q1", "q2", "q3", "q4"]
    assert session.recall(five[0])[0].block.text.startswith("q0")
    fork = session.fork("fork")
    fork.append(result("c1"), Block.user("more"))
    assert words(fork.view())[-1] == "more"
    assert verify(store).is_ok


def test_the_same_request_is_not_stored_twice(session: StoredSession) -> None:
    for _ in range(2):
        session.configure(system_prompt="Be kind.")
        session.configure(tools=[{"name": "read"}])
        session.configure(request_settings={"model": "m", "temperature": 0.5})
    before = session.position

    session.configure(system_prompt="Be brief.")

    assert before == 4
    view = session.view()
    assert view.system_prompt == "Be brief."
    assert view.tool_definitions == [{"name": "read"}]
    assert view.request_settings == {"model": "m", "temperature": 0.5}
    assert session.view(at=before).system_prompt == "Be kind."


# Pins and hides take effect at the next boundary, for whole groups, and last


def test_pins_and_hides_count_from_the_next_boundary(
    session: StoredSession, five: list[int]
) -> None:
    before = session.view().entries
    session.pin(five[0])
    session.hide(five[3])
    session.hide(five[4], replacement="not for you")
    assert session.view().entries == before

    compacted(session, five[2])

    view = session.view()
    assert words(view) == ["q0", "q2", "not"]
    assert view.entries[0].is_pinned
    assert view.entries[0].text == before[0].text
    assert view.entries[-1].block == before[-1].block
    for number in range(5, 8):
        compacted(session, session.append(said(f"q{number}")).last)
        assert words(session.view()) == ["q0", f"q{number}"]

    session.pin(five[0], keep=False)
    newest = session.append(said("q8")).last
    assert words(session.view())[0] == "q0"
    compacted(session, newest)

    assert words(session.view()) == ["q8"]
    assert verify(store_of(session)).is_ok


def test_pinning_brings_back_what_was_summarised(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[3])
    session.pin(five[1])
    assert words(session.view()) == ["q3", "q4"]

    compacted(session, session.append(said("q5")).last)

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


def test_only_blocks_are_pinned_or_hidden(session: StoredSession, five: list[int]) -> None:
    session.retract(five[0])
    for act in (session.pin, partial(session.pin, keep=False), session.hide):
        for position, says in (
            (five[0], f"#{five[0]} was retracted"),
            (1, "#1 is not a block"),
            (999, "#999"),
        ):
            with pytest.raises(InvalidPositionError, match=says):
                act(position)


# Whatever left the view is recalled word for word


def test_recall_searches_words_and_names(session: StoredSession) -> None:
    first = session.append(
        Block.user("Straße nach Köln"), call("c1"), Block.note("a note of roads")
    ).first
    session.append(result("c1", "ROADS everywhere"))

    for text, where, found in (
        ("STRASSE", (), [first]),
        ("roads", (), [first + 2, first + 3]),
        ("roads", (Ranges.span(1, first + 2),), [first + 2]),
        ("read", (), [first + 1]),  # a tool's name
        ("nowhere", (), []),
    ):
        assert [one.position for one in session.recall(*where, search=text)] == found, text


def test_recall_reads_long_ranges_and_skips_what_is_no_block(session: StoredSession) -> None:
    session.append(*(Block.note(f"note {number}") for number in range(1_200)))
    end_turn(session)
    session.append(Block.user("last"))

    recalled = session.recall(Ranges.span(1, session.position))

    assert [one.block.text for one in recalled] == [*(f"note {n}" for n in range(1_200)), "last"]


def test_recall_says_what_does_not_exist(session: StoredSession, five: list[int]) -> None:
    for wanted, says in (
        ([999], f"#999 does not exist.*ends at #{five[-1]}"),
        ([1, five[0]], "#1 is not a block"),
        ([], "give handles, or text to search"),
    ):
        with pytest.raises(InvalidPositionError, match=says):
            session.recall(*wanted)
