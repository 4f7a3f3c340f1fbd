"""Reads JSON Lines line by line, even if some lines are invalid, and writes JSON."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import orjson

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


def read_lines_of(
    path: Path, longest: int = MAX_LINE_BYTES, keep: KeepLine | None = None
) -> Iterator[SourceLine]:
    """Yield each line that is not blank. Memory use is bounded by one line of at most `longest`.

    `keep` is called with the bytes of every line, before the line is yielded.
    """
    number = end = 0
    with path.open("rb") as file:
        while raw := file.readline(longest + 1):
            number, start, end = number + 1, end, end + len(raw)
            if keep:
                keep(number, raw)
            if len(raw) > longest and not raw.endswith(b"\n"):
                for chunk in _read_rest(file):
                    end += len(chunk)
                    if keep:
                        keep(number, chunk)
                yield SourceLine(number, end, problem=f"longer than {longest:,} bytes")
                continue
            body = raw.removeprefix(BOM_UTF8).strip() if number == 1 else raw.strip()
            if not body:
                continue
            line = parse_line(body, number, end)
            if line.problem and not raw.endswith(b"\n"):
                # The line stays the same however much of it a later reading finds.
                problem, name = "truncated: the file ends inside this line", f"truncated:{number}"
                yield SourceLine(number, start, body, problem=problem, source_name=name)
            else:
                yield line


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


def _read_rest(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a line in pieces."""
    while chunk := file.readline(_CHUNK):
        yield chunk
        if chunk.endswith(b"\n"):
            break


def encode_document(value: Any) -> bytes:
    return _encode_utf8(json.dumps(value, ensure_ascii=False, indent=2)) + b"\n"


def encode_line(value: Any) -> bytes:
    return _encode_utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + b"\n"


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A call's arguments may contain an unpaired surrogate, which becomes U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
