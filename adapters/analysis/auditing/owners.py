"""Which session recorded an event: what a fork inherits was said by its parent."""

from typing import NamedTuple
from uuid import UUID

from ....domain.session import derive_session_id
from ...storage.event_log.event_store import EventStore


class Owner(NamedTuple):
    """A session by its name."""

    namespace: str
    key: str


def find_owners(store: EventStore, namespace: str, key: str) -> dict[UUID, Owner]:
    """Whose events a session has, by stream: its own, and those of whom it is a fork."""
    found: dict[UUID, Owner] = {}
    at: Owner | None = Owner(namespace, key)
    while at is not None:
        found[derive_session_id(*at)] = at
        fork = store.read_opening(*at).fork
        at = Owner(fork.namespace, fork.key) if fork else None
    return found
