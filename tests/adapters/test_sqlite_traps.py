"""What others lost, stored twice or locked on SQLite; here it is one file and nothing is lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from inspect import getsource
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Signal
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.event_store import EventStore
from cutbank.adapters.sqlite import datastore, schema
from cutbank.adapters.verifier import verify
from cutbank.domain.aggregate import restored
from cutbank.domain.errors import ConflictError, StorageError
from cutbank.domain.session import Session, SessionState

Connection = sqlite3.Connection


def texts(session: StoredSession) -> list[str]:
    """All that was ever said, in order of position."""
    return [block.block.text for block in session.recall(search="")]


def check_log(store: SessionStore) -> None:
    """Positions have no gap, and the state beside every event is what the events make it."""
    events = store.events
    for session in store.sessions():
        rows = events.recorder.select_events(session.id)
        assert [row.originator_version for row in rows] == list(range(1, len(rows) + 1))
        folded = Session(
            session.id, version=0, state=SessionState(), subject="", clock=events.clock
        )
        for row in rows:
            folded.evolve(events.mapper.to_domain_event(row))
            head = events.recorder.select_head(session.id, row.originator_version)
            assert head is not None
            assert restored(SessionState, head[1]) == folded.state
        cached = events.session(session.namespace, session.key)
        assert cached is not None
        assert cached.version <= len(rows)
        if cached.version == len(rows):
            assert cached.state == folded.state
    assert verify(store).violations == []


@contextmanager
def one_line(*words: str) -> Iterator[None]:
    """What is refused is refused as a StorageError of one line that says these words."""
    with pytest.raises(StorageError) as raised:
        yield
    message = str(raised.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


# Phantoms


def test_a_conflict_leaves_no_phantom_in_a_cached_aggregate(tmp_path: Path) -> None:
    """In eventsourcing's own cache the refused event stays, and the next save succeeds."""
    env = {"SQLITE_DBNAME": str(tmp_path / "log.db")}
    with EventStore(env) as one, EventStore(env) as two:
        one.save(Session.open("space", "key", clock=one.clock))
        mine, stale = one.session("space", "key"), two.session("space", "key")
        assert mine is not None
        assert stale is not None
        mine.append(Block.user("stored"))
        one.save(mine)

        stale.append(Block.user("refused"))
        with pytest.raises(IntegrityError):
            two.save(stale)

        again = two.session("space", "key")
        assert again is not None
        assert again is not stale
        assert (again.version, again.state) == (mine.version, mine.state)
        again.append(Block.user("stored as well"))
        two.save(again)
        check_log(SessionStore(one, "one"))
        check_log(SessionStore(two, "two"))
        log = StoredSession(SessionStore(one, "one"), "space", "key")
        assert texts(log) == ["stored", "stored as well"]


def test_a_decision_that_breaks_off_leaves_no_phantom(session: StoredSession) -> None:
    for broken in (ToolResult(tool_call_id="nobody"), "not a block", None):
        with pytest.raises(Exception, match=r"nobody|kind"):
            session.append(Block.user("phantom"), broken)  # type: ignore[arg-type]

    session.append(Block.user("real"))

    assert texts(session) == ["real"]
    check_log(session.store)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SessionStore]]:
    """Three stores on one file, as three processes would have them."""
    path = tmp_path_factory.mktemp("stores") / "log.db"
    opened = [cutbank.open(path, synchronous="NORMAL") for _ in range(3)]
    yield opened
    for store in opened:
        store.close()


@given(
    turns=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["say", "call", "answer", "expect", "key"])),
        min_size=2,
        max_size=25,
    )
)
@settings(max_examples=40)
def test_whoever_appends_in_turn_nothing_is_lost_and_nothing_is_twice(
    stores: list[SessionStore], turns: list[tuple[int, str]]
) -> None:
    key = str(uuid4())
    sessions = [store.session(key) for store in stores]
    said: list[str] = []
    waiting: list[str] = []
    seen = [session.position for session in sessions]

    for number, (who, what) in enumerate(turns):
        session, text = sessions[who], f"text {number}"
        match what:
            case "call":
                done = session.append(ToolCall(tool_call_id=text, name="tool", arguments=text))
                waiting.append(text)
                said.append(text)
            case "answer" if waiting:
                # Another process made the call, and this one answers it.
                done = session.append(ToolResult(tool_call_id=waiting.pop(0), content=text))
                said.append(text)
            case "expect":
                newest = session.position
                if seen[who] != newest:
                    with pytest.raises(ConflictError):
                        session.append(Block.user("refused"), expect=seen[who])
                done = session.append(Block.user(text), expect=newest)
                said.append(text)
            case _:
                done = session.append(Block.user(text), key=text if what == "key" else None)
                said.append(text)
                if what == "key":
                    again = sessions[who - 1].append(Block.user("never stored"), key=text)
                    assert (again.first, again.last) == (done.first, done.last)
        seen[who] = done.last

    for session in sessions:
        assert texts(session) == said
        assert session.state.open_calls.keys() == set(waiting)


