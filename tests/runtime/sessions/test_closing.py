"""What a session says of its calls, its requests and its end."""

from collections.abc import Callable
from typing import Any

import pytest
from opened_stores import store_of
from short_sessions import call, compacted, number_of_rows, result, said, words

from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import (
    OrphanToolResultError,
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


def test_a_recorded_call_proves_what_was_sent(session: StoredSession, five: list[int]) -> None:
    view = session.view()
    compacted(session, five[2])
    session.append(said("later"))

    session.record_call(view, call_id="call", model="m")

    verdict = verify(store_of(session))
    assert verdict.violations == []
    assert verdict.calls == 1


def test_a_result_answers_its_call_wherever_it_stands(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"), Block.assistant("meanwhile"))

    session.append(result("c2"), result("c1"))

    assert session.log.state.open_calls == {}
    assert [entry.call for entry in session.view().entries] == [None, None, None, 3, 2]


def test_an_abandoned_call_is_closed(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"))

    session.cancel_tool_call("c1", "the user pressed escape")

    with pytest.raises(OrphanToolResultError, match=r"no open tool call 'c1'.*\(open: 'c2'\)"):
        session.append(result("c1"))
    assert session.view().entries[-1].text == "[abandoned: the user pressed escape]"


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
