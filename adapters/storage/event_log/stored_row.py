"""An event as the database holds it: eventsourcing's StoredEvent, and what cutbank keeps beside."""

from typing import NamedTuple, Protocol
from uuid import UUID


class StoredEventLike(Protocol):
    """What an event is read from: a row of the log, or a notification of one."""

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
    """A large piece of content, kept once for each subject."""

    hash: bytes
    """Keyed hash of the plaintext."""
    content: bytes


class StoredRow(NamedTuple):
    """One row of the log; has what eventsourcing's mappers and recorders ask a StoredEvent for.

    A named tuple: an append makes one, and a frozen dataclass of ten fields takes 2 us.
    """

    originator_id: UUID
    originator_version: int
    topic: str
    state: bytes
    subject: str
    key_id: str | None
    tokens: int
    """Estimated tokens of the block that the event stands for; 0 for other events."""
    digest: bytes
    """Keyed hash of the state as plaintext."""
    carried: bytes
    """The aggregate's state after the event, as JSON."""
    bodies: tuple[StoredContent, ...] = ()
    """Content that the state refers to and that may have to be stored with it."""
