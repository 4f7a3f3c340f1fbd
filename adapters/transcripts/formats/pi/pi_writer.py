"""Writes a session as pi does: own entries unchanged, followed by later content."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import ToolCall, ToolResult
from ..fields import JsonDict
from ..json_lines import encode_line
from ..line_writer import LineWriter, OwnBlock, SourceEntry, make_own_block
from ..outgoing import (
    LineNumber,
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingPart,
    OutgoingSession,
    get_block_time,
    is_added,
    to_iso,
)
from .entries import PI_TITLE_FIELDS
from .message_builder import MessageBuilder

PI_SESSION_VERSION = 3
TITLE_SLOT_BYTES = 256
"""The length of the line that oh-my-pi rewrites for each title."""
_NO_SUMMARY_TEXT = "[Earlier messages left the context, and no summary of them was made.]"


def write(name: str, outgoing: OutgoingSession) -> Iterator[bytes]:
    writer = PiWriter(name, outgoing)
    if outgoing.kept_source:
        return writer.write_with_branches()
    outgoing.count_missing()
    outgoing.count_loss("links to the session that a sub-agent works for", bool(outgoing.parent))
    return writer.write()


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """A written entry, its place in the file, and the positions of its first and last block."""

    first: int
    last: int
    id: str | None
    index: int


@dataclass
class _Branch:
    outgoing: OutgoingSession
    entries: list[WrittenEntry] = field(default_factory=list)
    """Its messages, without those that it shares."""
    newest: str | None = None
    """The entry that the next one follows."""
    call_names: dict[str, str] = field(default_factory=dict)
    """The names of open calls, by id."""
    added: list[OutgoingPart] = field(default_factory=list)


class PiWriter(LineWriter):
    """A writer of entries, each of which names its parent or, in a list, follows the last one."""

    def __init__(self, name: str, outgoing: OutgoingSession) -> None:
        super().__init__(outgoing)
        self.name = name
        self.branches = {one.key: _Branch(one) for one in (outgoing, *outgoing.forks)}
        self.ids: set[str] = set()
        self.place = 0
        """The number of entries in the file, including its header."""
        self.is_list = False
        """Whether the file has the first version's format, without ids."""
        self._go_to(self.branches[outgoing.key])

    def _go_to(self, branch: _Branch) -> None:
        """Build entries of this branch from now on."""
        self.branch, self.outgoing = branch, branch.outgoing
        self.builder = MessageBuilder(branch.outgoing, branch.call_names)

    def begin(self) -> Iterator[JsonDict]:
        outgoing, time = self.outgoing, to_iso(self.outgoing.opened_at)
        if self.name != "pi":
            self.title = outgoing.title
            yield make_title_slot(outgoing.title or "", time)
        id = _make_header_id(outgoing.key)
        header = {"type": "session", "version": PI_SESSION_VERSION, "id": id}
        self.place = 1
        yield header | {"timestamp": time, "cwd": ""}

    def write_with_branches(self) -> Iterator[bytes]:
        """Yield the lines of the source, and then what each branch got since."""
        home, source = self.outgoing, self.outgoing.kept_source
        assert source, "it is written from its source"
        own: dict[LineNumber, list[tuple[_Branch, OwnBlock]]] = {}
        for branch in self.branches.values():
            for line, part in source.find_lines(branch.outgoing):
                if line is None:
                    branch.added += [part] if is_added(branch.outgoing, part) else []
                elif isinstance(part, OutgoingBlock):
                    own.setdefault(line, []).append((branch, make_own_block(part)))
                    if isinstance(part.block, ToolCall):
                        branch.call_names[part.block.tool_call_id] = part.block.name
                    elif isinstance(part.block, ToolResult):
                        branch.call_names.pop(part.block.tool_call_id, None)
        for line, raw in source.read_lines():
            found = own.get(line, [])
            value = SourceEntry(raw, (), line).value
            if isinstance(value, dict):
                self.branch = found[0][0] if found else self._find_branch(value)
                self.follow(value, [block for _, block in found])
            elif raw.strip():
                self.place += 1
            yield raw
        # The session that a fork left precedes it.
        for branch in sorted(self.branches.values(), key=self._fork_depth):
            self._go_to(branch)
            if branch.newest is None and branch.outgoing.fork:
                path = self._find_path(branch)
                branch.newest = path[-1].id if path else None
            yield from self.build(branch.added)
            if branch.outgoing is home:
                yield from self.end()
            else:
                home.losses.update(branch.outgoing.losses)

    def follow(self, entry: JsonDict, own: Sequence[OwnBlock]) -> bool:
        kind = str(entry.get("type"))
        title = entry.get(PI_TITLE_FIELDS.get(kind, "title"))
        if kind in (*PI_TITLE_FIELDS, "title", "session") and isinstance(title, str):
            self.title = title
        if kind == "title":  # the line before the header does not count as an entry
            return True
        self.place += 1
        if kind == "session":
            version = entry.get("version")
            self.is_list = not isinstance(version, int) or version < 2
            return True
        id = entry.get("id")
        named = id if isinstance(id, str) else None
        if own and not own[0].is_note:
            positions = [block.position for block in own]
            self._keep_entry(min(positions), max(positions), named)
        if named:
            self.ids.add(named)
            if not own or not all(block.is_retracted for block in own):
                self.branch.newest = named
        return True

    def _find_branch(self, entry: JsonDict) -> _Branch:
        """Return the branch that an entry without blocks continues, or else one for no content."""
        named = (one for one in self.branches.values() if one.newest == entry.get("parentId"))
        begun = (one for one in named if one.newest or one.outgoing.fork is None)
        return next(begun, _Branch(self.outgoing))

    def build_message(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        positions = [said.position for said in message.outgoing_blocks]
        time = get_block_time(message.outgoing_blocks[0])
        yield self._build_entry(f"{positions[0]}", time, **self.builder.build(message))
        self._keep_entry(positions[0], max(positions), self.branch.newest)

    def build_compaction(self, compacted: OutgoingCompaction) -> Iterator[JsonDict]:
        boundary, summary = compacted.boundary, compacted.summary
        self.outgoing.count_shortened(boundary)
        if not (summary or boundary.hidden):
            return
        kept, place = self._find_first_kept(compacted), self.place
        entry = self._build_entry(
            f"compaction {boundary.originator_version}",
            compacted.time,
            type="compaction",
            summary=summary.text if summary else _NO_SUMMARY_TEXT,
            tokensBefore=boundary.pre_tokens,
        )
        # An entry that names itself keeps nothing, since no earlier entry has its id or place.
        if self.is_list:
            yield entry | {"firstKeptEntryIndex": kept.index if kept else place}
        else:
            yield entry | {"firstKeptEntryId": kept.id if kept else entry["id"]}

    def build_title(self, title: str) -> Iterator[JsonDict]:
        fields = {"type": "session_info", "name": title}
        if self.name != "pi":
            fields = {"type": "title_change", "title": title, "source": "user"}
        yield self._build_entry("title", self.outgoing.opened_at, **fields)

    def _build_entry(self, seed: str, time: datetime, /, **fields: Any) -> JsonDict:
        """Return an entry that follows the last one; `seed` makes its id unique in the session."""
        pointers: JsonDict = {}
        if not self.is_list:
            pointers = {"id": self._make_id(seed), "parentId": self.branch.newest}
            self.branch.newest = pointers["id"]
        self.place += 1
        return pointers | {"timestamp": to_iso(time)} | fields

    def _make_id(self, seed: str) -> str:
        key, salt = self.outgoing.key, 0
        while True:
            salted = f"{key}\n{seed}\n{salt}".encode(errors="replace")
            id = blake2b(salted, digest_size=4).hexdigest()
            if id not in self.ids:
                self.ids.add(id)
                return id
            salt += 1

    def _keep_entry(self, first: int, last: int, id: str | None) -> None:
        self.branch.entries.append(WrittenEntry(first, last, id, self.place - 1))

    def _find_first_kept(self, one: OutgoingCompaction) -> WrittenEntry | None:
        """Return the oldest entry from which all stayed; pi cannot record gaps."""
        kept, found, lost = one.boundary.kept, None, 0
        is_whole = True
        for written in reversed(self._find_path(self.branch)):
            stayed = written.first > one.boundary.after or any(
                position in kept for position in range(written.first, written.last + 1)
            )
            is_whole = is_whole and stayed
            if is_whole:
                found = written
            else:
                lost += stayed
        self.outgoing.count_loss("kept messages that are older than ones that left", lost)
        return found

    def _find_path(self, branch: _Branch) -> list[WrittenEntry]:
        """Return the messages of a branch, with those that it shares."""
        fork = branch.outgoing.fork
        if fork is None or fork.key not in self.branches:
            return branch.entries
        above = self._find_path(self.branches[fork.key])
        return [one for one in above if one.last <= fork.position] + branch.entries

    def _fork_depth(self, branch: _Branch) -> int:
        """Return the number of ancestor branches among these sessions."""
        fork = branch.outgoing.fork
        above = self.branches.get(fork.key) if fork else None
        return self._fork_depth(above) + 1 if above else 0


def make_title_slot(title: str, time: str) -> JsonDict:
    """Return the line before the header, whose constant length allows rewriting it in place."""
    while True:
        slot = {"type": "title", "v": 1, "title": title, "updatedAt": time, "pad": ""}
        if (short := TITLE_SLOT_BYTES - len(encode_line(slot))) >= 0:
            return {**slot, "pad": " " * short}
        title = title[:-1]


def _make_header_id(key: str) -> str:
    """Return an id that is valid in a header and in a file name."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", key):
        return key
    return str(uuid5(NAMESPACE_URL, f"cutbank:pi:{key}"))
