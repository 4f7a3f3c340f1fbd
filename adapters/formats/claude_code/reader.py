"""Reads the transcripts of Claude Code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..json_lines import LONGEST, lines
from ..steps import Step
from .entries import SKIPPED, Item
from .transcript import Transcript


def recognises(first_lines: list[Any]) -> bool:
    """Whether a file that begins with these values is a transcript of Claude Code."""
    return any(_is_entry(value) for value in first_lines)


def read(path: Path, longest: int = LONGEST) -> Iterator[Step]:
    """Yield what the file says, in the order of its lines."""
    transcript = Transcript(_stem(path), _first_said(path, longest))
    for line in lines(path, longest):
        yield from transcript.read(line)
    yield from transcript.close()


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": _}:
            return "parentUuid" in value or "uuid" in value
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "messageId": _}:
            return True
        case {"type": "ai-title" | "custom-title", "sessionId": _}:
            return True
        case {"type": str(kind), "sessionId": _}:
            return kind in SKIPPED
        case _:
            return False


def _stem(path: Path) -> str:
    return path.stem.encode(errors="replace").decode()  # a file may have a name that is no text


def _first_said(path: Path, longest: int) -> Item:
    """The first entry of a conversation: it says whose file this is."""
    for line in lines(path, longest):
        match line.value:
            case {"type": "user" | "assistant", "sessionId": str()}:
                return dict(line.value)
            case _:
                pass
    return {}
