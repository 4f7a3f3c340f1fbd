"""The log of a session is read forwards and backwards, and its newest blocks are taken back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opened_stores import store_of
from short_sessions import call, compacted, positions, result, said, words

import cutbank
from cutbank import (
    Block,
    InvalidSettingError,
    OrphanToolResultError,
    Ranges,
    StoredSession,
    verify,
)


def texts(session: StoredSession, **which: object) -> list[str]:
    return [one.block.text.split()[0] for one in session.blocks(**which)]  # type: ignore[arg-type]


def test_blocks_come_in_order_whatever_a_view_shows(
    session: StoredSession, five: list[int]
) -> None:
    session.append(Block.note("aside"))
    session.hide(five[0])
    compacted(session, five[3])
    session.retract(five[4])

    assert texts(session) == ["q0", "q1", "q2", "q3", "aside"]
    assert texts(session, retracted=True)[-2:] == ["q4", "aside"]
    assert texts(session, kinds=["note"]) == ["aside"]
    assert texts(session, after=five[0], before=five[3]) == ["q1", "q2"]


def test_the_last_blocks_come_in_order_too(session: StoredSession, five: list[int]) -> None:
    session.retract(five[3])

    assert texts(session, last=2) == ["q2", "q4"]
    assert texts(session, last=2, newest_first=True) == ["q4", "q2"]
    assert texts(session, last=2, before=five[4]) == ["q1", "q2"]
    assert texts(session, last=1, kinds=["user"], before=five[3], retracted=True) == ["q2"]


def test_an_unknown_kind_is_refused_with_those_that_exist(session: StoredSession) -> None:
    with pytest.raises(InvalidSettingError, match=r"'poem' is not a valid .*; kinds are user"):
        session.blocks(kinds=["poem"])


def test_a_key_finds_its_append_also_in_a_fork_that_shares_it(session: StoredSession) -> None:
    first = session.append(said("a"), said("b"), key="one")
    fork = session.fork("fork", at=first.last)
    later = session.append(said("c"), key="two")

    assert session.find("one") == fork.find("one") == first
    assert session.find("two") == later
    assert fork.find("two") is None


def test_blocks_with_keys_of_their_own_are_stored_once_each(session: StoredSession) -> None:
    first = session.append(said("a"), said("b"), keys=["a", "b"])
    second = session.append(said("b"), said("c"), keys=["b", "c"])
    third = session.append(said("b"), said("c"), keys=["b", "c"])

    assert texts(session) == ["a", "b", "c"]
    assert (second.first, second.is_repeated) == (first.last, False)
    assert third == (*second[:2], True)
    found = session.find("c")
    assert found is not None
    assert (found.first, found.last) == (second.last, second.last)
    for keys in (["a"], ["a", "a"]):
        with pytest.raises(InvalidSettingError, match="give each block a key of its own"):
            session.append(said("d"), said("e"), keys=keys)


def test_the_newest_block_is_popped_and_a_popped_result_opens_its_call_again(
    session: StoredSession,
) -> None:
    session.append(said("go"), call("c1"))
    session.append(result("c1"))
    session.configure(title="in between")

    popped = [session.pop(), session.pop(), session.pop(), session.pop()]

    assert [one and one.block.kind for one in popped] == ["tool_result", "tool_call", "user", None]
    assert words(session.view()) == []
    assert session.info.title == "in between"
    with pytest.raises(OrphanToolResultError):
        session.append(result("c1"))
    session.append(call("c1"))
    session.append(result("c1", "wrong"))
    session.pop()
    session.append(result("c1", "right"))
    assert texts(session)[-1] == "right"
    assert verify(store_of(session)).is_ok


def test_what_was_taken_back_is_passed_over_without_reading_it(
    session: StoredSession, five: list[int]
) -> None:
    for number in range(60):
        session.append(said(f"gone {number}"))
    for _ in range(60):
        session.pop()
    writer = store_of(session).context.events.recorder.datastore.writer
    writer.execute("DROP TRIGGER stored_events_are_immutable")
    writer.execute(
        "UPDATE stored_events SET state = x'00' WHERE originator_version BETWEEN ? AND ?",
        (five[-1] + 1, session.position - 5),
    )

    assert texts(session, last=3) == ["q2", "q3", "q4"]
    assert next(session.blocks(newest_first=True)).position == five[-1]
    assert texts(session) == ["q0", "q1", "q2", "q3", "q4"]
    assert session.pin(five[1]) == Ranges.of([five[1]])


def test_a_cleared_session_goes_on_from_nothing_and_its_past_views_stay(
    session: StoredSession, five: list[int]
) -> None:
    compacted(session, five[3])
    before = session.view()

    session.clear()
    session.append(said("new"))

    assert words(session.view()) == ["new"]
    assert session.view().summary is None
    assert session.view(at=before.coordinate.position).fingerprint == before.fingerprint
    assert [one.position for one in session.recall(five[0])] == [five[0]]
    assert positions(session.view()) == [session.position]
    with cutbank.open(store_of(session).name) as again:
        assert words(again.session(session.key, create=False).view()) == ["new"]
    assert verify(store_of(session)).is_ok


@example(steps=["say", "say", "say", "retract", "pop", "pop"], last=1)
@given(
    steps=st.lists(
        st.sampled_from(["say", "pop", "pop", "retract", "clear", "title"]), max_size=30
    ),
    last=st.integers(0, 5),
)
def test_pops_and_retractions_in_any_order_leave_what_a_list_would_hold(
    steps: list[str], last: int
) -> None:
    with cutbank.open(":memory:") as store:
        session, held = store.session("s"), list[int]()
        for number, step in enumerate(steps):
            match step:
                case "say":
                    held.append(session.append(said(f"q{number}")).last)
                case "pop":
                    popped = session.pop()
                    assert (popped and popped.position) == (held.pop() if held else None)
                case "retract" if held:
                    session.retract(held.pop(len(held) // 2))
                case "clear":
                    session.clear()
                    held.clear()
                case _:
                    session.configure(title=f"title {number}")

        assert [one.position for one in session.blocks()] == held == positions(session.view())
        assert [one.position for one in session.blocks(newest_first=True)] == held[::-1]
        assert [one.position for one in session.blocks(last=last)] == held[
            max(len(held) - last, 0) :
        ]
        assert verify(store).is_ok
