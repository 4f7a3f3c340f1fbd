"""A fork copies nothing, shares what was there when it left, and goes its own way."""

from uuid import uuid4

import pytest
from opened_stores import store_of
from short_sessions import call, compacted, number_of_rows, result, said, words

from cutbank import Block, Ranges, SessionStore, StoredSession, verify
from cutbank.adapters.storage.event_log.chain import Chain
from cutbank.domain.errors import ConflictError, CutbankError, InvalidPositionError, NotFoundError


def test_a_fork_copies_nothing(store: SessionStore, session: StoredSession) -> None:
    session.append(said("a"), Block.assistant("large " * 5_000), key="k")
    before = number_of_rows(store)

    fork = session.fork("fork")

    assert number_of_rows(store) == {
        **before,
        "stored_events": before["stored_events"] + 1,
        "streams": before["streams"] + 1,
    }
    assert fork.view().entries == session.view().entries


def test_a_forks_handles_name_its_parents_blocks(session: StoredSession, five: list[int]) -> None:
    fork = session.fork("fork", at=five[2])
    own = fork.append(Block.user("own")).last

    assert fork.position == own
    recalled = fork.recall(*five[:3], own)
    assert [one.block.text.split()[0] for one in recalled] == ["q0", "q1", "q2", "own"]
    # What its parent said later is not the fork's, though its position is a number as well.
    with pytest.raises(InvalidPositionError, match="is not a block"):
        fork.recall(five[2] + 1)
    assert fork.recall(search="q3") == []
    session.append(Block.user("later"))
    assert words(fork.view()) == ["q0", "q1", "q2", "own"]
    assert words(session.view())[-1] == "later"


def test_a_fork_inherits_the_boundary_in_effect(session: StoredSession, five: list[int]) -> None:
    first = compacted(session, five[2])
    session.append(said("q5"))
    after_first = session.position
    session.append(said("q6"))
    second = compacted(session, five[4])
    session.append(said("q7"))

    for name, at, boundary in (
        ("before", five[3], None),
        ("between", after_first, first.boundary),
        ("newest", session.position, second.boundary),
    ):
        fork = session.fork(name, at=at)
        view, then = fork.view(), session.view(at=at)
        assert (view.boundary and view.boundary.originator_version) == boundary, name
        assert (view.entries, view.summary) == (then.entries, then.summary), name
        assert fork.log.lineages == [], name


def test_a_fork_s_compactions_are_its_own(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2])
    fork = session.fork("fork")
    served = fork.view()
    assert served.inherited_from == "main of a session"

    session.append(said("q5"))
    compacted(session, five[4])
    assert fork.view() == served

    own = fork.append(said("own")).last
    compacted(fork, own)

    assert fork.view().inherited_from is None
    assert words(fork.view()) == ["own"]
    assert words(session.view()) == ["q4", "q5"]
    assert fork.revert()
    assert fork.view().boundary == served.boundary
    assert words(fork.view()) == ["q2", "q3", "q4", "own"]
    assert verify(store_of(session)).is_ok


def test_a_fork_answers_calls_that_were_open_where_it_left(session: StoredSession) -> None:
    at = session.append(call("c1"), call("c2")).last
    session.append(result("c1"))

    fork = session.fork("fork", at=at)
    fork.append(result("c1", "the fork's"), result("c2", "both"))

    assert fork.log.state.open_calls == {}
    assert session.log.state.open_calls.keys() == {"c2"}
    assert [entry.text for entry in fork.view().entries[-2:]] == ["the fork's", "both"]


def test_what_a_fork_retracts_stays_in_its_parent(session: StoredSession, five: list[int]) -> None:
    session.retract(five[0])
    fork = session.fork("fork")

    fork.retract(five[4])

    assert words(fork.view()) == ["q1", "q2", "q3"]
    assert words(session.view()) == ["q1", "q2", "q3", "q4"]
    assert fork.recall(five[0])[0].block.text.startswith("q0")


def test_a_fork_is_refused_where_it_cannot_be(session: StoredSession, five: list[int]) -> None:
    session.fork("taken")

    with pytest.raises(ConflictError, match="session 'taken' exists already"):
        session.fork("taken")
    with pytest.raises(InvalidPositionError, match=f"ends at #{five[-1]}"):
        session.fork("new", at=five[-1] + 1)
    with pytest.raises(CutbankError):
        session.fork("new", at=0)
    with pytest.raises(NotFoundError, match=r"no session 'new'.*there is: a session, taken"):
        store_of(session).session("new", create=False)


def test_a_chain_says_which_stream_holds_a_position() -> None:
    a, b, c = uuid4(), uuid4(), uuid4()
    chain = Chain.start(a).continue_with(b, 5).continue_with(c, 7)

    assert [chain.find_stream(at) for at in (1, 5, 6, 7, 8, 100)] == [a, a, b, b, c, c]
    for cut, wanted, split in (
        (chain, Ranges([(2, 3), (5, 6), (8, 9)]), [(a, (2, 3), (5, 5)), (b, (6, 6)), (c, (8, 9))]),
        (chain.cut_after(6), Ranges.span(1, 50), [(a, (1, 5)), (b, (6, 6))]),
        (chain.cut_after(5), Ranges.span(6, 50), []),
    ):
        assert [(stream, *runs) for stream, runs in cut.split_by_stream(wanted)] == split
    # What leaves before the last one begins shares nothing with it.
    assert Chain.start(a).continue_with(b, 5).continue_with(c, 3).find_stream(4) == c
    with pytest.raises(ValueError, match="begin at 1, not 0"):
        chain.find_stream(0)
