"""What listeners hear of compactions."""

import pytest

from cutbank import SessionStore
from cutbank.domain.hooks import CompactionEvent


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    """All that is told of compactions in the store."""
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard
