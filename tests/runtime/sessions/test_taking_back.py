"""What is taken back leaves every view at once, with what belongs to it, and stays in the log."""

import pytest
from databases import each_database
from opened_stores import store_of
from short_sessions import call, compacted, positions, result, said, words

import cutbank
from cutbank import Block, Ranges, StoredSession, verify
from cutbank.domain.errors import (
    DuplicateToolCallError,
    InvalidPositionError,
    OrphanToolResultError,
)


def test_what_is_taken_back_stays_in_the_log(session: StoredSession, five: list[int]) -> None:
    before = session.view()

    gone = session.retract(five[1], five[3], reason="not meant")

    assert gone == Ranges.of([five[1], five[3]])
    assert words(session.view()) == ["q0", "q2", "q4"]
    assert session.view(at=before.coordinate.position) == before
    assert session.recall(five[1])[0].block == before.entries[1].block


def test_a_call_takes_its_result_along(session: StoredSession) -> None:
    first = session.append(call("c1"), call("c2")).first
    session.append(*(Block.note("meanwhile") for _ in range(700)))
    answers = session.append(result("c2"), result("c1"))

    gone = session.retract(first)

    assert gone == Ranges.of([first, answers.last])
    assert [entry.block.kind for entry in session.view().entries] == ["tool_call", "tool_result"]
    with pytest.raises(OrphanToolResultError):
        session.append(result("c1"))


def test_a_result_alone_opens_its_call_again(session: StoredSession) -> None:
    at = session.append(call("c1")).last
    answer = session.append(result("c1", "wrong")).last

    gone = session.retract(answer)

    assert gone == Ranges.of([answer])
    assert session.log.state.open_calls == {"c1": at}
    with pytest.raises(DuplicateToolCallError, match=f"already open at #{at}"):
        session.append(call("c1"))
    again = session.append(result("c1", "right")).last
    assert [entry.text for entry in session.view().entries] == ['{"path": "c1.py"}', "right"]
    # And once more, of a call whose first answer was taken back.
    assert session.retract(at) == Ranges.of([at, again])
    assert words(session.view()) == []
    assert verify(store_of(session)).is_ok


def test_a_result_goes_with_its_call_where_the_id_was_used_again(session: StoredSession) -> None:
    """Two open calls of one id could not be told apart."""
    first = session.append(call("c1")).last
    answer = session.append(result("c1")).last
    second = session.append(call("c1")).last

    gone = session.retract(answer)

    assert gone == Ranges.of([first, answer])
    assert session.log.state.open_calls == {"c1": second}
    session.append(result("c1", "of the second"))
    assert session.view().entries[-1].call == second
    assert verify(store_of(session)).is_ok


def test_two_results_of_one_id_are_taken_back_together(session: StoredSession) -> None:
    one, two = (session.append(call("c1"), result("c1", f"{n}")) for n in range(2))

    gone = session.retract(one.last, two.last)

    # One call is open again; the other could not be told from it.
    (open_at,) = session.log.state.open_calls.values()
    assert gone == Ranges.of({one.first, one.last, two.first, two.last} - {open_at})
    assert positions(session.view()) == [open_at]
    session.append(result("c1", "again"))
    assert verify(store_of(session)).is_ok


def test_only_blocks_can_be_taken_back(session: StoredSession, five: list[int]) -> None:
    session.retract(five[0])

    for wanted, message in (
        ([five[0]], "has no block that can be retracted"),
        ([1], "has no block that can be retracted"),
        ([session.position + 1], f"ends at #{session.position}"),
        ([0], "positions begin at 1, not 0"),
        ([Ranges()], "no positions were given"),
        ([], "no positions were given"),
    ):
        with pytest.raises(InvalidPositionError, match=message):
            session.retract(*wanted)


def test_retracting_behind_a_summary_undoes_it(session: StoredSession, five: list[int]) -> None:
    first = compacted(session, five[1])
    session.append(said("q5"))
    compacted(session, five[4])
    assert words(session.view()) == ["q4", "q5"]

    session.retract(five[2])

    view = session.view()
    assert view.boundary is not None
    assert view.boundary.originator_version == first.boundary
    assert words(view) == ["q1", "q3", "q4", "q5"]

    session.retract(five[0])

    assert session.view().boundary is None
    assert words(session.view()) == ["q1", "q3", "q4", "q5"]
    assert verify(store_of(session)).is_ok


@each_database
@pytest.mark.parametrize("is_batch", [False, True])
def test_what_was_stored_elsewhere_is_taken_back_here(database: str, *, is_batch: bool) -> None:
    with cutbank.open(database) as here, cutbank.open(database) as elsewhere:
        session = here.session("a")
        writer = here if is_batch else elsewhere
        with writer.batch(), writer.batch():
            writer.session("a").append(Block.user("there"))
            writer.session("a").records.put("state", 1)

        assert session.records.remove("state")
        popped = session.pop()

        assert popped is not None
        assert popped.block.text == "there"
