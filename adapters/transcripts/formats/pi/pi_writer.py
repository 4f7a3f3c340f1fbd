"""Writes a session as pi does: own entries unchanged, followed by later content."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from ..fields import JsonDict
from ..json_lines import encode_line
from ..line_writer import LineWriter, OwnBlock
from ..outgoing import (
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    to_iso,
)
from .entries import PI_TITLE_FIELDS
from .message_builder import MessageBuilder

PI_SESSION_VERSION = 3
TITLE_SLOT_BYTES = 256
"""The length of the line that oh-my-pi rewrites for each title."""
_NO_SUMMARY_TEXT = "[Earlier messages left the context, and no summary of them was made.]"


def write(name: str, outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_missing()
    is_linked = outgoing.parent is not None and outgoing.kept_source is None
    outgoing.count_loss("links to the session that a sub-agent works for", is_linked)
    return PiWriter(name, outgoing).write()


class WrittenEntry(NamedTuple):
    """A written entry, its place in the file, and the positions of its first and last block."""

    first: int
    last: int
    id: str | None
    place: int


class PiWriter(LineWriter):
    """A writer of entries, each of which names its parent or, in a list, follows the last one."""

    adds_at_end = True
    id_field = "id"
    reference_fields = ("parentId", "firstKeptEntryId")

    def __init__(self, name: str, outgoing: OutgoingSession) -> None:
        super().__init__(outgoing)
        self.name = name
        self.builder = MessageBuilder(outgoing)
        self.entries: list[WrittenEntry] = []
        """The messages so far."""
        self.newest: str | None = None
        """The entry that the next one follows."""
        self.ids: set[str] = set()
        self.place = 0
        """The number of entries in the file, including its header."""
        self.is_list = False
        """Whether the file has the first version's format, without ids."""

    def begin(self) -> Iterator[JsonDict]:
        outgoing, time = self.outgoing, to_iso(self.outgoing.opened_at)
        if self.name != "pi":
            self.title = outgoing.title
            yield make_title_slot(outgoing.title or "", time)
        id = _make_header_id(outgoing.key)
        header = {"type": "session", "version": PI_SESSION_VERSION, "id": id}
        self.place = 1
        yield header | {"timestamp": time, "cwd": outgoing.folder}

    def can_leave_out(self) -> bool:
        # In a list, compactions name an entry by its number.
        return not self.is_list and super().can_leave_out()

    def follow(self, entry: JsonDict, own: Sequence[OwnBlock]) -> None:
        kind = str(entry.get("type"))
        title = entry.get(PI_TITLE_FIELDS.get(kind, "title"))
        if kind in (*PI_TITLE_FIELDS, "title", "session") and isinstance(title, str):
            self.title = title
        if kind == "title":  # the line before the header does not count as an entry
            return
        self.place += 1
        if kind == "session":
            version = entry.get("version")
            self.is_list = not isinstance(version, int) or version < 2
            return
        id = entry.get("id")
        named = id if isinstance(id, str) else None
        if named:
            self.ids.add(named)
        if not own and entry.get("parentId") != self.newest:
            return  # it is of another branch
        self.builder.call_names |= {
            one.tool_call_id: one.tool_name for one in own if one.tool_call_id and one.tool_name
        }
        if own and not own[0].is_note:
            positions = [block.position for block in own]
            self._keep_entry(min(positions), max(positions), named)
        if named and not (own and all(block.is_retracted for block in own)):
            self.newest = named

    def build_message(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        positions = [said.position for said in message.outgoing_blocks]
        time = get_block_time(message.outgoing_blocks[0])
        yield self._build_entry(f"{positions[0]}", time, **self.builder.build(message))
        self._keep_entry(positions[0], max(positions), self.newest)

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
            yield entry | {"firstKeptEntryIndex": kept.place if kept else place}
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
            pointers = {"id": self._make_id(seed), "parentId": self.newest}
            self.newest = pointers["id"]
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
        self.entries.append(WrittenEntry(first, last, id, self.place - 1))

    def _find_first_kept(self, one: OutgoingCompaction) -> WrittenEntry | None:
        """Return the oldest entry from which all stayed; pi cannot record gaps."""
        kept, found, lost = one.boundary.kept, None, 0
        is_whole = True
        for written in reversed(self.entries):
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
