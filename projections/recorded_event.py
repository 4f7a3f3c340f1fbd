"""Defines an event of the log with the measurements that the store recorded with it."""

from dataclasses import dataclass

from ..domain.event import Event


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    position: int
    event: Event
    tokens: int
    """Tokens of its block, estimated or calibrated; 0 for other events."""
    digest: bytes
    """Keyed hash of the event as stored; blocks with equal digests are equal."""
    ratio: float = 1.0
    """The model's tokens for one estimated token of the block."""
