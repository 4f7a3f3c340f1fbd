"""How an archive lies on the disk: records, in gzip, with a digest over everything at the end.

A record is one line of JSON, `[kind, fields, sizes]`, the bytes that `sizes` counts, and a line
end. So an archive can be read by `zcat`, and large contents are neither escaped nor copied.
"""

import gzip
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from uuid import UUID

from ....domain.errors import ImportFileError
from ...storage.event_log.event_mapper import dumps, loads

GZIP = b"\x1f\x8b"
END = "end"
LONGEST_LINE = 16_000_000
LARGEST_VALUE = 1 << 30
"""Bytes of the largest value that the databases hold."""
_FRAME = 1 << 20
_PACKED_AT_MOST = 100
_UNPACKED_AT_MOST = 200
"""How many times its size an archive unpacks to at most, beyond the first frames."""
_SLACK = 8 * _FRAME


class Record(NamedTuple):
    """One record as it was read: whatever its fields hold, asking for them says what is wrong."""

    number: int
    kind: str
    fields: dict[str, Any]
    blobs: tuple[bytes, ...]

    def text(self, name: str) -> str:
        found = self.fields.get(name)
        if not isinstance(found, str) or not _is_unicode(found):
            raise self.wrong(f"{name!r} is not text")
        return found

    def text_or_none(self, name: str) -> str | None:
        return None if self.fields.get(name) is None else self.text(name)

    def number_of(self, name: str, least: int = 0) -> int:
        found = self.fields.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found < 1 << 62:
            raise self.wrong(f"{name!r} is not a number from {least} on")
        return found

    def hexed(self, name: str) -> bytes:
        try:
            return bytes.fromhex(self.text(name))
        except ValueError:
            raise self.wrong(f"{name!r} is not hexadecimal") from None

    def uuid(self, name: str) -> UUID:
        try:
            return UUID(self.text(name))
        except ValueError:
            raise self.wrong(f"{name!r} is no id") from None

    def blob(self, index: int) -> bytes:
        if index >= len(self.blobs):
            raise self.wrong("a content is missing")
        return self.blobs[index]

    def wrong(self, reason: str) -> ImportFileError:
        return ImportFileError(f"record {self.number} ({self.kind}): {reason}")


class Packer:
    """Writes records; in memory is one frame."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._waiting = bytearray()
        self._hash = sha256()
        self.written = 0
        """Bytes of the file so far."""

    def put(self, kind: str, fields: dict[str, Any], *blobs: bytes) -> None:
        head = dumps([kind, fields, [len(blob) for blob in blobs]])
        for piece in (head, b"\n", *blobs, b"\n"):
            for at in range(0, len(piece), _FRAME):
                self._add(piece[at : at + _FRAME])

    def close(self) -> None:
        """Write the digest over everything so far, and what waits."""
        self.put(END, {"sha256": self._hash.hexdigest()})
        self._pack()

    def _add(self, piece: bytes) -> None:
        self._hash.update(piece)
        self._waiting += piece
        if len(self._waiting) >= _FRAME:
            self._pack()

    def _pack(self) -> None:
        # Frames by themselves, so that no frame packs so well that the whole looks like a bomb.
        raw = bytes(self._waiting)
        packed = _gzipped(raw, 6)
        if len(raw) > _PACKED_AT_MOST * len(packed):
            packed = _gzipped(raw, 0)
        self.written += self._out.write(packed)
        self._waiting.clear()


class Unpacker:
    """Reads records one by one; refuses, in one line, whatever no Packer can have written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacked = gzip.GzipFile(fileobj=file, mode="rb")
        self._hash = sha256()
        self._count = 0
        self._number = 0

    @property
    def offset(self) -> int:
        """Bytes of the file read so far."""
        return self._file.tell()

    def digest(self) -> str:
        """The digest over everything that was read so far."""
        return self._hash.hexdigest()

    def records(self) -> Iterator[Record]:
        """All records but the end's, which is checked: the digest, and that nothing follows."""
        while True:
            expected = self.digest()
            record = self._next()
            if record.kind != END:
                yield record
                continue
            if record.fields.get("sha256") != expected:
                raise ImportFileError("it is damaged: its content does not match its digest")
            if self._piece(1):
                raise ImportFileError("it is damaged: something follows its end")
            return

    def _next(self) -> Record:
        self._number += 1
        line = self._line()
        try:
            kind, fields, sizes = loads(line)
        except (ValueError, TypeError, RecursionError):
            raise self._no_record() from None
        if not (isinstance(kind, str) and isinstance(fields, dict) and isinstance(sizes, list)):
            raise self._no_record()
        record = Record(self._number, kind[:40], fields, ())
        if not all(type(size) is int and 0 <= size <= LARGEST_VALUE for size in sizes):
            raise record.wrong("the sizes of its contents are not possible")
        record = record._replace(blobs=tuple(self._exactly(size) for size in sizes))
        if self._exactly(1) != b"\n":
            raise record.wrong("does not end where it says")
        return record

    def _line(self) -> bytes:
        line = self._piece(LONGEST_LINE, line=True)
        if not line:
            raise ImportFileError("it is truncated: its end is missing")
        if not line.endswith(b"\n"):
            if len(line) < LONGEST_LINE:
                raise ImportFileError("it is truncated: its end is missing")
            raise self._no_record()
        return line

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._piece(min(size, _FRAME))
            if not piece:
                raise ImportFileError("it is truncated: its end is missing")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int, *, line: bool = False) -> bytes:
        try:
            piece = self._unpacked.readline(size) if line else self._unpacked.read(size)
        except EOFError:
            raise ImportFileError("it is truncated: its end is missing") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ImportFileError(f"it is damaged: {error}") from None
        self._hash.update(piece)
        self._count += len(piece)
        if self._count > _UNPACKED_AT_MOST * self._file.tell() + _SLACK:
            raise ImportFileError(
                f"it unpacks to more than {_UNPACKED_AT_MOST} times its size, as no archive does"
            )
        return piece

    def _no_record(self) -> ImportFileError:
        return ImportFileError(f"record {self._number} is not a record of an archive")


def is_gzip(path: Path) -> bool:
    """Whether a file is one that only archives are: everything else that is read is text."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == GZIP


def _gzipped(raw: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(raw) + packer.flush()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
