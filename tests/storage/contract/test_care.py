"""The storage of a log is looked after by one at a time, and no content is changed."""

from typing import Any

import pytest
from databases import asked, connected_to
from log_rows import ONE, Change, row

import cutbank
from cutbank import SessionStore
from cutbank.adapters.storage.event_log.recorder import Recorder
from cutbank.adapters.storage.event_log.stored_row import (
    RecompressedBody,
    StoredBody,
    StoredContent,
)

LONG = b"long " * 900


@pytest.fixture
def elsewhere(store: SessionStore, database: str) -> Any:
    """The same log, as another process has it."""
    del store  # which is opened first
    with cutbank.open(database) as other:
        yield other.events.recorder


@pytest.fixture
def body(recorder: Recorder) -> StoredBody:
    recorder.insert_events([row(ONE, 1, bodies=(StoredContent(b"hash", LONG),))])
    found = recorder.select_stored_body("a subject", b"hash")
    assert found
    return found


def test_records_are_kept_for_every_process(recorder: Recorder, elsewhere: Recorder) -> None:
    for chore, record in (("bodies", "first"), ("bodies", "second")):
        recorder.save_record(chore, record)
    elsewhere.save_record("backup", "its record")

    for one in (recorder, elsewhere):
        assert one.read_records() == {"bodies": "second", "backup": "its record"}


def test_one_at_a_time_looks_after_a_log_and_others_after_others(
    recorder: Recorder, elsewhere: Recorder, database: str
) -> None:
    end = "%20too" if "://" in database else " too"
    with cutbank.open(f"{database}{end}") as another, recorder.try_lock() as first:
        other = another.events.recorder
        with elsewhere.try_lock() as second, other.try_lock() as third:
            assert (first, second, third) == (True, False, True)
        if "://" in database:
            with connected_to(f"{database}{end}") as server:
                server.execute("SELECT pg_advisory_unlock_all()")
                schema = asked(another, "SELECT current_schema()")[0][0]
                server.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
    with elsewhere.try_lock() as after:
        assert after


def test_bodies_and_their_record_are_stored_together_or_not_at_all(
    recorder: Recorder, body: StoredBody
) -> None:
    recorder.save_record("bodies", "before")

    with pytest.raises(Exception, match=r".+"):  # each database has an error of its own
        recorder.replace_bodies([RecompressedBody(body, b"short")], "bodies", None)  # type: ignore[arg-type]

    assert recorder.select_body("a subject", b"hash") == LONG
    assert recorder.read_records() == {"bodies": "before"}


def test_what_is_in_cipher_is_not_looked_after(
    recorder: Recorder, body: StoredBody, change: Change
) -> None:
    change("UPDATE bodies SET key_id = 'k'")

    assert recorder.select_stored_body("a subject", b"hash") is None
    assert recorder.replace_bodies([RecompressedBody(body, b"short")], "bodies", "r") == 0
    assert recorder.select_body("a subject", b"hash") == LONG
    assert recorder.select_stored_body("a subject", b"no such hash") is None
