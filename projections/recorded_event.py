"""An event as it stands in the log, with what the store measured when it was recorded."""

from dataclasses import dataclass

from ..domain.event import Event


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One stored event of a session."""

    position: int
    event: Event
    tokens: int
    """Tokens of the block it stands for, estimated or calibrated; 0 for other events."""
    digest: bytes
    """Keyed hash of the event as stored; two blocks with one digest are the same block."""
    ratio: float = 1.0
    """Tokens that the model makes of one estimated token of the block."""
