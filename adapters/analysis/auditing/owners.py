"""Finds which session recorded an event: what a fork inherits belongs to its parent."""

from typing import NamedTuple
from uuid import UUID

from ....domain.session import derive_session_id
from ...storage.event_log.event_store import EventStore


class Owner(NamedTuple):
    """The namespace and key of a session."""

    namespace: str
    key: str


def find_owners(store: EventStore, namespace: str, key: str) -> dict[UUID, Owner]:
    """Return the owner of each stream of a session: itself, and its fork parents."""
    found: dict[UUID, Owner] = {}
    at: Owner | None = Owner(namespace, key)
    while at is not None:
        found[derive_session_id(*at)] = at
        fork = store.read_opening(*at).fork
        at = Owner(fork.namespace, fork.key) if fork else None
    return found
