"""Cuts the bytes of a source into segments to keep, and reads them back."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from ....domain.errors import StorageError
from .log_tables import Segment, SegmentDigests

_DIGEST_BYTES = 16
SEGMENT_BYTES = 1_000_000
"""A segment ends with the line that reaches this size, or with a transaction."""


class SourceLocation(NamedTuple):
    """Where a line is kept: its segment's digest in hex, and its bytes there."""

    segment: str
    span: tuple[int, int]


class SourceKeeper:
    """Collects a source's bytes while it is read."""

    def __init__(self) -> None:
        self.digests = b""
        """The digests of all segments so far, one after the other."""
        self._open: list[bytes] = []
        self._open_size = 0
        self._segments: list[Segment] = []
        self._line_starts = array("Q")
        """Where each line begins in the source."""
        self._segment_starts = array("Q")
        self._end = 0

    def add_line(self, number: int, raw: bytes) -> None:
        """Keep a line, or more of the last one. A line that was left out is kept empty."""
        while len(self._line_starts) < number:
            self._line_starts.append(self._end)
            if len(self._line_starts) < number:
                self.add(b"\n")
        self.add(raw)
        if self._open_size >= SEGMENT_BYTES:
            self._close_segment()

    def add(self, raw: bytes) -> None:
        self._open.append(raw)
        self._open_size += len(raw)
        self._end += len(raw)

    def add_all(self, pieces: Iterable[bytes]) -> None:
        """Keep a source that has no lines."""
        for piece in pieces:
            self.add(piece)
            if self._open_size >= SEGMENT_BYTES:
                self._close_segment()

    def take_segments(self) -> list[Segment]:
        """Return the segments since the last call, the last one with all that was read."""
        self._close_segment()
        taken, self._segments = self._segments, []
        return taken

    def find_line(self, number: int | None) -> SourceLocation | None:
        """Return where a line is kept, in the segments that were taken; None for no line."""
        if number is None or not 0 < number <= len(self._line_starts):
            return None
        start = self._line_starts[number - 1]
        ends = self._line_starts
        end = ends[number] if number < len(ends) else self._end
        index = bisect_right(self._segment_starts, start) - 1
        digest = self.digests[index * _DIGEST_BYTES : (index + 1) * _DIGEST_BYTES]
        base = self._segment_starts[index]
        return SourceLocation(digest.hex(), (start - base, end - base))

    def _close_segment(self) -> None:
        if not self._open_size:
            return
        import zstandard  # noqa: PLC0415 - start-up time

        plain = b"".join(self._open)
        digest = digest_segment(plain)
        self._segment_starts.append(self._end - len(plain))
        self.digests += digest
        self._segments.append(Segment(digest, zstandard.compress(plain)))
        self._open, self._open_size = [], 0


def digest_segment(plain: bytes) -> bytes:
    return blake2b(plain, digest_size=_DIGEST_BYTES).digest()


def list_digests(segments: SegmentDigests) -> list[bytes]:
    return [segments[at : at + _DIGEST_BYTES] for at in range(0, len(segments), _DIGEST_BYTES)]


def read_segments(digests: Iterable[bytes], select: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the bytes of a kept source, a segment at a time.

    `select` returns a segment's stored content. Raises StorageError if one is damaged.
    """
    for digest in digests:
        yield decompress_segment(digest, select(digest))


def decompress_segment(digest: bytes, content: bytes) -> bytes:
    """Return a segment's bytes. Raises StorageError if they are damaged."""
    import zstandard  # noqa: PLC0415 - start-up time

    try:
        plain = zstandard.decompress(content)
    except zstandard.ZstdError as error:
        raise StorageError(f"segment {digest.hex()} is damaged: {error}") from None
    if digest_segment(plain) != digest:
        raise StorageError(f"segment {digest.hex()} is damaged: its content was changed")
    return plain
