"""Both recorders store an append whole or not at all, and read it back as it was stored."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from random import Random
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from databases import asked
from eventsourcing.persistence import IntegrityError, OperationalError
from faulty import one_line
from log_rows import ODD, ONE, TWO, Change, row
from opened_stores import store_of
from short_sessions import number_of_rows

import cutbank
from cutbank import Block, SessionStore, StoredSession, verify
from cutbank.adapters.runtime.sessions.store_context import ServerClock
from cutbank.adapters.storage.event_log.log_tables import (
    AppendKey,
    Batch,
    ImportRow,
    StoredContent,
    StoredRow,
    Stream,
)
from cutbank.adapters.storage.event_log.recorder import Recorder


def versions(rows: Sequence[StoredRow]) -> list[int]:
    return [one.originator_version for one in rows]


# Rows


@pytest.mark.parametrize("number", [1, 2, 4, 5, 12])
def test_rows_come_back_as_they_were_stored(recorder: Recorder, number: int) -> None:
    """PostgreSQL sends up to four rows as values, more as arrays."""
    random = Random(number)  # noqa: S311 - nothing here is secret
    rows = [
        row(
            ONE,
            version,
            topic=f"topic {version % 3} {ODD}",
            state=random.randbytes(50) + b"\0\xff",
            subject=f"subject {version % 2} {ODD}",
            key_id=ODD if version % 2 else None,
            tokens=version * 2**33,
            digest=random.randbytes(32),
            carried='{"said": "NUL \\u0000 and half \\ud800 \u00e9"}'.encode(),
            bodies=(StoredContent(b"hash %d" % version, random.randbytes(9_000) + b"\0"),),
        )
        for version in range(1, number + 1)
    ]
    fields = attrgetter(
        "originator_id", "originator_version", "topic", "state", "subject", "key_id", "tokens"
    )

    ids = recorder.insert_events(rows)

    assert list(ids) == list(range(ids[0], ids[0] + number))
    assert recorder.select_events(ONE) == [one._replace(bodies=()) for one in rows]
    log = recorder.select_notifications(ids[0], 100)
    assert [one.id for one in log] == list(ids)
    assert list(map(fields, log)) == list(map(fields, rows))
    assert [one.carried for one in log] == [one.carried for one in rows]
    for one in rows:
        assert recorder.select_body(one.subject, one.bodies[0].hash) == one.bodies[0].content


def test_events_are_selected_by_position(recorder: Recorder) -> None:
    recorder.insert_events([row(ONE, version) for version in range(1, 11)])
    recorder.insert_events([row(TWO, 1)])

    assert versions(recorder.select_events(ONE)) == list(range(1, 11))
    assert versions(recorder.select_events(ONE, gt=3, lte=6)) == [4, 5, 6]
    assert versions(recorder.select_events(ONE, gt=0, limit=2)) == [1, 2]
    assert versions(recorder.select_events(ONE, desc=True, limit=2)) == [10, 9]
    assert recorder.select_events(uuid4()) == []
    for runs in ([(2, 3)], [(2, 3), (5, 5), (9, 99)], [(20, 30), (40, 50)]):
        expected = [at for at in range(1, 11) if any(first <= at <= last for first, last in runs)]
        assert versions(recorder.select_runs(ONE, runs)) == expected, runs


def test_the_head_is_the_newest_state_up_to_a_position(recorder: Recorder) -> None:
    recorder.insert_events(
        [row(ONE, version, carried=b'{"at": %d}' % version) for version in range(1, 4)]
    )
    recorder.insert_events([row(TWO, 1, carried=b"no JSON")])

    assert recorder.select_head(ONE) == (3, {"at": 3}, "a subject")
    assert recorder.select_head(ONE, 2) == (2, {"at": 2}, "a subject")
    assert recorder.select_head(ONE, 0) is None
    assert recorder.select_head(uuid4()) is None
    with pytest.raises(OperationalError, match=rf"state at #1 of stream {TWO} is damaged"):
        recorder.select_head(TWO)


def test_a_body_is_stored_once_for_each_subject(store: SessionStore, recorder: Recorder) -> None:
    body = StoredContent(b"hash", b"first")
    recorder.insert_events([row(ONE, 1, subject="one", bodies=(body,))])
    recorder.insert_events(
        [
            row(ONE, 2, subject="one", bodies=(body._replace(content=b"again"),)),
            row(ONE, 3, subject="two", bodies=(body._replace(content=b"of two"),) * 2),
        ]
    )

    assert recorder.select_body("one", b"hash") == b"first"
    assert recorder.select_body("two", b"hash") == b"of two"
    assert asked(store, "SELECT count(*) FROM bodies") == [(2,)]
    with pytest.raises(OperationalError, match=f"body {b'other'.hex()} is missing"):
        recorder.select_body("one", b"other")


# Conflicts


def test_what_is_taken_refuses_the_whole_append(store: SessionStore, recorder: Recorder) -> None:
    key, stream = AppendKey(ONE, "key", 1, 2), Stream(ONE, "space", "session", None)
    lineage = Stream(TWO, "space", "session", "main")
    recorder.insert_events([row(ONE, 1)], keys=[key], streams=[stream, lineage])
    before = number_of_rows(store)
    free = row(ONE, 2, bodies=(StoredContent(b"new", b"body"),))

    refused: list[dict[str, Any]] = [
        {"stored_events": [free, row(ONE, 1)]},
        {"stored_events": [free], "keys": [AppendKey(TWO, "key", 1, 1), key]},
        {"stored_events": [free], "streams": [Stream(ONE, "space", "another", None)]},
        {"stored_events": [free], "streams": [Stream(uuid4(), "space", "session", "main")]},
    ]
    for taken in refused:
        with pytest.raises(IntegrityError):
            recorder.insert_events(**taken)
        assert number_of_rows(store) == before, taken

    newest = recorder.max_notification_id()
    recorder.insert_events([free])
    assert recorder.max_notification_id() > newest


def test_batches_are_stored_together_or_not_at_all(store: SessionStore, recorder: Recorder) -> None:
    recorder.names.topic("a topic")
    recorder.names.subject("a subject")
    imported = ImportRow("space", "source", "pi", "session", 9, complete=True)
    good = [
        Batch([row(ONE, at) for at in range(1, 8)], [AppendKey(ONE, "k", 1, 1)]),
        Batch(),
        Batch([row(TWO, 1)], streams=[Stream(TWO, "space", "s", None)], imports=[imported]),
    ]
    before = number_of_rows(store)

    with pytest.raises(IntegrityError):
        recorder.insert_all([*good, Batch([row(ONE, 8), row(ONE, 1)])])
    assert number_of_rows(store) == before
    recorder.insert_all(iter(good))

    assert recorder.select_import("space", "source") == imported
    log = recorder.select_notifications(1, 99)
    assert [one.originator_id for one in log] == [*[ONE] * 7, TWO]


def test_an_event_is_never_changed_or_deleted(
    store: SessionStore, session: StoredSession, engine: str, change: Change
) -> None:
    session.append(Block.user("stays"))
    statements = [
        "DELETE FROM stored_events",
        "DELETE FROM stored_events WHERE notification_id = 1",
        "UPDATE stored_events SET tokens = 9",
        "UPDATE stored_events SET notification_id = notification_id + 100",
    ]
    if engine == "postgres":
        statements += [
            "TRUNCATE stored_events",
            "DELETE FROM topics",
            "UPDATE topics SET topic = 'x'",
            "DELETE FROM subjects",
        ]

    for statement in statements:
        with pytest.raises(Exception, match=r"the log is immutable|never deleted"):
            change(statement)

    assert verify(store).violations == []
    assert session.view().entries[0].text == "stays"


# Names


def test_keys_are_found_and_paged_through(recorder: Recorder) -> None:
    names = sorted([f"key {number}" for number in range(7)] + [ODD, "Key 1", "KEY"])
    keys = [AppendKey(ONE, name, at, at + 1) for at, name in enumerate(names)]
    recorder.insert_events([], keys=[*keys, AppendKey(TWO, "of another", 1, 1)])

    pages, last = list[AppendKey](), ""
    while page := recorder.select_keys(ONE, last, 3):
        assert len(page) <= 3
        pages += page
        last = page[-1].key

    assert sorted(pages, key=lambda key: key.key) == keys
    assert recorder.select_key(ONE, ODD) == keys[names.index(ODD)]
    assert recorder.select_key(ONE, "of another") is None


def test_streams_are_listed_by_name_in_the_order_of_code_points(recorder: Recorder) -> None:
    names = [("B", "a", None), ("a", "\u00e9", "x"), ("a", "\u00e9", None), ("a", "b", "main")]
    names += [("a", "Z", None), (ODD, ODD, ODD), ("a", "b", "Main")]
    streams = [Stream(uuid4(), *name) for name in names]
    recorder.insert_events([], streams=streams)

    found = recorder.select_streams()

    assert found == sorted(streams, key=lambda s: (s.namespace, s.session, s.lineage or ""))
    assert [one.session for one in recorder.select_streams("a")] == ["Z", "b", "b", *["\u00e9"] * 2]
    assert [one.lineage for one in recorder.select_streams("a", "\u00e9")] == [None, "x"]
    assert recorder.select_streams("A") == []
    sessions = [("B", "a"), ("a", "Z"), ("a", "\u00e9")]
    assert recorder.select_sessions() == sessions
    assert recorder.select_sessions(after=sessions[0], limit=1) == sessions[1:2]
    assert recorder.select_sessions("a", prefix="\u00e9") == sessions[2:]
    assert recorder.select_sessions(prefix="e") == recorder.select_sessions(limit=0) == []


def test_an_import_is_written_down_once_and_brought_up_to_date(recorder: Recorder) -> None:
    begun = ImportRow("space", "b.jsonl", "pi", "session", 2**40, complete=False)
    other = ImportRow("space", "a.jsonl", "codex", "session", 7, complete=True, stamp="stamp")
    without = ImportRow("space", "none", "pi", None, 0, complete=True)
    recorder.insert_events([], imports=[begun, other, without])
    incomplete = recorder.select_incomplete_import("space", "session")

    done = begun._replace(format="pi2", bytes=2**41, complete=True, stamp=ODD)
    recorder.insert_events([], imports=[done])

    assert incomplete == "b.jsonl"
    assert recorder.select_incomplete_import("space", "session") is None
    assert recorder.select_import("space", "b.jsonl") == done
    assert recorder.select_imports("space", "session") == [other, done]
    assert recorder.select_import("elsewhere", "a.jsonl") is None


def test_a_subject_has_one_secret_whoever_names_it_first(recorder: Recorder, database: str) -> None:
    starting, names = Barrier(4), recorder.names

    def name(_: int) -> tuple[int, bytes]:
        with cutbank.open(database) as store:
            starting.wait(60)
            return store.events.recorder.names.subject("shared")

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(name, range(4)))

    assert found == {names.subject("shared")}
    assert names.secret_of("shared") == names.subject("shared")[1]
    assert names.secret_of("unknown") is None
    assert [names.adopt("brought", secret) for secret in (b"a secret", b"another")] == [
        b"a secret",
        b"a secret",
    ]
    assert names.secret_of("brought") == b"a secret"


# The log as one


def test_the_log_is_read_in_pages_and_by_topic(recorder: Recorder) -> None:
    assert recorder.max_notification_id() == 0
    assert recorder.select_notifications(None, 10) == []
    first = recorder.insert_events(
        [row(ONE, at, topic="even" if at % 2 == 0 else "odd") for at in range(1, 10)]
    )[0]

    def read(*arguments: Any, **named: Any) -> list[int]:
        found = recorder.select_notifications(*arguments, **named)
        return [one.id - first + 1 for one in found]

    assert read(first, 3) == [1, 2, 3]
    assert read(first + 2, 3, inclusive_of_start=False) == [4, 5, 6]
    assert read(first, 99, first + 1) == [1, 2]
    assert read(first, 99, topics=["even"]) == [2, 4, 6, 8]
    assert read(first, 2, topics=["even", "odd"]) == [1, 2]
    assert read(first, 99, topics=["unknown"]) == []
    assert read(None, 99) == list(range(1, 10))
    assert recorder.max_notification_id() == first + 8


def test_a_clock_that_is_wrong_is_set_right_by_the_server_where_there_is_one(
    recorder: Recorder, engine: str
) -> None:
    ahead = ServerClock(recorder, lambda: datetime.now(UTC) + timedelta(hours=1))
    right = ServerClock(recorder, lambda: datetime.now(UTC) + timedelta(seconds=0.1))

    off = ahead.compare()

    assert right.compare() == timedelta()
    assert (off == timedelta()) == (engine == "sqlite")
    if engine == "postgres":
        assert abs(ahead() - datetime.now(UTC)) < timedelta(minutes=1)


# What is wrong


def test_verify_finds_streams_without_a_name_and_a_state_that_was_changed(
    store: SessionStore, session: StoredSession, engine: str, change: Change
) -> None:
    session.append(Block.user("words"))
    unlock = {
        "sqlite": "DROP TRIGGER stored_events_are_immutable",
        "postgres": "DROP TRIGGER stored_events_are_immutable ON stored_events",
    }
    change(unlock[engine])
    change("UPDATE stored_events SET carried = '{}' WHERE originator_version = 3")
    changed = verify(store).violations
    change("DELETE FROM streams")

    assert [(one.what, one.position) for one in changed] == [
        ("the state stored with it was changed", 3)
    ]
    assert "1 streams are in no catalog" in [one.what for one in verify(store).violations]
    assert store.events.recorder.find_problems() == []


def test_a_database_that_is_read_only_is_read_and_says_so(
    session: StoredSession, engine: str, database: str
) -> None:
    session.append(Block.user("a"))
    store_of(session).close()
    address = {
        "sqlite": f"file:{database}?mode=ro",
        "postgres": f"{database}&options=-c%20default_transaction_read_only%3Don",
    }

    with cutbank.open(address[engine]) as store:
        again = store.session("a session", create=False)
        assert [entry.text for entry in again.view().entries] == ["a"]
        with one_line("is read-only"):
            again.append(Block.user("b"))


def test_a_closed_store_says_so_and_is_not_opened_again(session: StoredSession) -> None:
    store = store_of(session)
    store.close()

    acts: list[Callable[[], object]] = [
        lambda: session.append(Block.user("more")),
        session.view,
        store.sessions,
    ]
    for act in acts:
        with one_line("was closed"):
            act()
        # Nor does a thread that never read from it open it again.
        with one_line("was closed"), ThreadPoolExecutor(1) as threads:
            threads.submit(act).result()
    store.close()


def test_a_store_closed_under_a_subscription_ends_it(session: StoredSession) -> None:
    recorder = session.log.events.recorder

    with recorder.subscribe(gt=1) as subscription:
        session.append(Block.user("words"))
        assert [next(subscription).id for _ in range(2)] == [2, 3]
        store_of(session).close()

        with pytest.raises(Exception, match="closed"):
            next(subscription)


def test_the_process_s_environment_does_not_reach_the_store(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may configure another application of eventsourcing in the same process."""
    for name, value in (
        ("PERSISTENCE_MODULE", "eventsourcing.popo"),
        ("DATABASE", ":memory:"),
        ("COMPRESSOR_TOPIC", "eventsourcing.compressor:ZlibCompressor"),
        ("MAPPER_TOPIC", "eventsourcing.persistence:Mapper"),
    ):
        monkeypatch.setenv(name, value)

    for blocks in (1, 2):
        with cutbank.open(database) as store:
            store.session("session").append(Block.user("words"))
            assert len(store.session("session").view().entries) == blocks
