"""Shortens a large tool result to its two ends, and shows more of the end that says more."""

from enum import StrEnum

from .session_events import Ends
from .token_estimate import CHARS_PER_TOKEN


class OutputKind(StrEnum):
    """The kind of a tool's output, guessed from its text."""

    CODE = "Code"
    LOG = "Log"
    TEXT = "Text"


_HEAD_SHARES = {OutputKind.CODE: 0.7, OutputKind.LOG: 0.4, OutputKind.TEXT: 0.5}
"""The beginning's share of the shown text: most of it for code, less for a log."""
MIN_SHOWN_TOKENS = 100
"""The least tokens that are shown of any answer when large ones are shortened."""
_SMALL_BYTES = 100
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_CODE_CHARACTERS = "{}[]();:"
_CODE_SHARE = 0.02
"""The share of code's own characters that marks a text as code."""


def detect_output_kind(text: str) -> OutputKind:
    """Return LOG for a text with dates and levels, CODE for one with brackets, otherwise TEXT."""
    if "20" in text and ":" in text and any(level in text for level in _LEVELS):
        return OutputKind.LOG
    if text and sum(map(text.count, _CODE_CHARACTERS)) > _CODE_SHARE * len(text):
        return OutputKind.CODE
    return OutputKind.TEXT


def find_ends(text: str, most_tokens: int) -> Ends | None:
    """Return the ends to show of a text with more than `most_tokens`; None if it has no more.

    Tokens are counted as four bytes each, and characters are never split.
    """
    whole = _encode(text)
    if _convert_bytes(len(whole)) <= most_tokens or len(whole) < _SMALL_BYTES:
        return None
    room = len(whole) * most_tokens // _convert_bytes(len(whole))
    head = int(room * _HEAD_SHARES[detect_output_kind(text)])
    tail = len(whole) - (room - head)
    while _is_inside(whole, head):
        head -= 1
    while _is_inside(whole, tail):
        tail += 1
    return Ends(head=_count_characters(whole[:head]), tail=_count_characters(whole[tail:]))


def count_byte_tokens(text: str) -> int:
    return _convert_bytes(len(_encode(text)))


def _convert_bytes(size: int) -> int:
    return -(-size // CHARS_PER_TOKEN)


def _is_inside(whole: bytes, at: int) -> bool:
    """Check whether the byte continues a character, as its first bits show."""
    return 0 < at < len(whole) and whole[at] & 0b1100_0000 == 0b1000_0000


def _count_characters(part: bytes) -> int:
    return len(part.decode("utf-8", "surrogatepass"))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