def test_states_equal_the_log_after_all_that(stores: list[SessionStore]) -> None:
    for store in stores:
        check_log(store)


# Ids, and what is never changed


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stored_events",
        "DELETE FROM stored_events WHERE notification_id = 1",
        "UPDATE stored_events SET state = x'7b7d'",
        "UPDATE stored_events SET notification_id = notification_id + 100",
    ],
)
def test_an_event_is_never_changed_or_deleted(session: StoredSession, statement: str) -> None:
    session.append(Block.user("stays"))
    writer = sqlite_recorder(session.store).datastore.writer

    with pytest.raises(sqlite3.IntegrityError, match="the log is immutable"):
        writer.execute(statement)

    assert texts(session) == ["stays"]
    check_log(session.store)


def test_a_notification_id_is_never_used_again(session: StoredSession) -> None:
    """Whoever followed the log past an id would never see an event that came to stand there."""
    session.append(Block.user("first"))
    recorder = sqlite_recorder(session.store)
    newest = recorder.max_notification_id()
    writer = recorder.datastore.writer

    # The newest id is the only one that SQLite would give again, and it cannot be freed.
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        writer.execute("DELETE FROM stored_events WHERE notification_id = ?", (newest,))
    with pytest.raises(IntegrityError):
        recorder.insert_events(recorder.select_events(session.id))  # is refused, and uses no id
    writer.execute("VACUUM")
    session.store.session("another")

    assert recorder.max_notification_id() == newest + 1


# Transactions


def test_several_aggregates_are_saved_together_or_not_at_all(tmp_path: Path) -> None:
    env = {"SQLITE_DBNAME": str(tmp_path / "log.db")}
    with EventStore(env) as one, EventStore(env) as two:
        for key in ("first", "second"):
            one.save(Session.open("space", key, clock=one.clock))
        first, second = one.session("space", "first"), one.session("space", "second")
        other = two.session("space", "second")
        assert first
        assert second
        assert other
        other.append(Block.user("somebody was faster"))
        two.save(other)
        ids = one.recorder.max_notification_id()

        for aggregate in (first, second):
            aggregate.append(Block.user("together"))
        opened = Session.open("space", "third", clock=one.clock)
        with pytest.raises(IntegrityError):
            one.save(opened, first, second)

        assert one.recorder.max_notification_id() == ids
        assert one.session("space", "third") is None
        assert [stream.session for stream in one.recorder.select_streams()] == ["first", "second"]
        check_log(SessionStore(one, "one"))

        again = [one.session("space", "first"), one.session("space", "second")]
        for session in again:
            assert session
            session.append(Block.user("together"))
        stored = one.save(*again, Session.open("space", "third", clock=one.clock))
        # A turn and a block, a block in the turn that the other began, and an opening.
        assert [number - ids for number in stored] == [1, 2, 3, 4]
        check_log(SessionStore(one, "one"))


# Many writers


PRELUDE = """
import sys
import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
path, name, *rest = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
"""
OPENS = """
with cutbank.open(path) as store:
    for key in ("shared", f"own {name}"):
        store.session(key).append(Block.user(f"said by {name}"))
"""
APPENDS = """
with cutbank.open(path, synchronous="NORMAL") as store:
    append_many(store, name, *map(int, rest))
"""


def run_children(code: str, path: Path, number: int, *arguments: int) -> None:
    """Run processes that begin together, and expect each to end well and without a word."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, path, str(child), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for child in range(number)
    ]
    try:
        for child in children:
            assert child.stdout
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            said, _ = child.communicate(timeout=240)
            assert (child.returncode, said) == (0, "")
    finally:
        for child in children:
            child.kill()
            child.communicate()


def append_many(store: SessionStore, name: str, sessions: int, times: int) -> None:
    for number in range(times):
        session = store.session(f"session {number % sessions}")
        call, text = f"{name}.{number}", f"{name} says {number}"
        if number % 3:
            session.append(Block.user(text))
        else:
            session.append(ToolCall(tool_call_id=call, name="tool", arguments=text))
            session.append(
                ToolResult(tool_call_id=call, content=f"{text}, answered"),
                Block.assistant(f"{text}, done"),
                key=call,
            )


def all_that_is_said(name: str, times: int) -> list[str]:
    return [
        f"{name} says {number}{rest}"
        for number in range(times)
        for rest in (("",) if number % 3 else ("", ", answered", ", done"))
    ]


@pytest.mark.parametrize("number", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_processes_that_start_together_on_a_new_file_all_get_in(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "new.db"

    run_children(OPENS, path, number)

    names = [f"said by {child}" for child in range(number)]
    with cutbank.open(path) as store:
        assert sorted(texts(store.session("shared"))) == sorted(names)
        assert {session.key for session in store.sessions()} == {
            "shared",
            *(f"own {child}" for child in range(number)),
        }
        check_log(store)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [1, 7])
def test_threads_and_processes_lose_nothing(tmp_path: Path, sessions: int) -> None:
    path, times = tmp_path / "log.db", 60
    with cutbank.open(path, synchronous="NORMAL") as store, ThreadPoolExecutor(8) as threads:
        done = [
            threads.submit(append_many, store, f"thread {number}", sessions, times)
            for number in range(8)
        ]

        run_children(getsource(append_many) + APPENDS, path, 4, sessions, times)

        for one in done:
            one.result()
        names = [f"thread {number}" for number in range(8)] + [str(child) for child in range(4)]
        said = Counter(text for session in store.sessions() for text in texts(session))
        assert said == Counter(text for name in names for text in all_that_is_said(name, times))
        check_log(store)


@pytest.mark.parametrize("name", ["log.db", ":memory:"])
@pytest.mark.parametrize("sessions", [1, 3])
def test_threads_of_one_store_lose_nothing(tmp_path: Path, name: str, sessions: int) -> None:
    where = tmp_path / name if name != ":memory:" else name
    with (
        cutbank.open(where, synchronous="NORMAL") as store,
        ThreadPoolExecutor(8) as threads,
    ):
        done = [
            threads.submit(append_many, store, str(number), sessions, 20) for number in range(8)
        ]

        for one in done:
            one.result()

        said = Counter(text for session in store.sessions() for text in texts(session))
        assert said == Counter(
            text for name in range(8) for text in all_that_is_said(str(name), 20)
        )
        check_log(store)


@pytest.mark.parametrize("name", ["log.db", ":memory:"])
def test_readers_in_other_threads_see_whole_appends(tmp_path: Path, name: str) -> None:
    where = tmp_path / name if name != ":memory:" else name
    finished = Signal()

    def read(store: SessionStore) -> int:
        looks = 0
        while not finished.is_set():
            session = store.session("session")
            said = [entry.text for entry in session.view().entries]
            # Each append is two blocks.
            assert said == [f"{number // 2}" for number in range(len(said))]
            assert len(said) % 2 == 0
            looks += 1
        return looks

    with cutbank.open(where, synchronous="NORMAL") as store, ThreadPoolExecutor(4) as threads:
        session = store.session("session")
        readers = [threads.submit(read, store) for _ in range(4)]
        try:
            for number in range(100):
                session.append(Block.user(f"{number}"), Block.assistant(f"{number}"))
        finally:
            finished.set()

        assert all(reader.result() > 0 for reader in readers)


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    """Threads take turns after every few instructions, so that what can go wrong does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_interrupted")
def test_one_session_object_may_be_viewed_from_many_threads(tmp_path: Path) -> None:
    finished = Signal()

    def read(session: StoredSession) -> None:
        while not finished.is_set():
            view = session.view()
            assert [entry.text for entry in view.entries] == [
                f"{number}" for number in range(len(view.entries))
            ]
            # What a view says that it holds is what it holds.
            if view.entries:
                assert view.entries[-1].position == view.coordinate.position

    with (
        cutbank.open(tmp_path / "log.db", synchronous="NORMAL") as store,
        ThreadPoolExecutor(4) as threads,
    ):
        session = store.session("session")
        reading = [threads.submit(read, session) for _ in range(4)]
        try:
            for number in range(300):
                session.append(Block.user(f"{number}"))
        finally:
            finished.set()

        for one in reading:
            one.result()


def test_a_thread_takes_its_connection_along_when_it_ends(session: StoredSession) -> None:
    session.append(Block.user("words"))
    readers = sqlite_recorder(session.store).datastore._readers
    before = len(readers)

    for _ in range(30):
        seen: list[str] = []
        thread = Thread(target=lambda seen=seen: seen.extend(texts(session)))
        thread.start()
        thread.join()
        assert seen == ["words"]

    assert len(readers) == before


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("session")
        session.append(Block.user("words"))

    acts: list[Callable[[], Any]] = [
        lambda: session.append(Block.user("more")),
        session.view,
        lambda: session.position,
        lambda: store.session("another"),
        store.sessions,
    ]
    for act in acts:
        with one_line("log.db was closed"):
            act()
        # Nor does a thread that never read from it open it again.
        with one_line("log.db was closed"), ThreadPoolExecutor(1) as threads:
            threads.submit(act).result()
    store.close()


# Opening


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()

    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))

    with closing(path) as connection:
        assert version(connection) == schema.VERSION
        assert connection.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


@pytest.mark.parametrize(
    "name", ["with space.db", "what?.db", "50%41#.db", "ünïcode \U0001f600.db"]
)
def test_a_path_is_taken_as_it_is_written(tmp_path: Path, name: str) -> None:
    with cutbank.open(tmp_path / name) as store:
        store.session("session").append(Block.user("words"))

    assert (tmp_path / name).stat().st_size > 0
    with cutbank.open(str(tmp_path / name)) as store:
        assert texts(store.session("session", create=False)) == ["words"]


def test_an_older_database_is_migrated_and_keeps_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    with closing(path) as connection:
        before = connection.execute("SELECT * FROM stored_events").fetchall()

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, _add_a_table))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    for number in range(2):  # and only once
        with cutbank.open(path) as store:
            session = store.session("session", create=False)
            assert texts(session) == ["words", "more"][: number + 1]
            session.append(Block.user("more"), key="more")
            check_log(store)

    with closing(path) as connection:
        assert version(connection) == schema.VERSION
        assert connection.execute("SELECT count(*) FROM later").fetchone()[0] == 1
        rows = connection.execute("SELECT * FROM stored_events").fetchall()
        assert rows[: len(before)] == before


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))

    def fails(connection: Connection) -> None:
        _add_a_table(connection)
        connection.execute("this is not SQL")

    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, fails))
        patched.setattr(schema, "VERSION", schema.VERSION + 1)
        with one_line("old.db", "syntax error"):
            cutbank.open(path)

    with closing(path) as connection:
        assert version(connection) == schema.VERSION
        assert "later" not in tables(connection)
    with cutbank.open(path) as store:
        assert texts(store.session("session")) == ["words"]


def _add_a_table(connection: Connection) -> None:
    connection.execute("CREATE TABLE later (word TEXT)")
    connection.execute("INSERT INTO later SELECT topic FROM topics LIMIT 1")


def _of_another_program(connection: Connection) -> None:
    connection.execute("CREATE TABLE bookmarks (url TEXT)")


