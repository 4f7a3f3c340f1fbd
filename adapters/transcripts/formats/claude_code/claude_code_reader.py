"""Recognizes Claude Code transcripts, and starts reading them."""

from typing import Any

from ..reading.fields import JsonDict
from ..source import TranscriptSource
from .claude_code_transcript import ClaudeTranscriptReader
from .entries import KEPT_ENTRY_TYPES, SKIPPED_ENTRY_TYPES


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def begin_reading(source: TranscriptSource) -> ClaudeTranscriptReader:
    return ClaudeTranscriptReader(source.stem, _find_first_entry(source))


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": _}:
            return "parentUuid" in value or "uuid" in value
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "messageId": _}:
            return True
        case {"type": "ai-title" | "custom-title", "sessionId": _}:
            return True
        case {"type": str(kind), "sessionId": _}:
            return kind in SKIPPED_ENTRY_TYPES or kind in KEPT_ENTRY_TYPES
        case _:
            return False


def _find_first_entry(source: TranscriptSource) -> JsonDict:
    """Return the first entry of a conversation, which identifies the session."""
    for line in source.read_lines():
        match line.value:
            case {"type": "user" | "assistant", "sessionId": str()}:
                return dict(line.value)
            case _:
                pass
    return {}
