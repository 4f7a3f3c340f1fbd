"""Audits count calls as replays do, also after the log grew."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lived import Act, acts, live
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying.recordings import read_calls, read_recording


def check_counts(*sessions: StoredSession) -> None:
    """The calls are as the log tells them, for who counted before and for who has not yet."""
    for one in sessions:
        counted = read_recording(one).calls
        assert read_calls(store_of(one).session(one.key, create=False)) == counted
        assert read_calls(one) == counted
        assert read_calls(one) is read_calls(one)


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
