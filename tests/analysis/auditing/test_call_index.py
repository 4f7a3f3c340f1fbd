"""Calls are counted once for a session, and then only what is new."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lived import Act, acts, live
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.auditing import call_index
from cutbank.adapters.analysis.auditing.call_index import find_calls
from cutbank.adapters.analysis.replaying.recordings import read_recording

Call = tuple[int, tuple[int, ...], tuple[str, int, int] | None]


def talk(session: StoredSession, turns: int) -> None:
    for _ in range(turns):
        at, view = session.position, session.view()
        session.append(
            Block.user("Go on."),
            ToolCall(tool_call_id=f"t{at}", name="read", message_id=f"m{at}"),
            ToolResult(tool_call_id=f"t{at}", content="silt"),
            Block.assistant("Done."),
        )
        session.record_call(view, call_id=f"c{at} é")


def check_counts(*sessions: StoredSession) -> None:
    """The calls are as the log tells them, for who counted before and for who has not yet."""
    for one in sessions:
        told = [
            _plain(call.last_seen_position, call.answer, call.report)
            for call in read_recording(one).calls
        ]
        other = store_of(one).session(one.key, create=False)
        assert [_plain(*call) for call in find_calls(other).read_calls()] == told
        assert [_plain(*call) for call in find_calls(one).read_calls()] == told


def _plain(last_seen: int, answer: tuple[int, ...], told: Any) -> Call:
    record = (told.call_id, told.position, told.originator_version) if told else None
    return last_seen, answer, record


def test_a_count_goes_on_where_it_was(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 4)
    check_counts(session)
    counted = session.position
    talk(session, 2)
    looked_at: list[int] = []
    plain = call_index._read_content

    def noted(row: Any, *store: Any) -> Any:
        looked_at.append(row.originator_version)
        return plain(row, *store)

    monkeypatch.setattr(call_index, "_read_content", noted)

    find_calls(session).read_calls()
    assert min(looked_at) > counted
    check_counts(session)


@settings(max_examples=20)
@given(st.lists(acts, min_size=1, max_size=4))
def test_whenever_they_are_counted_calls_are_as_the_log_tells_them(lives: list[list[Act]]) -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        for number, what in enumerate(lives):
            live(session, what)
            said(session, what)
            fork = session.fork(f"fork {number}", at=max(1, session.position - number))
            said(fork, what[::-1])

            check_counts(session, fork)


def said(session: StoredSession, what: list[Act]) -> None:
    """Answers in pieces, some named, some not, and records that come late or twice."""
    names = (None, "m", "n \ud83d")
    for _, n in what:
        if n % 5 == 4:
            view = session.view(at=max(1, session.position - n))
            session.record_call(view, call_id=f"c \ud83d {n % 3}")
        else:
            answers = n % 5 < 3
            session.append(
                Block.assistant("!", message_id=names[n % 5]) if answers else Block.user("?")
            )


def test_an_event_that_cannot_be_read_once_is_not_counted_twice_later(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 2)
    check_counts(session)
    talk(session, 2)
    with monkeypatch.context() as patch:
        patch.delattr(call_index, "sort_call_records")
        with pytest.raises(NameError):
            find_calls(session).read_calls()

    check_counts(session)
