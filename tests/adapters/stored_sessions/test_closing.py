"""A closed session is read and forked; a recorded call proves what was sent."""

from collections.abc import Callable
from typing import Any

import pytest
from short_sessions import call, compacted, number_of_rows, result, said, words

from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import (
    SessionClosedError,
)


def test_a_closed_session_is_viewed_and_forked_and_not_changed(
    store: SessionStore, session: StoredSession, five: list[int]
) -> None:
    session.append(call("c1"))
    session.close("done")
    rows = number_of_rows(store)

    acts: list[Callable[[], Any]] = [
        lambda: session.append(Block.user("more")),
        lambda: session.pin(five[0]),
        lambda: session.hide(five[0]),
        lambda: session.retract(five[0]),
        lambda: session.abandon("c1", "late"),
        lambda: session.set_system_prompt("x"),
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
    assert verify(store).ok


def test_a_recorded_call_proves_what_was_sent(session: StoredSession, five: list[int]) -> None:
    view = session.view()
    compacted(session, five[2])
    session.append(said("later"))

    session.record_call(view, call_id="call", model="m")

    verdict = verify(session.store)
    assert verdict.violations == []
    assert verdict.calls == 1
