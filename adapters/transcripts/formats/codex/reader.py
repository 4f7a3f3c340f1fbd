"""Tells the rollouts of Codex, and begins to read one."""

from typing import Any

from ..source import Source
from .transcript import Transcript

_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def recognises(source: Source) -> bool:
    """Whether this is a rollout of Codex."""
    return any(_is_entry(value) for value in source.first)


def begin(source: Source) -> Transcript:
    """The reader of a rollout's lines."""
    return Transcript(source)


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": str(kind), "payload": dict(), "timestamp": _}:
            return kind in _LINES
        case {"id": str(), "timestamp": str(), "instructions": _}:
            return "type" not in value
        case {"record_type": "state"}:
            return True
        case _:
            return False
