"""Fixtures for the claims about a running agent."""

import pytest

from cutbank import CompactionEvent, SessionStore


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    """The events that the store's listeners were sent."""
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard
