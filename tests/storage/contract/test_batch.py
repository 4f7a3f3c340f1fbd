"""A batch stores what a thread writes to any sessions in one transaction, or nothing of it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, Event

import pytest
from faulty import check_log, one_line, texts
from short_sessions import number_of_rows

import cutbank
from cutbank import (
    Block,
    ConflictError,
    NotFoundError,
    OrphanToolResultError,
    SessionStore,
    ToolResult,
    import_transcripts,
    verify,
)


class Undo(Exception):  # noqa: N818 - no error
    """Ends a batch."""


@contextmanager
def undone(store: SessionStore) -> Iterator[None]:
    """A batch that an error ends."""
    with suppress(Undo), store.batch():
        yield
        raise Undo


def write_all(store: SessionStore) -> None:
    """Write in every way that a batch takes, and look at it."""
    session = store.session("old")
    last = session.append(Block.user("in a batch"), key="once").last
    assert session.append(Block.user("in a batch"), key="once").is_repeated
    assert session.position == last
    assert session.find("once") is not None
    assert [entry.text for entry in session.view().entries] == ["before", "in a batch"]
    assert texts(session) == ["before", "in a batch"]
    session.records.put("state", {"large": "state " * 9_000})
    session.records.put("state", 2, expect=session.position)
    found = session.records.get("state")
    assert found is not None
    assert found.value == 2
    new = store.session("new", subject="a new subject")
    new.append(Block.user("new"), Block.assistant("\ud800 large " * 2_000))
    assert len(new.view().entries) == 2
    fork = session.fork("fork")
    fork.append(Block.user("of the fork"))
    assert [one.key for one in store.sessions()] == ["fork", "new", "old"]
    session.retract(last)
    session.configure(title="a title")
    session.append(Block.user("and on"))
    assert session.pop() is not None
    assert texts(fork)[-2:] == ["in a batch", "of the fork"]


def test_all_of_a_batch_is_stored_and_seen_by_others_once_it_ends(
    store: SessionStore, database: str
) -> None:
    session = store.session("old")
    session.append(Block.user("before"))
    rows = number_of_rows(store)

    with cutbank.open(database) as another:
        with store.batch():
            write_all(store)
            assert [one.key for one in another.sessions()] == ["old"]
            assert texts(another.session("old")) == ["before"]
            assert another.session("old").records.get("state") is None
        assert [one.key for one in another.sessions()] == ["fork", "new", "old"]
        assert texts(another.session("new"))[0] == "new"
        assert texts(another.session("fork"))[-1] == "of the fork"

    assert session.info.title == "a title"
    # The next append is decided on what is there, and need not be refused first.
    decided = store.events.load_session(session.namespace, session.key)
    assert decided is not None
    assert decided.version == session.position
    assert number_of_rows(store) != rows
    session.append(Block.user("after"))
    store.session("new").append(Block.user("after"))
    assert [one.session for one in store.search("fork")] == ["fork"]
    assert verify(store).violations == []


def test_an_error_undoes_all_of_a_batch(store: SessionStore, database: str) -> None:
    session = store.session("old")
    session.append(Block.user("before"))
    view, rows = session.view(), number_of_rows(store)

    with undone(store):
        write_all(store)

    assert number_of_rows(store) == rows
    assert session.view() == view
    assert session.position == view.coordinate.position
    assert session.records.get("state") is None
    assert session.find("once") is None
    assert [one.key for one in store.sessions()] == ["old"]
    with pytest.raises(NotFoundError):
        store.session("new", create=False)
    # What was undone can be done, by the same store and by another one.
    with cutbank.open(database) as another, another.batch():
        write_all(another)
        another.session("other", subject="another subject").append(Block.user("other"))
    session.append(Block.user("after"))
    assert verify(store).violations == []


def test_a_session_is_deleted_and_begun_again_in_a_batch_or_neither(store: SessionStore) -> None:
    def begin_again() -> None:
        store.delete("a")
        session = store.session("a")
        session.append(Block.user("new"))
        session.records.put("state", "new")

    session = store.session("a")
    session.append(Block.user("old"))
    session.records.put("state", "old")

    with undone(store):
        begin_again()
    found = session.records.get("state")
    assert found is not None
    assert (texts(store.session("a")), found.value) == (["old"], "old")
    with store.batch():
        begin_again()

    again = store.session("a")
    assert texts(again) == ["new"]
    assert [one.value for one in again.records.history("state")] == ["new"]
    assert verify(store).violations == []


def test_a_refusal_undoes_a_batch_unless_it_is_caught_in_it(store: SessionStore) -> None:
    session, other = store.session("a"), store.session("b")
    at = session.append(Block.user("before")).last

    def write() -> None:
        with store.batch():
            other.append(Block.user("undone"))
            session.append(Block.user("undone"), expect=at - 1)

    with pytest.raises(ConflictError):
        write()
    with store.batch():
        with pytest.raises(OrphanToolResultError):
            session.append(Block.user("refused"), ToolResult(tool_call_id="x", content="y"))
        other.append(Block.user("stored"))

    assert texts(session) == ["before"]
    assert texts(other) == ["stored"]
    check_log(store)


def test_a_batch_in_a_batch_is_a_part_of_it(store: SessionStore) -> None:
    session = store.session("a")

    with store.batch():
        session.append(Block.user("1"))
        with undone(store):
            session.append(Block.user("undone"))
            store.session("b")
        with store.batch():
            session.append(Block.user("2"))
        session.append(Block.user("3"))
    with undone(store), store.batch():
        session.append(Block.user("undone with the rest"))

    assert texts(session) == ["1", "2", "3"]
    assert [one.key for one in store.sessions()] == ["a"]
    check_log(store)


def test_a_batch_is_the_thread_s_alone(store: SessionStore) -> None:
    session = store.session("a")
    begun, looked = Event(), Event()

    def look() -> list[str]:
        begun.wait()
        seen = texts(store.session("a"))
        looked.set()
        store.session("b").append(Block.user("of the other thread"))
        return seen

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(look)
        with undone(store):
            session.append(Block.user("undone"))
            begun.set()
            looked.wait()
        assert found.result() == []

    assert texts(store.session("b")) == ["of the other thread"]
    check_log(store)


def test_batches_of_threads_and_processes_lose_nothing(store: SessionStore, database: str) -> None:
    rounds, together = 8, Barrier(4, timeout=60)
    store.session("shared")

    def work(number: int) -> None:
        with cutbank.open(database) as own:
            for opened in (own, store):
                together.wait()
                for turn in range(rounds):
                    opened.session("shared").append(Block.note("without a batch"))
                    with opened.batch():
                        shared = opened.session("shared")
                        newest = shared.records.get("counter")
                        last = shared.append(Block.user(f"{number}"))
                        again = shared.records.get("counter")
                        assert newest is None or again is not None
                        value = again.value if again else 0
                        assert isinstance(value, int)
                        shared.records.put("counter", value + 1)
                        opened.session(f"own {number}").append(Block.user(f"{turn} {last.last}"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))

    newest = store.session("shared").records.get("counter")
    assert newest is not None
    assert newest.value == 4 * 2 * rounds
    assert len(texts(store.session("shared"))) == 2 * 4 * 2 * rounds
    check_log(store)


REFUSED: dict[str, Callable[[SessionStore, Path], object]] = {
    "a compaction": lambda store, _: store.session("a").compact(limit=1_000),
    "an import": import_transcripts,
    "what reads the read models": lambda store, _: store.search("words"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_takes_long_or_is_kept_elsewhere_is_refused_in_a_batch(
    store: SessionStore, tmp_path: Path, what: str
) -> None:
    transcript = tmp_path / "a.jsonl"
    transcript.write_text("{}\n")
    store.session("a").append(Block.user("words"))

    with one_line(f"{what} cannot be part of a batch"), store.batch():
        store.session("a").append(Block.user("undone"))
        REFUSED[what](store, transcript)

    assert texts(store.session("a")) == ["words"]


def test_a_name_that_a_batch_would_have_added_is_added_by_the_next(store: SessionStore) -> None:
    for number in range(3):
        with undone(store):
            store.session("s", subject=f"subject {2 - number}").append(Block.user("undone"))
    for number in range(3):
        store.session(f"s{number}", subject=f"subject {number}").append(Block.user("stored"))

    check_log(store)
    assert store.events.find_subject("default", "s1") == "subject 1"
