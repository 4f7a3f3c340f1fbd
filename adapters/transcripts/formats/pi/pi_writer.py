"""Writes a session as pi does: own entries unchanged, followed by later content."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import ToolCall, ToolResult
from .....domain.compaction import RECORDED_LINEAGE
from ..fields import JsonDict
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
    is_partial_note,
    to_iso,
)
from .entries import PI_TITLE_FIELDS
from .entry_composer import EntryComposer, WrittenEntry
from .entry_content import make_title_slot, restore_entry_line

PI_SESSION_VERSION = 3


def write(name: str, outgoing: OutgoingSession) -> Iterator[bytes]:
    if _is_complete_copy(name, outgoing):
        yield from _ContinuedSession(name, outgoing).write_lines()
    else:
        yield from _write_foreign(name, outgoing)


def _is_complete_copy(name: str, outgoing: OutgoingSession) -> bool:
    """Return whether it came in this format and still has every entry."""
    first = next((part for part in outgoing.read_parts() if isinstance(part, OutgoingBlock)), None)
    return first is not None and not outgoing.is_view and _is_from_format(name, first)


def _is_from_format(name: str, said: OutgoingBlock) -> bool:
    origin = said.block.origin
    return origin is not None and origin.format == name


def _write_foreign(name: str, outgoing: OutgoingSession) -> Iterator[bytes]:
    time = to_iso(outgoing.opened_at)
    title = outgoing.title
    if name != "pi":
        yield make_title_slot(title or "", time)
    header = {"type": "session", "version": PI_SESSION_VERSION, "id": _make_header_id(outgoing.key)}
    yield encode_line(header | {"timestamp": time, "cwd": ""})
    composer = EntryComposer(outgoing, set(), next_index=1)
    if name == "pi" and title:
        named = composer.compose_entry("title", outgoing.opened_at, type="session_info", name=title)
        yield encode_line(named)
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    if outgoing.tools:
        outgoing.count_loss("tool definitions", len(outgoing.tools))
    if outgoing.parent:
        outgoing.count_loss("links to the session that a sub-agent works for")
    for entry in composer.compose_entries(group_outgoing_messages(outgoing.read_parts())):
        yield encode_line(entry)


def _make_header_id(key: str) -> str:
    """Return an id that is valid in a header and in a file name."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", key):
        return key
    return str(uuid5(NAMESPACE_URL, f"cutbank:pi:{key}"))


@dataclass
class _WrittenBranch:
    outgoing: OutgoingSession
    written_entries: list[WrittenEntry] = field(default_factory=list)
    newest: str | None = None
    calls: dict[str, str] = field(default_factory=dict)


