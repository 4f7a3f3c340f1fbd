"""Fixtures that many tests share: stores on a temporary file, a clock that is told the time."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import cutbank

settings.register_profile(
    "default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


class Clock:
    """A clock that moves a second at each look, and where it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[cutbank.SessionStore]:
    with cutbank.open(tmp_path / "test.db", clock=clock) as store:
        yield store


@pytest.fixture
def session(store: cutbank.SessionStore) -> cutbank.StoredSession:
    return store.session("a session")


def _shared_folder(variable: str) -> Path:
    if not (folder := os.environ.get(variable)):
        pytest.skip(f"{variable} is not set: it names the folder of shared data to test with")
    return Path(folder)


@pytest.fixture
def shared_sessions() -> Path:
    """Real transcripts; tests must pass on any folder of that shape."""
    return _shared_folder("CUTBANK_SESSIONS")
