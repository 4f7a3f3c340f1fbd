"""Writes a session as Claude Code does: own entries unchanged, all others converted."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from .....domain.blocks import UNSENT_KINDS, Kind
from .....domain.compaction import RECORDED_LINEAGE
from ..json_lines import encode_line, parse_line
from ..outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingPart,
    OutgoingSession,
    group_outgoing_entries,
    group_outgoing_messages,
)
from .content import restore_claude_entry
from .entries import FORMAT_NAME, TITLE_FIELDS
from .entry_builder import ClaudeEntryBuilder

_LogPart = OutgoingEntry | OutgoingBlock | OutgoingCall | OutgoingCompaction


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    builder = ClaudeEntryBuilder(outgoing)
    is_empty = True
    for entry in _write_entries(outgoing, builder):
        is_empty = False
        # An own entry that was not valid JSON is written as it was.
        yield entry + b"\n" if isinstance(entry, bytes) else encode_line(entry)
    if is_empty:
        yield encode_line(builder.build_mode())  # an empty session still needs an entry
    _count_missing(outgoing)


def _write_entries(outgoing: OutgoingSession, builder: ClaudeEntryBuilder) -> Iterator[Any]:
    titles: dict[str, str] = {}
    parts = outgoing.read_parts() if outgoing.is_view else _order_by_line(outgoing)
    for own, run in groupby(parts, key=lambda part: isinstance(part, OutgoingEntry)):
        if not own:
            for message in group_outgoing_messages(_select_foreign(outgoing, run)):
                if isinstance(message, OutgoingCompaction):
                    yield from builder.build_compaction(message)
                else:
                    yield from builder.build_message(message)
            continue
        for part in run:
            assert isinstance(part, OutgoingEntry), "they are grouped by that"
            for entry in _restore_own_entry(part):
                if isinstance(entry, dict):
                    builder.follow_entry(entry, part.outgoing_blocks)
                    if kind := TITLE_FIELDS.get(str(entry.get("type"))):
                        titles[kind] = entry.get(kind, "")
                yield entry
    title = titles.get(TITLE_FIELDS["custom-title"]) or titles.get(TITLE_FIELDS["ai-title"])
    if outgoing.title and outgoing.title != title:
        yield builder.build_title(outgoing.title)


def _order_by_line(outgoing: OutgoingSession) -> Iterator[_LogPart]:
    """Yield the parts of the log, own entries in the order of their lines.

    A line that was written before the one that it follows was read after it.
    """
    lines = [
        line
        for part in group_outgoing_entries(outgoing.read_parts(), FORMAT_NAME)
        if (line := _line_number(part)) is not None
    ]
    wanted = iter(_file_order(lines))
    due, held, loose = next(wanted, None), dict[int, _LogPart](), list[_LogPart]()
    index = -1
    for part in group_outgoing_entries(outgoing.read_parts(), FORMAT_NAME):
        if _line_number(part) is None:
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


def _line_number(part: _LogPart) -> int | None:
    origin = part.outgoing_blocks[0].block.origin if isinstance(part, OutgoingEntry) else None
    return origin.line if origin else None


def _file_order(lines: list[int]) -> list[int]:
    """Return the indexes of entries in the order of their lines in their files.

    Few lines were read late; a repeated line number belongs to another file, which begins where the
    numbers last went down.
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


def _restore_own_entry(entry: OutgoingEntry) -> Iterator[Any]:
    """Yield an own entry unchanged; skip notes about a part of another entry."""
    origin = entry.outgoing_blocks[0].block.origin
    if origin is None or origin.line is None:
        return
    if entry.remainder is None:
        raw = (entry.raw or "").encode()
        line = parse_line(raw)
        written: Any = raw if line.problem else line.value
    else:
        written = restore_claude_entry(
            entry.remainder, [said.block for said in entry.outgoing_blocks]
        )
    if origin.follows is not None and isinstance(written, dict):
        named = "parentUuid" if written.get("parentUuid") else "logicalParentUuid"
        written[named] = origin.follows or None
    yield written


def _select_foreign(outgoing: OutgoingSession, run: Iterable[Any]) -> Iterator[OutgoingPart]:
    """Yield the parts from other sources, and count what of them is lost."""
    has_own_boundaries = outgoing.source == FORMAT_NAME and not outgoing.is_view
    for part in run:
        if isinstance(part, OutgoingCompaction):
            boundary = part.boundary
            if has_own_boundaries and boundary.policy == RECORDED_LINEAGE:
                continue
            if boundary.trims and not outgoing.is_view:
                outgoing.count_loss("shortened tool results", len(boundary.trims))
            if boundary.replacements and not outgoing.is_view:
                outgoing.count_loss("replaced blocks", len(boundary.replacements))
        elif isinstance(part, OutgoingBlock) and not part.is_cancelled_result:
            if part.block.kind in UNSENT_KINDS:
                outgoing.count_loss("notes" if part.block.kind is Kind.NOTE else "artifacts")
            elif part.is_retracted:
                outgoing.count_loss("blocks that were retracted")
        yield part


def _count_missing(outgoing: OutgoingSession) -> None:
    if outgoing.forks:
        outgoing.count_loss("branches", len(outgoing.forks))
    if outgoing.source == FORMAT_NAME:
        return  # the format has no place for either
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    if outgoing.tools:
        outgoing.count_loss("tool definitions", len(outgoing.tools))
