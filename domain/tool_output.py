"""How much of a large tool result is shown: its two ends, and more of the one that tells more."""

from dataclasses import dataclass
from enum import StrEnum

from .session_events import Ends
from .token_budget import CHARS_PER_TOKEN


class OutputKind(StrEnum):
    """What a tool has answered with, as far as can be told by looks."""

    CODE = "Code"
    LOG = "Log"
    TEXT = "Text"


HEADS = {OutputKind.CODE: 0.7, OutputKind.LOG: 0.4, OutputKind.TEXT: 0.5}
"""The part of what is shown that is the beginning: of code most of it, of a log the less."""
MOST_TOKENS = 25_000
"""Of one result, by the document."""
LEAST_SHOWN = 100
"""Tokens of any answer that are shown, if somebody wants large ones shortened."""
SMALL = 100
"""Bytes below which nothing is shortened."""
FUSE = 100_000
"""Bytes that no result may have, however its tokens are counted."""
FUSE_MARK = "\n[... content truncated by byte fuse ...]"
_FUSE_ROOM = 50
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_OF_CODE = "{}[]();:"
_MUCH = 0.02
"""Part of a text that code's own characters take in code."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A result as it is shown, and what was taken out of it."""

    content: str
    kind: OutputKind
    original_bytes: int
    lines_removed: int = 0
    was_truncated: bool = False

    @property
    def result_bytes(self) -> int:
        return len(_bytes(self.content))

    @property
    def original_tokens(self) -> int:
        return _tokens(self.original_bytes)

    @property
    def tokens_saved(self) -> int:
        return max(0, self.original_tokens - _tokens(self.result_bytes))


def kind_of(text: str) -> OutputKind:
    """A log has dates and levels, code has brackets; what has neither is text."""
    if "20" in text and ":" in text and any(level in text for level in _LEVELS):
        return OutputKind.LOG
    if text and sum(map(text.count, _OF_CODE)) > _MUCH * len(text):
        return OutputKind.CODE
    return OutputKind.TEXT


def ends_within(text: str, most_tokens: int) -> Ends | None:
    """What to show of a text that takes more than so many tokens; None where it takes no more.

    Tokens are counted as four bytes each, and characters are never split.
    """
    whole = _bytes(text)
    if _tokens(len(whole)) <= most_tokens or len(whole) < SMALL:
        return None
    room = len(whole) * most_tokens // _tokens(len(whole))
    head = int(room * HEADS[kind_of(text)])
    tail = len(whole) - (room - head)
    while _is_inside(whole, head):
        head -= 1
    while _is_inside(whole, tail):
        tail += 1
    return Ends(head=_characters(whole[:head]), tail=_characters(whole[tail:]))


def shortened(text: str, most_tokens: int = MOST_TOKENS) -> Shortened:
    """A result as the document's program puts it into a conversation."""
    kind, size = kind_of(text), len(_bytes(text))
    ends = ends_within(text, most_tokens)
    if ends is None:
        result = Shortened(text, kind, size)
    else:
        tail_at = len(text) - ends.tail
        lines = _lines(text[ends.head : tail_at])
        mark = f"\n\n[... {lines} lines truncated ...]\n\n"
        content = text[: ends.head].rstrip() + mark + text[tail_at:].lstrip()
        result = Shortened(content, kind, size, lines, was_truncated=True)
    return _fused(result) if result.result_bytes > FUSE else result


def _fused(result: Shortened) -> Shortened:
    whole, end = _bytes(result.content), FUSE - _FUSE_ROOM
    while _is_inside(whole, end):
        end -= 1
    shown, left_out = _text(whole[:end]), _text(whole[end:])
    return Shortened(
        shown + FUSE_MARK, result.kind, len(whole), _lines(left_out), was_truncated=True
    )


def tokens_of(text: str) -> int:
    """Tokens of a text, by its bytes."""
    return _tokens(len(_bytes(text)))


def _tokens(size: int) -> int:
    return -(-size // CHARS_PER_TOKEN)


def _lines(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))


def _is_inside(whole: bytes, at: int) -> bool:
    """Whether a character goes on there: all but the first of its bytes begin with these bits."""
    return 0 < at < len(whole) and whole[at] & 0b1100_0000 == 0b1000_0000


def _characters(part: bytes) -> int:
    return len(_text(part))


def _text(part: bytes) -> str:
    return part.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
