"""Opens one transcript: a file of lines, one JSON document, plain text, or a folder."""

import tarfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from ....domain.cached_property import cached_property
from .json_lines import (
    MAX_LINE_BYTES,
    KeepLine,
    LineFile,
    NestedTooDeeplyError,
    SourceLine,
    parse_line,
)

MAX_DOCUMENT_BYTES = MAX_LINE_BYTES
"""Bytes of the largest file that is read whole: a JSON document, or plain text."""
FIRST_LINE_COUNT = 32
_PIECE_BYTES = 1 << 20


class RedactValue(Protocol):
    """A function that removes secrets: it returns the same object, or one without them."""

    def __call__(self, line: int, value: Any, member: str = "") -> Any:
        """Redact a value. `line` is its line number, or 0 for a preview; `member` is the name of a
        folder's file. A text begins at the line.
        """
        ...


class TranscriptSource:
    """A transcript to recognize and read. What recognition read is cached."""

    def __init__(
        self, path: Path, *, longest: int = MAX_LINE_BYTES, redact: RedactValue | None = None
    ) -> None:
        self.path = path
        self.longest = longest
        self.redact = redact
        self.keep: KeepLine | None = None
        """Keeps the bytes of each line that is imported."""

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def stem(self) -> str:
        stem = self.path.stem.encode(errors="replace").decode()
        return str(self.redact(0, stem)) if self.redact else stem

    @property
    def size(self) -> int:
        """Bytes of the file, or of all files of the folder."""
        if self.is_folder:
            return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        return self.path.stat().st_size

    @cached_property
    def first_values(self) -> list[Any]:
        if self.is_folder:
            return []
        parsed = [parse_line(raw) for raw in self._read_first_raws()]
        read = [self.redact_line(replace(line, number=0)) for line in parsed]
        return [line.value for line in read if line.problem is None]

    def _read_first_raws(self) -> list[bytes]:
        """Return the first lines that are not blank, up to one that is too long."""
        raws: list[bytes] = []
        with self.path.open("rb") as file:
            while len(raws) < FIRST_LINE_COUNT and (raw := file.readline(self.longest + 1)):
                if len(raw) > self.longest and not raw.endswith(b"\n"):
                    break
                if body := raw.removeprefix(BOM_UTF8).strip():
                    raws.append(body)
        return raws

    @cached_property
    def first_line(self) -> Any:
        """The value of the first line; None if it is not JSON, as in a multi-line document.

        Lines in `first_values` need not begin the file, since a document also contains JSON lines.
        """
        raws = [] if self.is_folder else self._read_first_raws()
        return parse_line(raws[0]).value if raws else None

    def read_lines(self, keep: KeepLine | None = None) -> Iterator[SourceLine]:
        """Yield each line that is not blank, without secrets; pass all lines to `keep`."""
        with self.path.open("rb") as file:
            yield from self.read_from(LineFile(file, self.longest), lambda _: True, keep)

    def read_from(
        self,
        lines: LineFile,
        accepts: Callable[[SourceLine | None], bool] | None,
        keep: KeepLine | None,
    ) -> Iterator[SourceLine]:
        """Yield the next lines of the open file, without secrets; see `LineFile.read`."""
        for line in lines.read(accepts, None if self.redact else keep):
            redacted = self.redact_line(line)
            if self.redact and keep:
                keep(redacted.number, redacted.raw + b"\n")
            yield redacted

    @cached_property
    def document(self) -> SourceLine | None:
        """The file as one JSON document; None for other files.

        It is a line with its value, or the problem with it. Its offset is the file's end.
        """
        if self.is_folder or not self._is_json_like:
            return None
        first = self.first_values
        if len(first) > 1 and all(isinstance(value, dict) for value in first):
            return None  # a file of lines
        size = self.path.stat().st_size
        if size > MAX_DOCUMENT_BYTES:
            too_large = f"a JSON document of more than {MAX_DOCUMENT_BYTES:,} bytes"
            return SourceLine(1, size, problem=too_large)
        return self.redact_line(parse_line(self._read_all(), end=size))

    def read_whole(self) -> Iterator[bytes]:
        """Yield all bytes of the file, or of the folder as an archive, without secrets."""
        if self.is_folder:
            yield pack_files(self._read_files())
        elif self.redact is None:
            with self.path.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    yield piece
        elif self.document:
            yield self.document.raw
        elif self.first_values:
            yield from (line.raw + b"\n" for line in self.read_lines())
        else:
            yield (self.text or "").encode()

    @cached_property
    def text(self) -> str | None:
        """The file as plain text; None if it is not UTF-8, or too large."""
        if self.is_folder or self.path.stat().st_size > MAX_DOCUMENT_BYTES:
            return None
        try:
            text = self._read_all().decode()
        except UnicodeDecodeError:
            return None
        return str(self.redact(1, text)) if self.redact else text

    def read_member(self, name: str) -> SourceLine:
        """Read a file of the folder as one JSON document. Raises OSError if it cannot be read."""
        file = self.path / name
        size = file.stat().st_size
        if size > self.longest:
            return SourceLine(1, size, problem=f"{name}: longer than {self.longest:,} bytes")
        raw = file.read_bytes().removeprefix(BOM_UTF8).strip()
        return self.redact_line(parse_line(raw, end=size), name)

    def redact_line(self, line: SourceLine, member: str = "") -> SourceLine:
        """Return the line without its secrets, if redaction is on."""
        if self.redact is None:
            return line
        if line.problem:
            return self._redact_text(line)
        try:
            value = self.redact(line.number, line.value, member)
            if value is line.value:
                return line
            # It keeps its name without redaction, since it is the same line.
            raw = line.to_json(value).encode()
            return replace(line, value=value, raw=raw, source_name=line.digest)
        except (RecursionError, NestedTooDeeplyError):
            problem = "nested too deeply to look for secrets in"
            return self._redact_text(replace(line, problem=problem, value=None))

    def _redact_text(self, line: SourceLine) -> SourceLine:
        assert self.redact is not None
        try:
            text = str(self.redact(line.number, line.text))
        except RecursionError:
            text = ""  # not kept: a secret may be in it
        if text == line.text:
            return line
        return replace(line, raw=text.encode(), source_name=line.digest)

    @cached_property
    def _is_json_like(self) -> bool:
        with self.path.open("rb") as file:
            head = file.read(4096).removeprefix(BOM_UTF8).lstrip()
        return head[:1] in (b"{", b"[")

    def _read_all(self) -> bytes:
        return self.path.read_bytes().removeprefix(BOM_UTF8).strip()

    def _read_files(self) -> Iterator[tuple[str, bytes]]:
        for file in sorted(one for one in self.path.rglob("*") if one.is_file()):
            name = file.relative_to(self.path).as_posix()
            yield name, self.read_member(name).raw if self.redact else file.read_bytes()


def pack_files(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return files as a tar archive, without owners and times."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, BytesIO(content))
    return packed.getvalue()


def unpack_files(packed: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a packed folder: each relative path, with `/`, and its bytes."""
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        for info in archive:
            if (file := archive.extractfile(info)) is not None:
                yield info.name, file.read()
