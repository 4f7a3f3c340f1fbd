"""Recognizes sessions of pi and of oh-my-pi, and starts reading them."""

from typing import Any

from ..reading.fields import JsonDict
from ..source import TranscriptSource
from .entries import is_valid_id
from .pi_transcript import PiTranscriptReader

PI = "pi"
OH_MY_PI = "oh-my-pi"

_HEADER_FIELDS = {"title", "titleSource", "additionalDirectories", "previousSessionFiles"}
"""Fields that only oh-my-pi's headers have."""
_OH_MY_PI_TYPES = {
    *("archive", "credential_pin", "mode_change", "model_usage", "reset_boundary"),
    *("service_tier_change", "session_init", "title_change", "ttsr_injection"),
}
"""Types of entries that only oh-my-pi has."""


def is_pi(source: TranscriptSource) -> bool:
    return find_header(source) is not None and not _has_signs_of_oh_my_pi(source.first_values)


def is_oh_my_pi(source: TranscriptSource) -> bool:
    """Return whether this is a session of oh-my-pi."""
    return find_header(source) is not None and _has_signs_of_oh_my_pi(source.first_values)


def begin_reading(name: str, source: TranscriptSource) -> PiTranscriptReader:
    header = find_header(source) or {}
    id = header.get("id")
    key = id if isinstance(id, str) and is_valid_id(id) else source.stem
    return PiTranscriptReader(name, key, header)


def find_header(source: TranscriptSource) -> JsonDict | None:
    """Return the header: the first line, or the second after a title line."""
    for value in source.first_values[:2]:
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
            return not _HEADER_FIELDS.isdisjoint(value)
        case {"type": "model_change"}:
            return "model" in value
        case {"type": "custom", "customType": "tool_execution_start" | "session_exit"}:
            return True
        case {"type": str(kind)}:
            return kind == "title" or kind in _OH_MY_PI_TYPES
        case _:
            return False