def _of_a_later_version(connection: Connection) -> None:
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 6}")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_of_another_program, "is a database of another application"),
        (lambda c: c.execute("PRAGMA application_id = 7"), "is a database of another application"),
        (lambda c: c.execute("PRAGMA user_version = 3"), "is a database of another application"),
        (
            _of_a_later_version,
            (
                f"was written by a newer cutbank (format {schema.VERSION + 6}, "
                f"this one reads up to {schema.VERSION})"
            ),
        ),
    ],
)
def test_a_foreign_or_newer_database_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Connection], object], words: str
) -> None:
    path = tmp_path / "other.db"
    with closing(path) as connection:
        make(connection)
    before = path.read_bytes()

    with one_line("other.db", words):
        cutbank.open(path)

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and not a database.\n" * 100)

    with one_line("notes.txt is not a database"):
        cutbank.open(text)
    with one_line("cannot be opened: check that its folder exists"):
        cutbank.open(tmp_path)
    with one_line("cannot be opened: check that its folder exists"):
        cutbank.open(tmp_path / "no such folder" / "log.db")
    with one_line("a database needs a path"):
        cutbank.open("")

    assert text.read_text() == "These are notes, and not a database.\n" * 100
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user to whom permissions apply: root may write to what is read-only."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into."""
    folder = Path(tempfile.mkdtemp(prefix="cutbank-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are POSIX's here")
@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_read_only_file_is_refused_and_keeps_what_it_has(
    open_folder: Path, folder_mode: int
) -> None:
    path = open_folder / "log.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    path.chmod(0o444)
    open_folder.chmod(folder_mode)

    def append() -> None:
        with cutbank.open(path) as store:
            store.session("session").append(Block.user("more"))

    with without_rights(), one_line("log.db", "check"):
        append()

    path.chmod(0o644)
    open_folder.chmod(0o755)
    with cutbank.open(path) as store:
        assert texts(store.session("session")) == ["words"]


def test_a_database_that_another_program_locks_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("words"))
    monkeypatch.setattr(datastore, "LOCK_TIMEOUT", 0.01)

    with closing(path) as connection, cutbank.open(path) as store:
        connection.execute("BEGIN IMMEDIATE")
        session = store.session("session")
        for blocks in ([Block.user("1")], [Block.user("1"), Block.user("2")]):
            with one_line("log.db is locked by another program"):
                session.append(*blocks)
        connection.execute("ROLLBACK")

        session.append(Block.user("after"))
        assert texts(session) == ["words", "after"]
        check_log(store)


# Damage


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("flip", [0xFF, 0x01])
def test_damage_is_reported_in_one_line_and_never_passes_for_content(
    tmp_path: Path, flip: int, *, compress: bool
) -> None:
    """Each page in turn is damaged; what then passes for sound is what was said."""
    path, damaged = tmp_path / "log.db", tmp_path / "damaged.db"
    said = write_something(path, compress=compress)
    content = path.read_bytes()
    page = int.from_bytes(content[16:18], "big")
    reported = 0

    for start in range(0, len(content), page):
        for where in (start + page // 2, start + page - 200):
            torn = bytearray(content)
            for at in range(where, where + 40):
                torn[at] ^= flip
            damaged.write_bytes(torn)

            complaints = look_through(damaged, said)

            reported += bool(complaints)
            assert all("\n" not in complaint for complaint in complaints)

    assert reported > len(content) // page // 2


def write_something(path: Path, *, compress: bool) -> dict[str, list[str]]:
    with cutbank.open(path, compress=compress) as store:
        for key in ("one", "two"):
            session = store.session(key)
            for number in range(12):
                session.append(
                    Block.user(f"question {number} of {key} " * 9),
                    ToolCall(tool_call_id=f"{number}", name="read", arguments={"n": number}),
                )
                size = 3_000 if number == 5 else 30
                session.append(ToolResult(tool_call_id=f"{number}", content=f"{number}, " * size))
            assert session.compact(settings={"keep_tokens": "300"}, limit=2_000).compacted
        return {session.key: texts(session) for session in store.sessions()}


def look_through(path: Path, said: dict[str, list[str]]) -> list[str]:
    """What a reader of a damaged database is told; where it is nothing, all must be sound."""
    try:
        with cutbank.open(path) as store:
            verdict = verify(store)
            found = {session.key: texts(session) for session in store.sessions()}
            for session in store.sessions():
                session.view()
    except StorageError as error:
        return [str(error)]
    if verdict.ok:
        assert found == said
    return [violation.what for violation in verdict.violations]


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param([Block.user("x" * 4_000)], id="one block"),
        pytest.param([Block.user("x" * 4_000), Block.assistant("y" * 4_000)], id="several blocks"),
        pytest.param([Block.user("z" * 60_000)], id="a body"),
    ],
)
def test_a_full_disk_loses_nothing_and_passes(store: SessionStore, blocks: list[Block]) -> None:
    session = store.session("session")
    writer = sqlite_recorder(store).datastore.writer
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 30}")
    acknowledged = 0

    with one_line("test.db cannot grow, the disk is full"):
        while acknowledged < 1_000:
            distinct = [
                block.model_copy(update={"text": f"{acknowledged} {block.text}"})
                for block in blocks
            ]
            session.append(*distinct)
            acknowledged += 1

    assert acknowledged > 0
    assert len(texts(session)) == acknowledged * len(blocks)
    check_log(store)

    writer.execute("PRAGMA max_page_count = 1000000")
    session.append(*blocks)
    assert len(texts(session)) == (acknowledged + 1) * len(blocks)
    check_log(store)


# Backup


def test_a_backup_is_consistent_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    acknowledged: SimpleQueue[int] = SimpleQueue()
    finished = Signal()

    def write() -> None:
        # A store of its own, as another process has it.
        with cutbank.open(path, synchronous="NORMAL") as other:
            session = other.session("session")
            number = 0
            while not finished.is_set():
                session.append(Block.user(f"{number}"), Block.assistant(f"{number} " * 3_000))
                acknowledged.put(number)
                number += 1

    with cutbank.open(path) as store, ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        try:
            for number in range(5):
                before = max(acknowledged.get(timeout=60) for _ in range(5))
                store.backup(tmp_path / f"backup {number}.db")

                with cutbank.open(tmp_path / f"backup {number}.db") as copy:
                    said = texts(copy.session("session", create=False))
                    assert len(said) % 2 == 0
                    assert [text.split()[0] for text in said[::2]] == [
                        f"{n}" for n in range(len(said) // 2)
                    ]
                    assert len(said) // 2 > before
                    check_log(copy)
        finally:
            finished.set()
        writing.result()


def test_a_backup_is_one_file_that_can_be_moved(store: SessionStore, tmp_path: Path) -> None:
    store.session("session").append(Block.user("words"))
    (tmp_path / "backups").mkdir()

    store.backup(tmp_path / "backups" / "copy.db")

    assert [file.name for file in (tmp_path / "backups").iterdir()] == ["copy.db"]
    store.session("session").append(Block.user("later"))
    with cutbank.open(tmp_path / "backups" / "copy.db") as copy:
        assert texts(copy.session("session", create=False)) == ["words"]


def test_a_backup_that_fails_says_why(store: SessionStore, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("something of mine")

    with one_line("there.db exists already: give a new path"):
        store.backup(tmp_path / "there.db")
    with one_line("cannot be opened"):
        store.backup(tmp_path / "no such folder" / "copy.db")

    assert (tmp_path / "there.db").read_text() == "something of mine"


# In memory


def test_stores_in_memory_are_separate() -> None:
    stores = []
    for number in range(20):
        store = cutbank.open(":memory:")
        assert store.sessions() == []
        store.session("session").append(Block.user(f"{number}"))
        stores.append(store)

    assert [texts(store.session("session")) for store in stores] == [[f"{n}"] for n in range(20)]
    for store in stores[::2]:
        store.close()
    assert texts(stores[1].session("session")) == ["1"]
    for store in stores[1::2]:
        store.close()
    for store in stores[1::2]:
        store.close()


def test_a_store_in_memory_can_be_saved(tmp_path: Path) -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("session")
        session.append(Block.user("words " * 5_000))
        store.backup(tmp_path / "saved.db")
        check_log(store)

    with cutbank.open(tmp_path / "saved.db") as saved:
        assert texts(saved.session("session", create=False)) == ["words " * 5_000]


# How


@contextmanager
def closing(path: Path) -> Iterator[Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]


def test_verify_misses_no_stream_that_the_catalog_does_not_name(store: SessionStore) -> None:
    session = store.session("session")
    session.append(Block.user("words"))
    sqlite_recorder(store).datastore.writer.execute("DELETE FROM streams")

    verdict = verify(store)

    assert [violation.what for violation in verdict.violations] == ["1 streams are in no catalog"]


def test_verify_sees_a_state_that_was_changed(store: SessionStore) -> None:
    session = store.session("session")
    session.append(Block.user("words"))
    writer = sqlite_recorder(store).datastore.writer
    writer.execute("DROP TRIGGER stored_events_are_immutable")
    writer.execute("UPDATE stored_events SET carried = '{}' WHERE originator_version = 3")

    verdict = verify(store)

    assert [(violation.what, violation.position) for violation in verdict.violations] == [
        ("the state beside it was changed", 3)
    ]
