"""An append is stored whole, once and where it was expected, or not at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from databases import settings_of
from eventsourcing.persistence import IntegrityError
from faulty import check_log, texts
from short_sessions import CutAt, call, number_of_rows, result, said, words

import cutbank
from cutbank import (
    AppendResult,
    Block,
    CompactionOptions,
    Item,
    SessionStore,
    StoredSession,
    verify,
)
from cutbank.adapters.runtime.sessions.store_context import StoreContext
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.domain.errors import (
    ConflictError,
    CutbankError,
    DuplicateToolCallError,
    InvalidPositionError,
    OrphanToolResultError,
)
from cutbank.domain.session import Session


def test_a_repeated_key_gets_the_first_result(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    session.append(call("c1"))
    blocks = result("c1"), Block.user("a")
    first = session.append(*blocks, key="the key", expect=session.position)
    repeated = AppendResult(first.first, first.last, is_repeated=True)
    others = [store.session("another"), session.fork("fork")]  # to which the key says nothing
    assert not any(one.append(Block.user("b"), key="the key").is_repeated for one in others)
    session.append(Block.user("c"))
    session.close()
    rows = number_of_rows(store)

    with cutbank.open(database) as reopened:
        for one in (session, reopened.session("a session")):
            # An append that would be refused otherwise.
            assert one.append(*blocks, key="the key", expect=1) == repeated

    assert number_of_rows(store) == rows


def test_a_used_key_is_refused_for_anything_else(
    store: SessionStore, session: StoredSession
) -> None:
    session.append(Block.user("go"), call("c1"), key="two blocks")
    item = Item({"role": "tool", "at": 1}, [result("c1"), Block.assistant("x" * 40)])
    session.append(item, keys=["item"])
    session.records.put("state", 1, key="record")
    answer = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "ls"}}]}}]}
    done = session.append_response(answer, key="response")
    rows = number_of_rows(store)

    for blocks, key in (
        ([Block.user("go")], "two blocks"),
        ([Block.user("go"), call("c2")], "two blocks"),
        ([Block.user("go"), call("c1"), Block.user("more")], "two blocks"),
        ([Block.user("go")], "record"),
    ):
        with pytest.raises(ConflictError, match=f"the key '{key}' was used for something else at"):
            session.append(*blocks, key=key)
    for other in (Item({"role": "tool", "at": 2}, item.blocks), item.blocks[1]):
        with pytest.raises(ConflictError, match="the key 'item' was used for something else at #5"):
            session.append(other, Block.user("new"), keys=["item", "new"])
    with pytest.raises(ConflictError, match="the key 'two blocks' was used for something else"):
        session.records.put("state", 1, key="two blocks")
    with pytest.raises(ConflictError, match="the key 'response' was used for something else"):
        session.append_response({"candidates": []}, key="response")

    assert session.append(item, keys=["item"]).is_repeated
    assert session.append_response(answer, key="response") == done._replace(is_repeated=True)
    assert number_of_rows(store) == rows


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


def test_an_append_is_stored_whole_or_not_at_all(
    store: SessionStore, session: StoredSession
) -> None:
    session.append(call("open"))
    before, rows = session.log.state, number_of_rows(store)

    refused: list[tuple[list[Any], type[Exception]]] = [
        ([Block.user("a"), result("nobody")], OrphanToolResultError),
        ([call("c1"), result("c1"), result("c1")], OrphanToolResultError),
        ([Block.user("a"), call("open")], DuplicateToolCallError),
        ([], InvalidPositionError),
        ([Block.user("a"), None], AttributeError),
    ]
    for blocks, error in refused:
        with pytest.raises(error):
            session.append(*blocks, key="the key")
        assert (session.log.state, number_of_rows(store)) == (before, rows)

    # A key whose append was refused is still free.
    assert not session.append(Block.user("next"), key="the key").is_repeated
    assert verify(store).is_ok


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


@pytest.mark.parametrize("name", ["half a character \ud800", "nul \0"], ids=["half", "NUL"])
def test_a_name_that_cannot_be_stored_is_refused_and_stores_nothing(
    store: SessionStore, session: StoredSession, engine: str, name: str
) -> None:
    session.append(*(said(f"q{number}") for number in range(5)))
    rows = number_of_rows(store)
    uses: list[Callable[[], Any]] = [
        lambda: store.session(name),
        lambda: store.session("x", namespace=name),
        lambda: session.fork(name),
    ]
    if engine == "postgres" or "\0" not in name:  # SQLite stores a NUL
        uses.append(lambda: session.append(Block.user("a"), key=name))
    if "\0" not in name:
        uses.append(lambda: store.session("x", subject=name))
        uses += (
            partial(session.compact, CutAt(5), options=options)
            for options in (
                CompactionOptions(lineage=name),
                CompactionOptions(idempotency_key=name),
            )
        )

    for use in uses:
        with pytest.raises(CutbankError) as refused:
            use()
        assert "\n" not in str(refused.value)

    # A subject is named, and an event of a compaction stored, before the name is looked at.
    assert number_of_rows(store)["append_keys"] == rows["append_keys"]
    assert session.view().boundary is None
    assert verify(store).is_ok


def test_several_aggregates_are_saved_together_or_not_at_all(database: str) -> None:
    with EventStore(settings_of(database)) as one, EventStore(settings_of(database)) as two:
        store = SessionStore(StoreContext(one, "one"))

        def load(events: EventStore, key: str) -> Session:
            found = events.load_session("space", key)
            assert found
            return found

        for key in ("first", "second"):
            one.save(Session.open("space", key, clock=one.clock))
        first, second, other = load(one, "first"), load(one, "second"), load(two, "second")
        other.append(Block.user("somebody was faster"))
        two.save(other)
        ids = one.recorder.max_notification_id()

        for aggregate in (first, second):
            aggregate.append(Block.user("together"))
        with pytest.raises(IntegrityError):
            one.save(Session.open("space", "third", clock=one.clock), first, second)

        assert one.recorder.max_notification_id() == ids
        assert [stream.session for stream in one.recorder.select_streams()] == ["first", "second"]
        check_log(store)
        # In eventsourcing's own cache the refused events stay, and the next save stores them.
        again = [load(one, "first"), load(one, "second")]
        for session in again:
            session.append(Block.user("together"))
        # A turn and a block, a block in the turn that the other began, and an opening.
        assert len(one.save(*again, Session.open("space", "third", clock=one.clock))) == 4
        check_log(store)


def test_threads_that_append_at_once_lose_nothing(database: str) -> None:
    with cutbank.open(database, synchronous="NORMAL") as store:

        def append(name: int) -> None:
            for number in range(10):
                session, done = store.session(f"session {number % 3}"), f"{name} {number}"
                for _ in range(2):
                    session.append(Block.user(done), Block.assistant("answer"), key=done)

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(append, range(6)))

        said = [texts(session) for session in store.sessions()]
        assert sorted(text for one in said for text in one[::2]) == sorted(
            f"{name} {number}" for name in range(6) for number in range(10)
        )
        assert {text for one in said for text in one[1::2]} == {"answer"}
        check_log(store)
