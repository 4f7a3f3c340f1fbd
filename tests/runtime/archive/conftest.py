"""A session in which all happened that an archive has to hold, and a second database."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from clock import Clock
from story_of_archives import tell

import cutbank
from cutbank import SessionStore


@pytest.fixture
def told(store: SessionStore) -> SessionStore:
    """A store in which everything happened."""
    tell(store)
    return store


@pytest.fixture
def engine() -> str:
    """Only the archive that goes to a server and back needs one."""
    return "sqlite"


@pytest.fixture
def elsewhere(tmp_path: Path, clock: Clock) -> Iterator[SessionStore]:
    """An empty database, in a file."""
    with cutbank.open(tmp_path / "elsewhere.db", clock=clock) as store:
        yield store


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A database of an earlier version, in which all happened that could happen then."""
    dump = max(Path(__file__).parents[2].glob("storage/golden/*.sql"))
    path = tmp_path / "golden.db"
    connection = sqlite3.connect(path)
    connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()
    return path
