"""Packs records into a gzip file that ends with a digest of everything before.

A record is one line of JSON, `[kind, fields, sizes]`, then the bytes that `sizes` counts, then a
newline. `zcat` can read an archive, and large contents are neither escaped nor copied.
"""

import gzip
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from uuid import UUID

from ....domain.errors import ImportFileError
from ...storage.event_log.event_mapper import dump_json, load_json

ARCHIVE_FORMAT = "cutbank-archive"
ARCHIVE_VERSION = 1
_GZIP_MAGIC = b"\x1f\x8b"
_END_RECORD = "end"
MAX_RECORD_LINE_BYTES = 16_000_000
MAX_VALUE_BYTES = 1 << 30
"""The most bytes of a value that the databases can hold."""
_FRAME = 1 << 20
_MAX_PACKED_RATIO = 100
_MAX_UNPACKED_RATIO = 200
"""The largest ratio of unpacked to packed bytes, beyond the first frames."""
_SLACK = 8 * _FRAME


class ArchiveRecord(NamedTuple):
    """One record of an archive; its getters raise ImportFileError if a field is malformed."""

    number: int
    kind: str
    fields: dict[str, Any]
    blobs: tuple[bytes, ...]

    def get_text(self, name: str) -> str:
        found = self.fields.get(name)
        if not isinstance(found, str) or not _is_unicode(found):
            raise self.make_error(f"{name!r} is not text")
        return found

    def get_optional_text(self, name: str) -> str | None:
        return None if self.fields.get(name) is None else self.get_text(name)

    def get_number(self, name: str, least: int = 0) -> int:
        found = self.fields.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found < 1 << 62:
            raise self.make_error(f"{name!r} is not a number from {least} on")
        return found

    def get_bytes(self, name: str) -> bytes:
        try:
            return bytes.fromhex(self.get_text(name))
        except ValueError:
            raise self.make_error(f"{name!r} is not hexadecimal") from None

    def get_uuid(self, name: str) -> UUID:
        try:
            return UUID(self.get_text(name))
        except ValueError:
            raise self.make_error(f"{name!r} is no id") from None

    def get_blob(self, index: int) -> bytes:
        if index >= len(self.blobs):
            raise self.make_error("a content is missing")
        return self.blobs[index]

    def make_error(self, reason: str) -> ImportFileError:
        return ImportFileError(f"record {self.number} ({self.kind}): {reason}")


class SessionHeader(NamedTuple):
    """The start of a session; the items that follow belong to it."""

    namespace: str
    key: str
    is_whole: bool
    """Whether all of the session is in the archive; if not, it is the part that its forks share."""


class StreamHeader(NamedTuple):
    """The start of a stream: its events from `first` to `last` and its append keys follow."""

    session: SessionHeader
    id: UUID
    lineage: str | None
    first: int
    last: int

    @property
    def of_lineage(self) -> str:
        """The words that say in a message to which lineage an event belongs."""
        return f" of its lineage {self.lineage!r}" if self.lineage else ""


class ArchivePacker:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._waiting = bytearray()
        self._hash = sha256()
        self.written = 0
        """The bytes of the file so far."""

    def write_record(self, kind: str, fields: dict[str, Any], *blobs: bytes) -> None:
        head = dump_json([kind, fields, [len(blob) for blob in blobs]])
        for piece in (head, b"\n", *blobs, b"\n"):
            for at in range(0, len(piece), _FRAME):
                self._add(piece[at : at + _FRAME])

    def close(self) -> None:
        """Write the digest of everything so far and flush the buffer."""
        self.write_record(_END_RECORD, {"sha256": self._hash.hexdigest()})
        self._pack()

    def _add(self, piece: bytes) -> None:
        self._hash.update(piece)
        self._waiting += piece
        if len(self._waiting) >= _FRAME:
            self._pack()

    def _pack(self) -> None:
        # Separate frames, so that none packs so well that it looks like a zip bomb.
        raw = bytes(self._waiting)
        packed = _compress(raw, 6)
        if len(raw) > _MAX_PACKED_RATIO * len(packed):
            packed = _compress(raw, 0)
        self.written += self._out.write(packed)
        self._waiting.clear()


class ArchiveUnpacker:
    """Reads records one by one. Raises ImportFileError for anything that no packer writes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacked = gzip.GzipFile(fileobj=file, mode="rb")
        self._hash = sha256()
        self._count = 0
        self._number = 0

    @property
    def offset(self) -> int:
        return self._file.tell()

    def compute_digest(self) -> str:
        return self._hash.hexdigest()

    def read_records(self) -> Iterator[ArchiveRecord]:
        """Yield all records but the last one, whose digest is checked; nothing may follow it."""
        while True:
            expected = self.compute_digest()
            record = self._read_next()
            if record.kind != _END_RECORD:
                yield record
                continue
            if record.fields.get("sha256") != expected:
                raise ImportFileError("it is damaged: its content does not match its digest")
            if self._read_piece(1):
                raise ImportFileError("it is damaged: something follows its end")
            return

    def _read_next(self) -> ArchiveRecord:
        self._number += 1
        line = self._read_line()
        try:
            kind, fields, sizes = load_json(line)
        except (ValueError, TypeError, RecursionError):
            raise self._make_error() from None
        if not (isinstance(kind, str) and isinstance(fields, dict) and isinstance(sizes, list)):
            raise self._make_error()
        record = ArchiveRecord(self._number, kind[:40], fields, ())
        if not all(type(size) is int and 0 <= size <= MAX_VALUE_BYTES for size in sizes):
            raise record.make_error("the sizes of its contents are not possible")
        record = record._replace(blobs=tuple(self._read_exactly(size) for size in sizes))
        if self._read_exactly(1) != b"\n":
            raise record.make_error("does not end where it says")
        return record

    def _read_line(self) -> bytes:
        line = self._read_piece(MAX_RECORD_LINE_BYTES, line=True)
        if not line:
            raise ImportFileError("it is truncated: its end is missing")
        if not line.endswith(b"\n"):
            if len(line) < MAX_RECORD_LINE_BYTES:
                raise ImportFileError("it is truncated: its end is missing")
            raise self._make_error()
        return line

    def _read_exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._read_piece(min(size, _FRAME))
            if not piece:
                raise ImportFileError("it is truncated: its end is missing")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _read_piece(self, size: int, *, line: bool = False) -> bytes:
        try:
            piece = self._unpacked.readline(size) if line else self._unpacked.read(size)
        except EOFError:
            raise ImportFileError("it is truncated: its end is missing") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ImportFileError(f"it is damaged: {error}") from None
        self._hash.update(piece)
        self._count += len(piece)
        if self._count > _MAX_UNPACKED_RATIO * self._file.tell() + _SLACK:
            raise ImportFileError(
                f"it unpacks to more than {_MAX_UNPACKED_RATIO} times its size, as no archive does"
            )
        return piece

    def _make_error(self) -> ImportFileError:
        return ImportFileError(f"record {self._number} is not a record of an archive")


def is_gzip(path: Path) -> bool:
    """Return whether the file is an archive: all other readable formats are plain text."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == _GZIP_MAGIC


def _compress(raw: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(raw) + packer.flush()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
