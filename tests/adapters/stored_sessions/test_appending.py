"""An append is stored whole, once and where it was expected, or not at all."""

from collections.abc import Callable
from typing import Any

import pytest
from short_sessions import CutAt, call, number_of_rows, result, words

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.sessions.stored_session import Appended
from cutbank.domain.errors import (
    ConflictError,
    CutbankError,
    DuplicateToolCallError,
    InvalidPositionError,
    OrphanToolResultError,
)


def test_a_repeated_key_gets_the_first_result(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    first = session.append(Block.user("a"), Block.user("b"), key="the key")
    session.append(Block.user("c"))
    rows = number_of_rows(store)

    again = session.append(Block.user("something else"), key="the key")

    assert again == Appended(first.first, first.last, repeated=True)
    assert number_of_rows(store) == rows
    with cutbank.open(database) as reopened:
        same = reopened.session("a session").append(Block.user("x"), key="the key")
        assert same == again
        assert words(reopened.session("a session").view()) == ["a", "b", "c"]


def test_a_key_names_an_append_of_its_own_session_only(
    store: SessionStore, session: StoredSession
) -> None:
    session.append(Block.user("a"), key="the key")

    other = store.session("another").append(Block.user("b"), key="the key")
    fork = session.fork("fork").append(Block.user("c"), key="the key")

    assert not other.repeated
    assert not fork.repeated


def test_a_repeated_key_is_answered_even_where_the_append_would_be_refused(
    session: StoredSession,
) -> None:
    session.append(call("c1"))
    first = session.append(result("c1"), key="answer", expect=session.position)
    session.close()

    again = session.append(result("c1"), key="answer", expect=1)

    assert again == Appended(first.first, first.last, repeated=True)


def test_a_key_whose_append_was_refused_is_still_free(session: StoredSession) -> None:
    with pytest.raises(OrphanToolResultError):
        session.append(Block.user("a"), result("nobody"), key="the key")

    done = session.append(Block.user("b"), key="the key")

    assert not done.repeated
    assert words(session.view()) == ["b"]


def test_a_stale_expectation_is_a_conflict_and_stores_nothing(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    seen = session.append(Block.user("a")).last
    with cutbank.open(database) as another:
        another.session("a session").append(Block.user("b"))
    rows = number_of_rows(store)

    with pytest.raises(ConflictError, match=f"is at #{seen + 1}, not #{seen}: read it again"):
        session.append(Block.user("c"), expect=seen)

    assert number_of_rows(store) == rows
    session.append(Block.user("c"), expect=seen + 1)
    with pytest.raises(ConflictError):
        session.append(Block.user("d"), expect=seen + 100)
    assert words(session.view()) == ["a", "b", "c"]


def test_an_expectation_that_is_news_to_this_process_is_met(
    session: StoredSession, database: str
) -> None:
    session.append(Block.user("a"))
    with cutbank.open(database) as another:
        newest = another.session("a session").append(Block.user("b")).last

    done = session.append(Block.user("c"), expect=newest)

    assert done.first == newest + 1


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([Block.user("a"), result("nobody")], OrphanToolResultError),
        ([call("c1"), result("c1"), result("c1")], OrphanToolResultError),
        ([call("c1"), call("c1")], DuplicateToolCallError),
        ([Block.user("a"), call("open")], DuplicateToolCallError),
        ([], InvalidPositionError),
    ],
)
def test_an_append_is_stored_whole_or_not_at_all(
    store: SessionStore, session: StoredSession, blocks: list[Any], error: type[Exception]
) -> None:
    session.append(call("open"))
    before, rows = session.state, number_of_rows(store)

    with pytest.raises(error):
        session.append(*blocks)

    assert number_of_rows(store) == rows
    assert session.state == before
    assert session.append(Block.user("next")).last == session.position
    assert verify(store).ok


def test_a_result_answers_its_call_wherever_it_stands(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"), Block.assistant("meanwhile"))

    session.append(result("c2"), result("c1"))

    assert session.state.open_calls == {}
    assert [entry.call for entry in session.view().entries] == [None, None, None, 3, 2]


def test_an_abandoned_call_is_closed(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"))

    session.abandon("c1", "the user pressed escape")

    with pytest.raises(OrphanToolResultError, match=r"no open tool call 'c1'.*\(open: 'c2'\)"):
        session.append(result("c1"))
    assert session.view().entries[-1].text == "[abandoned: the user pressed escape]"


def test_the_same_request_is_not_stored_twice(session: StoredSession) -> None:
    for _ in range(2):
        session.set_system_prompt("Be kind.")
        session.set_tools([{"name": "read"}])
        session.set_request_settings(model="m", temperature=0.5)
    before = session.position

    session.set_system_prompt("Be brief.")

    assert before == 4
    view = session.view()
    assert view.system_prompt == "Be brief."
    assert view.tool_definitions == [{"name": "read"}]
    assert view.request_settings == {"model": "m", "temperature": 0.5}
    assert session.view(at=before).system_prompt == "Be kind."


def test_sessions_are_told_apart_by_namespace_and_key(store: SessionStore) -> None:
    names = [("a", "b:c"), ("a:b", "c"), ("", "x"), ("1", "a"), ("1:a", "")]
    good = [name for name in names if all(name)]
    for namespace, key in good:
        store.session(key, namespace=namespace).append(Block.user(f"{namespace}/{key}"))

    for namespace, key in good:
        assert words(store.session(key, namespace=namespace).view()) == [f"{namespace}/{key}"]
    assert [(s.namespace, s.key) for s in store.sessions()] == sorted(good)
    assert [s.key for s in store.sessions("a")] == ["b:c"]
    for namespace, key in set(names) - set(good):
        with pytest.raises(InvalidPositionError, match="must have characters"):
            store.session(key, namespace=namespace)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda s, n: s.store.session(n), id="key"),
        pytest.param(lambda s, n: s.store.session("x", namespace=n), id="namespace"),
        pytest.param(lambda s, n: s.store.session("x", subject=n), id="subject"),
        pytest.param(lambda s, n: s.fork(n), id="fork"),
        pytest.param(lambda s, n: s.append(Block.user("a"), key=n), id="append key"),
        pytest.param(lambda s, n: s.compact(CutAt(5), lineage=n), id="lineage"),
        pytest.param(lambda s, n: s.compact(CutAt(5), idempotency_key=n), id="idempotency key"),
    ],
)
@pytest.mark.usefixtures("five")
def test_a_name_that_cannot_be_stored_is_refused(
    session: StoredSession, use: Callable[[StoredSession, str], Any]
) -> None:
    before = session.position

    with pytest.raises(CutbankError, match=r"not valid Unicode|cannot name a lineage"):
        use(session, "half a character \ud800")

    assert session.position == before
    assert session.view().boundary is None
