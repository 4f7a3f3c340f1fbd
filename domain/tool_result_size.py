"""Shortens a large tool result to its two ends, and shows more of the end that says more."""

from dataclasses import dataclass
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
_MAX_TOKENS = 25_000
"""The document's limit for one result."""
MIN_SHOWN_TOKENS = 100
"""The least tokens that are shown of any answer when large ones are shortened."""
_SMALL_BYTES = 100
_MAX_BYTES = 100_000
"""The most bytes of a result, however its tokens are counted."""
_FUSE_MARK = "\n[... content truncated by byte fuse ...]"
_FUSE_ROOM = 50
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_CODE_CHARACTERS = "{}[]();:"
_CODE_SHARE = 0.02
"""The share of code's own characters that marks a text as code."""


@dataclass(frozen=True, slots=True)
class TruncatedResult:
    """A result as it is shown, with the size of the part that was removed."""

    content: str
    kind: OutputKind
    original_bytes: int
    lines_removed: int = 0
    was_truncated: bool = False

    @property
    def result_bytes(self) -> int:
        return len(_encode(self.content))

    @property
    def original_tokens(self) -> int:
        return _convert_bytes(self.original_bytes)

    @property
    def tokens_saved(self) -> int:
        return max(0, self.original_tokens - _convert_bytes(self.result_bytes))


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


def truncate_result(text: str, most_tokens: int = _MAX_TOKENS) -> TruncatedResult:
    """Return a result as the document's program puts it into a conversation."""
    kind, size = detect_output_kind(text), len(_encode(text))
    ends = find_ends(text, most_tokens)
    if ends is None:
        result = TruncatedResult(text, kind, size)
    else:
        tail_at = len(text) - ends.tail
        lines = _count_lines(text[ends.head : tail_at])
        mark = f"\n\n[... {lines} lines truncated ...]\n\n"
        content = text[: ends.head].rstrip() + mark + text[tail_at:].lstrip()
        result = TruncatedResult(content, kind, size, lines, was_truncated=True)
    return _apply_byte_limit(result) if result.result_bytes > _MAX_BYTES else result


def _apply_byte_limit(result: TruncatedResult) -> TruncatedResult:
    whole, end = _encode(result.content), _MAX_BYTES - _FUSE_ROOM
    while _is_inside(whole, end):
        end -= 1
    shown, left_out = _decode(whole[:end]), _decode(whole[end:])
    return TruncatedResult(
        shown + _FUSE_MARK, result.kind, len(whole), _count_lines(left_out), was_truncated=True
    )


def count_byte_tokens(text: str) -> int:
    return _convert_bytes(len(_encode(text)))


def _convert_bytes(size: int) -> int:
    return -(-size // CHARS_PER_TOKEN)


def _count_lines(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))


def _is_inside(whole: bytes, at: int) -> bool:
    """Check whether the byte continues a character, as its first bits show."""
    return 0 < at < len(whole) and whole[at] & 0b1100_0000 == 0b1000_0000


def _count_characters(part: bytes) -> int:
    return len(_decode(part))


def _decode(part: bytes) -> str:
    return part.decode("utf-8", "surrogatepass")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
