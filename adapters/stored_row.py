"""An event as the database holds it: a StoredEvent, and what cutbank keeps beside it."""

from dataclasses import dataclass

from eventsourcing.persistence import StoredEvent


@dataclass(frozen=True)
class Body:
    """A large piece of content, kept once for each subject."""

    hash: bytes
    """Keyed hash of the plaintext."""
    content: bytes


@dataclass(frozen=True)
class StoredRow(StoredEvent):
    """One row of the log."""

    subject: str
    key_id: str | None
    tokens: int
    """Estimated tokens of the block that the event stands for; 0 for other events."""
    digest: bytes
    """Keyed hash of the state as plaintext."""
    carried: bytes
    """The aggregate's state after the event, as JSON."""
    bodies: tuple[Body, ...] = ()
    """Content that the state refers to and that may have to be stored with it."""
