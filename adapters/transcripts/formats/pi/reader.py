"""Tells the sessions of pi from those of oh-my-pi, and begins to read one."""

from typing import Any

from ..reading.fields import Item
from ..source import Source
from .entries import is_name
from .transcript import Transcript

PI = "pi"
OH_MY_PI = "oh-my-pi"

_OF_HEADER = {"title", "titleSource", "additionalDirectories", "previousSessionFiles"}
"""Fields that only oh-my-pi's headers have."""
_OF_OH_MY_PI = {
    *("archive", "credential_pin", "mode_change", "model_usage", "reset_boundary"),
    *("service_tier_change", "session_init", "title_change", "ttsr_injection"),
}
"""Types of entries that only oh-my-pi has."""


def is_pi(source: Source) -> bool:
    """Whether this is a session of pi."""
    return header_of(source) is not None and not _has_signs_of_oh_my_pi(source.first)


def is_oh_my_pi(source: Source) -> bool:
    """Whether this is a session of oh-my-pi."""
    return header_of(source) is not None and _has_signs_of_oh_my_pi(source.first)


def begin(name: str, source: Source) -> Transcript:
    """The reader of a session's lines."""
    header = header_of(source) or {}
    id = header.get("id")
    key = id if isinstance(id, str) and is_name(id) else source.stem
    return Transcript(name, key, header)


def header_of(source: Source) -> Item | None:
    """The line that a session begins with, but for a line that may hold its title."""
    for value in source.first[:2]:
        match value:
            case {"type": "session", "id": str(), "timestamp": str()}:
                return dict(value)
            case {"type": "title"}:
                pass
            case _:
                return None
    return None


def _has_signs_of_oh_my_pi(first: list[Any]) -> bool:
    return any(_is_sign(value) for value in first)


def _is_sign(value: Any) -> bool:
    match value:
        case {"type": "session"}:
            return not _OF_HEADER.isdisjoint(value)
        case {"type": "model_change"}:
            return "model" in value
        case {"type": "custom", "customType": "tool_execution_start" | "session_exit"}:
            return True
        case {"type": str(kind)}:
            return kind == "title" or kind in _OF_OH_MY_PI
        case _:
            return False
