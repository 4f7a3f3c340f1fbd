"""Reads a JSON Lines file line by line, whatever is wrong with some of its lines."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import orjson

MAX_LINE_BYTES = 256_000_000
"""Bytes of the longest line that is read."""

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_TWENTY_DIGITS = b"0" * 20
_NINETEEN_NEGATIVE = b"-" + b"0" * 19
_CHUNK = 1 << 20


class NestedTooDeeplyError(ValueError):
    """A value nested deeper than Python can follow."""


@dataclass(frozen=True)
class SourceLine:
    """One line that is not blank: its value, or the problem with it. `raw` is empty only where it
    is too long to be kept."""

    number: int
    end: int
    """Where a later reading goes on: the end of the line, but the start of a truncated one."""
    raw: bytes = b""
    value: Any = None
    problem: str | None = None
    has_odd_numbers: bool = False
    """Holds what only the slow parser takes: NaN, a large integer, half a surrogate pair."""
    source_name: str | None = None
    """Its name, where that is not the digest of `raw`: secrets were left out of it, say."""

    @cached_property
    def digest(self) -> str:
        """The line's name where it has no id of its own."""
        return self.source_name or f"line:{blake2b(self.raw, digest_size=16).hexdigest()}"

    @property
    def text(self) -> str:
        """The line as it stands; a byte that is no UTF-8 is written as `\\xff`."""
        return self.raw.decode(errors="backslashreplace")

    def to_json(self, part: Any) -> str:
        """Part of the value as JSON text that means the same when it is parsed again."""
        if not self.has_odd_numbers:
            try:
                return orjson.dumps(part).decode()
            except TypeError:
                pass  # orjson writes 254 levels, and reads 1,024
        try:
            return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise NestedTooDeeplyError("nested too deeply") from None


def read_lines_of(path: Path, longest: int = MAX_LINE_BYTES) -> Iterator[SourceLine]:
    """Yield each line that is not blank. Memory is that of one line, and at most `longest`."""
    number = end = 0
    with path.open("rb") as file:
        while raw := file.readline(longest + 1):
            number, start, end = number + 1, end, end + len(raw)
            if len(raw) > longest and not raw.endswith(b"\n"):
                end += _skip_line(file)
                yield SourceLine(number, end, problem=f"longer than {longest:,} bytes")
                continue
            body = raw.removeprefix(BOM_UTF8).strip() if number == 1 else raw.strip()
            if not body:
                continue
            line = parse_line(body, number, end)
            if line.problem and not raw.endswith(b"\n"):
                # However much of it is there at a later reading, it is the same line.
                problem, name = "truncated: the file ends inside this line", f"truncated:{number}"
                yield SourceLine(number, start, body, problem=problem, source_name=name)
            else:
                yield line


def parse_line(raw: bytes, number: int = 1, end: int = 0) -> SourceLine:
    """Parse one line, which is not blank."""
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
    # orjson makes a float of an integer beyond 64 bits, without a word.
    alike = raw.translate(_DIGITS_TO_ZERO)
    return _TWENTY_DIGITS in alike or _NINETEEN_NEGATIVE in alike


def _parse_slowly(text: str) -> Any:
    value = json.loads(text)
    spelt = json.dumps(value, ensure_ascii=False)
    try:
        spelt.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair is no text, and cannot be stored: it becomes U+FFFD.
        return json.loads(spelt.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while chunk := file.readline(_CHUNK):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped
