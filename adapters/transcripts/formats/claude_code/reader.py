"""Tells the transcripts of Claude Code, and begins to read one."""

from typing import Any

from ..reading.fields import Item
from ..source import Source
from .entries import KEPT, SKIPPED
from .transcript import Transcript


def recognises(source: Source) -> bool:
    """Whether this is a transcript of Claude Code."""
    return any(_is_entry(value) for value in source.first)


def begin(source: Source) -> Transcript:
    """The reader of a transcript's lines."""
    return Transcript(source.stem, _first_said(source))


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": _}:
            return "parentUuid" in value or "uuid" in value
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "messageId": _}:
            return True
        case {"type": "ai-title" | "custom-title", "sessionId": _}:
            return True
        case {"type": str(kind), "sessionId": _}:
            return kind in SKIPPED or kind in KEPT
        case _:
            return False


def _first_said(source: Source) -> Item:
    """The first entry of a conversation: it says whose file this is."""
    for line in source.lines():
        match line.value:
            case {"type": "user" | "assistant", "sessionId": str()}:
                return dict(line.value)
            case _:
                pass
    return {}
