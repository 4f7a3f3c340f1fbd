"""A program that has configured OpenTelemetry."""

from collections.abc import Iterator

import pytest
from opentelemetry import metrics, trace
from telemetry_seen import Seen

from cutbank import Block, StoredSession


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """What is told to the providers of this test; a process can set its own only once."""
    seen = Seen()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: seen.tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: seen.meters)
    yield seen
    seen.close()


@pytest.fixture
def talk(session: StoredSession) -> StoredSession:
    """A session over the threshold, in which each word is a secret."""
    for turn in range(20):
        session.append(Block.user(f"sesame {turn} " + "sesame " * 60))
        session.append(Block.assistant(f"sesame {turn} " + "sesame " * 60))
    return session