class _ContinuedSession:
    """A session that came in this format, with its branches and later content."""

    def __init__(self, name: str, outgoing: OutgoingSession) -> None:
        self.name = name
        self.outgoing = outgoing
        self.branches = {one.key: _WrittenBranch(one) for one in (outgoing, *outgoing.forks)}
        self.ids: set[str] = set()
        self.place = 0
        self.is_list = False
        self.title: str | None = None
        self.titles: set[str] = set()
        """Titles in the source's entries; the reader decides which one applies."""

    def write_lines(self) -> Iterator[bytes]:
        streams = [self._own_entries(branch) for branch in self.branches.values()]
        for _, branch, entry in merge(*streams, key=itemgetter(0)):
            yield self._restore_line(branch, entry)
        # The session that a fork left precedes it.
        for branch in sorted(self.branches.values(), key=self._fork_depth):
            yield from self._write_added(branch)

    def _own_entries(
        self, branch: _WrittenBranch
    ) -> Iterator[tuple[int, _WrittenBranch, OutgoingEntry]]:
        line = 0
        for entry in group_outgoing_entries(branch.outgoing.read_parts(), self.name):
            if isinstance(entry, OutgoingEntry) and not is_partial_note(entry):
                origin = entry.outgoing_blocks[0].block.origin
                line = (origin.line if origin else None) or line
                yield line, branch, entry

    def _restore_line(self, branch: _WrittenBranch, entry: OutgoingEntry) -> bytes:
        line = restore_entry_line(entry)
        item: Any = entry.remainder
        if item is None:
            parsed = parse_line(line.strip())
            if parsed.problem:
                return line  # a title line does not count as an entry
            item = parsed.value
        if not isinstance(item, dict):
            self.place += 1
            return line
        kind = str(item.get("type"))
        if kind == "title":
            return self._update_title_slot(item, line)
        self.place += 1
        if kind == "session":
            return self._update_header(item, line)
        if kind in PI_TITLE_FIELDS and isinstance(title := item.get(PI_TITLE_FIELDS[kind]), str):
            self.titles.add(title)
        self._note_entry(branch, entry, item)
        return line

    def _note_entry(self, branch: _WrittenBranch, entry: OutgoingEntry, item: JsonDict) -> None:
        """Record the entry's place, so that others can follow it."""
        id = item.get("id")
        named = id if isinstance(id, str) else None
        if entry.remainder is not None:
            first, last = entry.outgoing_blocks[0].position, entry.outgoing_blocks[-1].position
            branch.written_entries.append(WrittenEntry(first, last, named, self.place - 1))
            for one in entry.outgoing_blocks:
                if isinstance(one.block, ToolCall):
                    branch.calls[one.block.tool_call_id] = one.block.name
                elif isinstance(one.block, ToolResult):
                    branch.calls.pop(one.block.tool_call_id, None)
        if named is None:
            return
        self.ids.add(named)
        if entry.remainder is None or not all(one.is_retracted for one in entry.outgoing_blocks):
            branch.newest = named

    def _update_title_slot(self, item: JsonDict, line: bytes) -> bytes:
        self.title = self.outgoing.title
        self.titles.add(self.title or "")
        if not self.title or item.get("title") == self.title:
            return line
        time = item.get("updatedAt")
        return make_title_slot(
            self.title, time if isinstance(time, str) else to_iso(self.outgoing.opened_at)
        )

    def _update_header(self, item: JsonDict, line: bytes) -> bytes:
        version = item.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        if isinstance(title := item.get("title"), str) and title and not self.title:
            self.title = title
        if self.outgoing.fork is None:
            return line
        # A branch exported alone is a session of its own.
        return encode_line(item | {"id": _make_header_id(self.outgoing.key)})

    def _write_added(self, branch: _WrittenBranch) -> Iterator[bytes]:
        outgoing, path = branch.outgoing, self._written_path(branch)
        shared = len(path) - len(branch.written_entries)
        composer = EntryComposer(
            outgoing,
            self.ids,
            parent=self._find_tip(branch),
            is_list=self.is_list,
            next_index=self.place,
            written_entries=path,
            call_ids=branch.calls,
        )
        for entry in composer.compose_entries(
            group_outgoing_messages(self._foreign_parts(outgoing))
        ):
            yield encode_line(entry)
        told = {*self.titles, self.title or ""}
        if outgoing is self.outgoing and outgoing.title and outgoing.title not in told:
            kind, fields = "session_info", {"name": outgoing.title}
            if self.name != "pi":
                kind, fields = "title_change", {"title": outgoing.title, "source": "user"}
            yield encode_line(
                composer.compose_entry("title", outgoing.opened_at, type=kind, **fields)
            )
        self.place, branch.written_entries = composer.next_index, path[shared:]
        if outgoing is not self.outgoing:
            self.outgoing.losses.update(outgoing.losses)

    def _foreign_parts(self, outgoing: OutgoingSession) -> Iterator[OutgoingPart]:
        """Yield the parts from other sources; calls and compactions of the source are its own
        entries.
        """
        is_ours = False
        for part in outgoing.read_parts():
            match part:
                case OutgoingBlock():
                    is_ours = not _is_from_format(self.name, part)
                    if is_ours:
                        yield part
                case OutgoingCall(call=call):
                    if is_ours and call.lineage != RECORDED_LINEAGE:
                        yield part
                case OutgoingCompaction(boundary=boundary):
                    if boundary.policy != RECORDED_LINEAGE:
                        yield part

    def _find_tip(self, branch: _WrittenBranch) -> str | None:
        """Return the entry that the added content follows."""
        if branch.newest or branch.outgoing.fork is None:
            return branch.newest
        path = self._written_path(branch)
        return path[-1].id if path else None

    def _fork_depth(self, branch: _WrittenBranch) -> int:
        """Return the number of ancestor branches among these sessions."""
        depth, fork = 0, branch.outgoing.fork
        while fork and fork.key in self.branches:
            depth, fork = depth + 1, self.branches[fork.key].outgoing.fork
        return depth

    def _written_path(self, branch: _WrittenBranch) -> list[WrittenEntry]:
        fork = branch.outgoing.fork
        if fork is None or fork.key not in self.branches:
            return list(branch.written_entries)
        above = self._written_path(self.branches[fork.key])
        return [one for one in above if one.last <= fork.position] + branch.written_entries
