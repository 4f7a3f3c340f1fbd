"""Makes transcripts wrong, in every way that a program, a disk or somebody who means harm does.

What is chosen comes from a `Random`, so that Hypothesis and a fuzzer can both choose.
"""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import copytree, rmtree
from typing import Any

LARGE = 300_000
"""Bytes of which more is cut down to some of its lines first: so that many can be tried."""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, -(2**63) - 1, 10**400, 1e308),
    *(float("nan"), float("inf"), "", "words", "\ud800", "\udc00\ud800", "a\0b"),
    *("../../outside", "/etc/passwd", "data:image/png;base64,!!!!", "x" * 20_000),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "2026-13-45T99:99:99Z"),
    *([], [[]], [None], ["words"], [1, 2, 3], [{}], [{"type": 5}]),
    *({}, {"": None}, {"type": []}, {"a": {"b": {"c": [1]}}}),
)
DEEP = 3_000
"""Levels: more than Python can follow, and orjson can read."""


def mutated(raw: bytes, choose: Random) -> bytes:
    raw = _some_lines(raw, choose)
    for _ in range(choose.randint(1, 3)):
        raw = choose.choice(_OF_FILES)(raw, choose)
    return raw


def mutate_folder(folder: Path, choose: Random) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for _ in range(choose.randint(1, 3)):
        file = choose.choice(files)
        match choose.randrange(6):
            case 0:
                file.unlink(missing_ok=True)
            case 1:
                file.write_bytes(b"")
            case 2 if file.exists():
                file.replace(file.with_name(choose.choice(("event-99999-x.json", "x.json", "x"))))
            case 3:
                other = choose.choice(files)
                if other.exists() and file.parent.is_dir():
                    file.write_bytes(other.read_bytes())
            case 4 if not file.exists():
                file.mkdir()
            case _:
                if file.is_file():
                    file.write_bytes(mutated(file.read_bytes(), choose))


def mutated_copy(path: Path, folder: Path, choose: Random) -> Path:
    target = folder / path.name
    if path.is_dir():
        if target.exists():
            rmtree(target)
        copytree(path, target)
        mutate_folder(target, choose)
    else:
        target.write_bytes(mutated(path.read_bytes(), choose))
    return target


# The bytes, and the lines


def _some_lines(raw: bytes, choose: Random) -> bytes:
    if len(raw) <= LARGE or raw[:1] == b"[" or raw.count(b"\n") < 3:
        return raw
    lines = raw.splitlines(keepends=True)
    first = choose.randrange(len(lines))
    kept, size = lines[:1], 0
    for line in lines[first:]:
        kept.append(line)
        size += len(line)
        if size > LARGE:
            break
    return b"".join(kept)


def _cut(raw: bytes, choose: Random) -> bytes:
    return raw[: choose.randint(0, len(raw))]


def _byte(raw: bytes, choose: Random) -> bytes:
    at = choose.randint(0, len(raw))
    odd = choose.choice(
        (b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\r", b'"', b"}", b"\xef\xbb\xbf")
    )
    return raw[:at] + odd + raw[at + choose.randint(0, 1) :]


def _lines(raw: bytes, choose: Random) -> bytes:
    """Cut at a line, or take out, repeat, swap or add one."""
    lines = raw.splitlines(keepends=True) or [b""]
    one, other = choose.randrange(len(lines)), choose.randrange(len(lines))
    match choose.randrange(5):
        case 0:
            del lines[one:]
        case 1:
            del lines[one]
        case 2:
            lines.insert(other, lines[one])
        case 3:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            deep = choose.choice((b"[", b'{"a":')) * DEEP
            future = b'{"type": "of the future", "id": "x"}'
            odd = (b"null", b"[]", b"{}", b'"words"', b"5", b"{", deep, future)
            lines.insert(one, choose.choice((*odd, b"[" * DEEP + b"]" * DEEP)) + b"\n")
    return b"".join(lines)


# The values


def _value(raw: bytes, choose: Random) -> bytes:
    """One value of one line, or of the document, is another; or its key comes twice, or not."""
    whole = _parsed(raw)
    if isinstance(whole, dict | list):
        return _changed(whole, choose)
    lines = raw.splitlines(keepends=True)
    parsed = [at for at, line in enumerate(lines) if line[:1] in b"{["]
    if not parsed:
        return _byte(raw, choose)
    at = choose.choice(parsed)
    value = _parsed(lines[at])
    if isinstance(value, dict | list):
        lines[at] = _changed(value, choose) + b"\n"
    return b"".join(lines)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _changed(tree: Any, choose: Random) -> bytes:
    places = _places(tree)
    if not places:
        return json.dumps(choose.choice(ODD)).encode()
    holder, key = choose.choice(places)
    match choose.randrange(8):
        case 0:
            del holder[key]
        case 1:
            # Ids that name the entry itself, another one, or none: cycles and missing parents.
            texts = [it[at] for it, at in places if isinstance(it[at], str) and len(it[at]) < 100]
            if texts:
                holder[key] = choose.choice(texts)
        case 2:
            other, at = choose.choice(places)
            holder[key] = other[at]
        case 3 if isinstance(holder, dict):
            holder[choose.choice(("of the future", "", "type", "id"))] = holder[key]
        case 4 if isinstance(holder, dict):
            twice = f"{json.dumps(key)}: {json.dumps(choose.choice(ODD[:30]))}, "
            mark = "a key that comes twice"
            holder[key] = [mark, holder[key]]
            text = _spelt(tree)
            start = text.find(f'{json.dumps(key)}: ["{mark}"')
            return (text[:start] + twice + text[start:]).encode()
        case 5:
            text = _spelt({**tree, "": None} if isinstance(tree, dict) else tree)
            deep = choose.choice((200, 260, 1_100, DEEP))
            holder[key] = "a deep place"
            text = _spelt(tree)
            return text.replace('"a deep place"', "[" * deep + "]" * deep).encode()
        case _:
            holder[key] = choose.choice(ODD)
    return _spelt(tree).encode()


def _spelt(tree: Any) -> str:
    try:
        return json.dumps(tree)
    except (RecursionError, ValueError):  # a value inside itself, too deep
        return "{}"


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < 5_000:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        for key in keys:
            found.append((one, key))
            if isinstance(one[key], dict | list):
                waiting.append(one[key])
    return found


_OF_FILES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_cut, _byte),
    *[_lines] * 5,
    *[_value] * 9,
)
