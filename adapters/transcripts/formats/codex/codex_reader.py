"""Recognizes Codex rollouts, and starts reading them."""

from typing import Any

from ..source import TranscriptSource
from .codex_transcript import CodexTranscriptReader

_LINE_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def begin_reading(source: TranscriptSource) -> CodexTranscriptReader:
    return CodexTranscriptReader(source)


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": str(kind), "payload": dict(), "timestamp": _}:
            return kind in _LINE_TYPES
        case {"id": str(), "timestamp": str(), "instructions": _}:
            return "type" not in value
        case {"record_type": "state"}:
            return True
        case _:
            return False
