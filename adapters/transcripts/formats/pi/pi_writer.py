"""Writes a session as pi does: own entries unchanged, followed by later content."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
from ..fields import JsonDict
from ..json_lines import encode_line, parse_line
from ..line_writer import OwnBlock, make_own_block
from ..outgoing import (
    LineNumber,
    OutgoingBlock,
    OutgoingPart,
    OutgoingSession,
    group_outgoing_messages,
    is_added,
    to_iso,
)
from .entries import PI_TITLE_FIELDS
from .entry_composer import EntryComposer, WrittenEntry

PI_SESSION_VERSION = 3
TITLE_SLOT_BYTES = 256
"""The length of the line that oh-my-pi rewrites for each title."""


def write(name: str, outgoing: OutgoingSession) -> Iterator[bytes]:
    if outgoing.kept_source:
        yield from _ContinuedSession(name, outgoing).write_lines()
    else:
        yield from _write_foreign(name, outgoing)


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
    outgoing.count_missing()
    if outgoing.parent:
        outgoing.count_loss("links to the session that a sub-agent works for")
    for entry in composer.compose_entries(group_outgoing_messages(outgoing, outgoing.read_parts())):
        yield encode_line(entry)


def make_title_slot(title: str, time: str) -> bytes:
    """Return the line before the header, whose constant length allows rewriting it in place."""
    while True:
        slot = {"type": "title", "v": 1, "title": title, "updatedAt": time, "pad": ""}
        if (short := TITLE_SLOT_BYTES - len(encode_line(slot))) >= 0:
            return encode_line({**slot, "pad": " " * short})
        title = title[:-1]


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
    """The names of open calls, by id."""

    @property
    def is_unwritten_fork(self) -> bool:
        return self.newest is None and self.outgoing.fork is not None


class _ContinuedSession:
    """A session in its own format: its source, followed by what each branch got since."""

    def __init__(self, name: str, outgoing: OutgoingSession) -> None:
        self.name = name
        self.outgoing = outgoing
        self.branches = {one.key: _WrittenBranch(one) for one in (outgoing, *outgoing.forks)}
        self.ids: set[str] = set()
        self.place = 0
        self.is_list = False
        self.titles: set[str] = set()
        """Titles in the source's entries; the reader decides which one applies."""
        self.added: dict[str, list[OutgoingPart]] = {key: [] for key in self.branches}

    def write_lines(self) -> Iterator[bytes]:
        source = self.outgoing.kept_source
        assert source, "it is written from its source"
        blocks: dict[LineNumber, list[tuple[_WrittenBranch, OwnBlock]]] = {}
        for key, branch in self.branches.items():
            for line, part in source.find_lines(branch.outgoing):
                if line is None:
                    self.added[key] += [part] if is_added(branch.outgoing, part) else []
                elif isinstance(part, OutgoingBlock):
                    blocks.setdefault(line, []).append((branch, make_own_block(part)))
                    self._note_call(branch, part.block)
        for number, raw in source.read_lines():
            yield self._write_line(raw, blocks.get(number, []))
        # The session that a fork left precedes it.
        for branch in sorted(self.branches.values(), key=self._fork_depth):
            yield from self._write_added(branch)

    def _note_call(self, branch: _WrittenBranch, block: AnyBlock) -> None:
        if isinstance(block, ToolCall):
            branch.calls[block.tool_call_id] = block.name
        elif isinstance(block, ToolResult):
            branch.calls.pop(block.tool_call_id, None)

    def _write_line(self, line: bytes, own: list[tuple[_WrittenBranch, OwnBlock]]) -> bytes:
        """Return a line of the source, and note its place, so that others can follow it."""
        if not line.strip():
            return line
        item = parse_line(line.removeprefix(BOM_UTF8).strip()).value
        if not isinstance(item, dict):
            self.place += 1
            return line
        kind = str(item.get("type"))
        if kind == "title":  # the line before the header does not count as an entry
            self.titles.add(str(item.get("title")))
            return line
        self.place += 1
        if kind == "session":
            self._note_header(item)
            return line
        if kind in PI_TITLE_FIELDS and isinstance(title := item.get(PI_TITLE_FIELDS[kind]), str):
            self.titles.add(title)
        id = item.get("id")
        named = id if isinstance(id, str) else None
        if own:
            branch, blocks = own[0][0], [block for _, block in own]
            if not blocks[0].is_note:
                positions = [block.position for block in blocks]
                entry = WrittenEntry(min(positions), max(positions), named, self.place - 1)
                branch.written_entries.append(entry)
            if named and not all(block.is_retracted for block in blocks):
                branch.newest = named
        elif named:
            # An entry without blocks continues the branch whose newest entry it follows.
            for branch in self.branches.values():
                if branch.newest == item.get("parentId") and not branch.is_unwritten_fork:
                    branch.newest = named
        if named:
            self.ids.add(named)
        return line

    def _note_header(self, item: JsonDict) -> None:
        version = item.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        if isinstance(title := item.get("title"), str):
            self.titles.add(title)

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
            group_outgoing_messages(outgoing, self.added[outgoing.key])
        ):
            yield encode_line(entry)
        if outgoing is self.outgoing and outgoing.title and outgoing.title not in self.titles:
            kind, fields = "session_info", {"name": outgoing.title}
            if self.name != "pi":
                kind, fields = "title_change", {"title": outgoing.title, "source": "user"}
            yield encode_line(
                composer.compose_entry("title", outgoing.opened_at, type=kind, **fields)
            )
        self.place, branch.written_entries = composer.next_index, path[shared:]
        if outgoing is not self.outgoing:
            self.outgoing.losses.update(outgoing.losses)

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
