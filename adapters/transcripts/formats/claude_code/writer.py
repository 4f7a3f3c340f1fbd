"""Writes a session as Claude Code does: its own entries as they were, all others in its shape."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from .....domain.blocks import NOT_SENT, Kind
from .....domain.compaction import RECORDED
from ..json_lines import parse
from ..outgoing import Called, Compacted, Entry, Outgoing, Part, Said, entries, messages
from .entries import FORMAT, TITLES
from .rest import entry_of
from .shape import Shape

_From = Entry | Said | Called | Compacted


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The session as a file, line by line."""
    shape = Shape(outgoing)
    is_empty = True
    for entry in _entries(outgoing, shape):
        is_empty = False
        yield _line(entry)
    if is_empty:
        yield _line(shape.mode())  # a session in which nothing was said is one all the same
    _tell_losses(outgoing)


def _line(entry: Any) -> bytes:
    if isinstance(entry, bytes):
        return entry + b"\n"  # it was no JSON when it was read
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _entries(outgoing: Outgoing, shape: Shape) -> Iterator[Any]:
    """All entries of the file, each told to the shape, which goes on from there."""
    titles: dict[str, str] = {}
    parts: Iterator[_From] = outgoing.parts() if outgoing.is_view else _in_line_order(outgoing)
    for own, run in groupby(parts, key=lambda part: isinstance(part, Entry)):
        if not own:
            for message in messages(_foreign(outgoing, run)):
                if isinstance(message, Compacted):
                    yield from shape.compaction(message)
                else:
                    yield from shape.message(message)
            continue
        for entry in run:
            assert isinstance(entry, Entry), "they are grouped by that"
            for written in _own(entry):
                if isinstance(written, dict):
                    shape.follow(written, entry.said)
                    if kind := TITLES.get(str(written.get("type"))):
                        titles[kind] = written.get(kind, "")
                yield written
    title = titles.get(TITLES["custom-title"]) or titles.get(TITLES["ai-title"])
    if outgoing.title and outgoing.title != title:
        yield shape.title(outgoing.title)


def _in_line_order(outgoing: Outgoing) -> Iterator[_From]:
    """The parts of the log, its own entries in the order of their lines.

    A line that was written before the one that it follows was read after it.
    """
    lines = [
        line for part in entries(outgoing.parts(), FORMAT) if (line := _line_of(part)) is not None
    ]
    wanted = iter(_file_order(lines))
    due, held, loose = next(wanted, None), dict[int, _From](), list[_From]()
    index = -1
    for part in entries(outgoing.parts(), FORMAT):
        if _line_of(part) is None:
            loose.append(part)
        else:
            index += 1
            held[index] = part
        while due in held:
            yield held.pop(due)
            due = next(wanted, None)
        if not held:
            yield from loose
            loose.clear()


def _line_of(part: _From) -> int | None:
    origin = part.said[0].block.origin if isinstance(part, Entry) else None
    return origin.line if origin else None


def _file_order(lines: list[int]) -> list[int]:
    """The order in which entries of these lines stood in their files, as indexes.

    Lines that were read late are a few; a line that comes twice is of another file, which begins
    where the numbers last went down.
    """
    order: list[int] = []
    begin = fallen = 0
    seen: set[int] = set()
    for index, line in enumerate(lines):
        if index > begin and line < lines[index - 1]:
            fallen = index
        if line in seen:
            order += sorted(range(begin, fallen), key=lines.__getitem__)
            begin, seen = fallen, set(lines[fallen:index])
        seen.add(line)
    return order + sorted(range(begin, len(lines)), key=lines.__getitem__)


def _own(entry: Entry) -> Iterator[Any]:
    """An entry of Claude Code's as it stood; none for a note about a part of another entry."""
    origin = entry.said[0].block.origin
    if origin is None or origin.line is None:
        return
    if entry.rest is None:
        raw = (entry.raw or "").encode()
        line = parse(raw)
        written: Any = raw if line.problem else line.value
    else:
        written = entry_of(entry.rest, [said.block for said in entry.said])
    if origin.follows is not None and isinstance(written, dict):
        named = "parentUuid" if written.get("parentUuid") else "logicalParentUuid"
        written[named] = origin.follows or None
    yield written


def _foreign(outgoing: Outgoing, run: Iterable[_From]) -> Iterator[Part]:
    """What came from elsewhere, or was said here, without what was kept raw beside it."""
    kept_raw = outgoing.source == FORMAT and not outgoing.is_view
    parts = (
        part
        for part in run
        if not isinstance(part, Entry)
        and not (kept_raw and isinstance(part, Compacted) and part.boundary.policy == RECORDED)
    )
    return _counted(outgoing, parts)


def _counted(outgoing: Outgoing, parts: Iterable[Part]) -> Iterator[Part]:
    """Count what a transcript of Claude Code cannot hold."""
    lost: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, Said) and not part.abandoned:
            if part.block.kind in NOT_SENT:
                lost["notes" if part.block.kind is Kind.NOTE else "artifacts"] += 1
            elif part.retracted:
                lost["blocks that were taken back"] += 1
        elif isinstance(part, Compacted) and not outgoing.is_view:
            lost["shortened tool results"] += len(part.boundary.trims)
            lost["replaced blocks"] += len(part.boundary.replacements)
        yield part
    for what, count in lost.items():
        if count:
            outgoing.lose(what, count)


def _tell_losses(outgoing: Outgoing) -> None:
    if outgoing.forks:
        outgoing.lose("branches", len(outgoing.forks))
    if outgoing.source == FORMAT:
        return  # it has neither in its transcripts
    if outgoing.system_prompt:
        outgoing.lose("system prompts")
    if outgoing.tools:
        outgoing.lose("tool definitions", len(outgoing.tools))
