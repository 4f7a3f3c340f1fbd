"""A store in which all happened that an archive has to hold, and a second database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clock import Clock
from story_of_archives import tell

import cutbank
from cutbank import SessionStore


@pytest.fixture
def told(store: SessionStore) -> SessionStore:
    tell(store)
    return store


@pytest.fixture
def elsewhere(tmp_path: Path, clock: Clock) -> Iterator[SessionStore]:
    with cutbank.open(tmp_path / "elsewhere.db", clock=clock) as store:
        yield store
