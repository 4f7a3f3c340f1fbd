"""What listeners hear of compactions."""

import pytest

from cutbank import CompactionEvent, SessionStore


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    """Every compaction event of the store."""
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard
