"""Defines an event as the database holds it: a StoredEvent with cutbank's own columns."""

from typing import NamedTuple, Protocol
from uuid import UUID


class StoredEventLike(Protocol):
    """What an event can be read from: a row of the log, or a notification."""

    @property
    def originator_id(self) -> UUID | str: ...
    @property
    def originator_version(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def state(self) -> bytes: ...
    @property
    def subject(self) -> str: ...
    @property
    def key_id(self) -> str | None: ...


class StoredContent(NamedTuple):
    hash: bytes
    """Keyed hash of the plaintext."""
    content: bytes


class StoredRow(NamedTuple):
    """One row of the log, with the fields that eventsourcing expects of a StoredEvent.

    A named tuple, since every append makes one and a frozen dataclass of ten fields takes 2 us.
    """

    originator_id: UUID
    originator_version: int
    topic: str
    state: bytes
    subject: str
    key_id: str | None
    tokens: int
    """Estimated tokens of the event's block; 0 for other events."""
    digest: bytes
    """Keyed hash of the state as plaintext."""
    carried: bytes
    """The aggregate's state after the event, as JSON."""
    bodies: tuple[StoredContent, ...] = ()
    """Content that the state refers to and that may not be stored yet."""
