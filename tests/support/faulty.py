"""What tests of faults share: how an error has to read, what was said, and a sound log."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutbank import SessionStore, StorageError, StoredSession, verify
from cutbank.domain.event import load_state
from cutbank.domain.session import Session, SessionState


@contextmanager
def one_line(*words: str) -> Iterator[None]:
    """What is refused is refused as a StorageError of one line that says these words."""
    with pytest.raises(StorageError) as raised:
        yield
    message = str(raised.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert "secret" not in message


def texts(session: StoredSession) -> list[str]:
    return [block.block.text for block in session.recall(search="")]


@contextmanager
def closing(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def check_log(store: SessionStore) -> None:
    """Positions have no gap, and the state beside every event is what the events make it."""
    events = store.events
    for session in store.sessions():
        rows = events.recorder.select_events(session.log.id)
        assert [row.originator_version for row in rows] == list(range(1, len(rows) + 1))
        folded = Session(
            session.log.id, version=0, state=SessionState(), subject="", clock=events.clock
        )
        for row in rows:
            folded.evolve(events.mapper.to_domain_event(row))
            head = events.recorder.select_head(session.log.id, row.originator_version)
            assert head is not None
            assert load_state(SessionState, head[1]) == folded.state
        cached = events.load_session(session.namespace, session.key)
        assert cached is not None
        assert cached.version <= len(rows)
        if cached.version == len(rows):
            assert cached.state == folded.state
    assert verify(store).violations == []
