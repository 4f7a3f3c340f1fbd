"""Reads JSON Lines line by line, even if some lines are invalid, and writes JSON."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, BinaryIO

import orjson

from ....domain.cached_property import cached_property
from ....projections.rendering import sendable
from .fields import MalformedError

MAX_LINE_BYTES = 256_000_000

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_TWENTY_DIGITS = b"0" * 20
_NINETEEN_NEGATIVE = b"-" + b"0" * 19
_CHUNK = 1 << 20


class NestedTooDeeplyError(MalformedError):
    """A value nested too deeply for Python to parse."""


@dataclass(frozen=True)
class SourceLine:
    """One line that is not blank: its value, or the problem with it. `raw` is empty only if the
    line is too long.
    """

    number: int
    end: int
    """Where to resume: the end of the line, but the start of a truncated one."""
    raw: bytes = b""
    value: Any = None
    problem: str | None = None
    has_odd_numbers: bool = False
    """Whether it needs the slow parser: NaN, a large integer, an unpaired surrogate."""
    source_name: str | None = None
    """The name if it differs from the digest of `raw`, for example after redaction."""

    @cached_property
    def digest(self) -> str:
        """The line's name if it has no id of its own."""
        return self.source_name or f"line:{blake2b(self.raw, digest_size=16).hexdigest()}"

    @property
    def text(self) -> str:
        r"""The original line; an invalid byte is written as `\xff`."""
        return self.raw.decode(errors="backslashreplace")

    def to_json(self, part: Any) -> str:
        """Return part of the value as JSON text that parses to an equal value."""
        if not self.has_odd_numbers:
            try:
                return orjson.dumps(part).decode()
            except TypeError:
                pass  # orjson writes 254 levels, and reads 1,024
        try:
            return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise NestedTooDeeplyError("nested too deeply") from None


KeepLine = Callable[[int, bytes], None]
"""Keeps the bytes of a line, or more bytes of the same line."""


class LineFile:
    """An open file that is read line by line, from a place on to which it may have grown."""

    def __init__(self, file: BinaryIO, longest: int = MAX_LINE_BYTES) -> None:
        self.file = file
        self.longest = longest
        self.number = 0
        """The number of lines that were read."""
        self.offset = 0
        """Bytes of the file that were read."""
        self.is_inside_line = False
        """Whether the last line that was read goes on: its rest is kept, and not read."""

    def read(
        self,
        accepts: Callable[[SourceLine | None], bool] | None = None,
        keep: KeepLine | None = None,
    ) -> Iterator[SourceLine]:
        """Yield each line that is complete by now and not blank.

        `accepts` is asked whether to read a last line without an end; it is None if it is blank.
        `keep` is called with the bytes of every line, before the line is yielded. Memory use is
        bounded by one line of at most `longest`.
        """
        self.file.seek(self.offset)
        while raw := self.file.readline(_CHUNK if self.is_inside_line else self.longest + 1):
            line = None
            if not self.is_inside_line:
                is_partial = not raw.endswith(b"\n") and len(raw) <= self.longest
                if is_partial and accepts is None:
                    return
                line = self._parse(raw, is_partial=is_partial)
                if is_partial and accepts and not accepts(line):
                    return
                self.number += 1
            self.offset += len(raw)
            self.is_inside_line = not raw.endswith(b"\n")
            if keep:
                keep(self.number, raw)
            if line:
                yield line

    def _parse(self, raw: bytes, *, is_partial: bool) -> SourceLine | None:
        number, end = self.number + 1, self.offset + len(raw)
        if len(raw) > self.longest and not raw.endswith(b"\n"):
            return SourceLine(number, end, problem=f"longer than {self.longest:,} bytes")
        body = raw.removeprefix(BOM_UTF8).strip() if number == 1 else raw.strip()
        line = parse_line(body, number, end) if body else None
        if line and line.problem and is_partial:
            # The line stays the same however much of it a later reading finds.
            problem, name = "truncated: the file ends inside this line", f"truncated:{number}"
            return replace(line, end=self.offset, problem=problem, source_name=name)
        return line


def parse_line(raw: bytes, number: int = 1, end: int = 0) -> SourceLine:
    if not _may_hold_large_integer(raw):
        try:
            return SourceLine(number, end, raw, orjson.loads(raw))
        except orjson.JSONDecodeError:
            pass
    try:
        return SourceLine(number, end, raw, _parse_slowly(raw.decode()), has_odd_numbers=True)
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except ValueError as error:
        problem = "holds NUL bytes" if b"\0" in raw else f"not JSON: {error}"
    return SourceLine(number, end, raw, problem=problem)


def _may_hold_large_integer(raw: bytes) -> bool:
    # orjson silently converts an integer beyond 64 bits to a float.
    alike = raw.translate(_DIGITS_TO_ZERO)
    return _TWENTY_DIGITS in alike or _NINETEEN_NEGATIVE in alike


def _parse_slowly(text: str) -> Any:
    value = json.loads(text)
    spelt = json.dumps(value, ensure_ascii=False)
    try:
        spelt.encode()
    except UnicodeEncodeError:
        # An unpaired surrogate cannot be stored, so it becomes U+FFFD.
        return json.loads(spelt.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def encode_document(value: Any) -> bytes:
    return _encode_text(json.dumps(value, ensure_ascii=False, indent=2))


def encode_line(value: Any) -> bytes:
    return _encode_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _encode_text(text: str) -> bytes:
    # A call's arguments may contain an unpaired surrogate, which becomes U+FFFD.
    return sendable.replace_half_characters(text).encode() + b"\n"
