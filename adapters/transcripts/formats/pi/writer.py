"""Writes a session as pi does: its own entries as they were, and what else was said after them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import ToolCall, ToolResult
from .....domain.compaction import RECORDED
from ..content.moments import iso
from ..json_lines import parse
from ..outgoing import Called, Compacted, Entry, Outgoing, Part, Said, entries, messages
from ..reading.fields import Item
from ..writing.own_entries import is_part
from .compose import Composer, Written
from .entries import TITLES, dumped
from .put_back import line_of, title_slot

VERSION = 3


def write(name: str, outgoing: Outgoing) -> Iterator[bytes]:
    """The session as a file, line by line."""
    if _is_own(name, outgoing):
        yield from _Continued(name, outgoing).lines()
    else:
        yield from _foreign(name, outgoing)


def _is_own(name: str, outgoing: Outgoing) -> bool:
    """Whether it came in this format, and goes out with every entry that it had."""
    first = next((part for part in outgoing.parts() if isinstance(part, Said)), None)
    return first is not None and not outgoing.is_view and _came_in(name, first)


def _came_in(name: str, said: Said) -> bool:
    origin = said.block.origin
    return origin is not None and origin.format == name


def _foreign(name: str, outgoing: Outgoing) -> Iterator[bytes]:
    time = iso(outgoing.opened)
    title = outgoing.title
    if name != "pi":
        yield title_slot(title or "", time)
    header = {"type": "session", "version": VERSION, "id": _header_id(outgoing.key)}
    yield dumped(header | {"timestamp": time, "cwd": ""})
    composer = Composer(outgoing, set(), place=1)
    if name == "pi" and title:
        named = composer.entry("title", outgoing.opened, type="session_info", name=title)
        yield dumped(named)
    if outgoing.system_prompt:
        outgoing.lose("system prompts")
    if outgoing.tools:
        outgoing.lose("tool definitions", len(outgoing.tools))
    if outgoing.parent:
        outgoing.lose("links to the session that a sub-agent works for")
    for entry in composer.entries(messages(outgoing.parts())):
        yield dumped(entry)


def _header_id(key: str) -> str:
    """What a session may be called in a header, and in the name of its file."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", key):
        return key
    return str(uuid5(NAMESPACE_URL, f"cutbank:pi:{key}"))


@dataclass
class _Branch:
    """What was written of one of the sessions that share a file."""

    outgoing: Outgoing
    written: list[Written] = field(default_factory=list)
    newest: str | None = None
    calls: dict[str, str] = field(default_factory=dict)
    """Tools by the ids of their calls that were not answered."""


class _Continued:
    """A session that came in this format, its branches, and what was added to them since."""

    def __init__(self, name: str, outgoing: Outgoing) -> None:
        self.name = name
        self.outgoing = outgoing
        self.branches = {one.key: _Branch(one) for one in (outgoing, *outgoing.forks)}
        self.ids: set[str] = set()
        self.place = 0
        self.is_list = False
        self.title: str | None = None
        self.titles: set[str] = set()
        """Titles that the source's entries tell: which of them counts is the reader's to say."""

    def lines(self) -> Iterator[bytes]:
        streams = [self._own(branch) for branch in self.branches.values()]
        for _, branch, entry in merge(*streams, key=itemgetter(0)):
            yield self._line(branch, entry)
        # What one of them was forked off comes before it.
        for branch in sorted(self.branches.values(), key=self._depth):
            yield from self._added(branch)

    def _own(self, branch: _Branch) -> Iterator[tuple[int, _Branch, Entry]]:
        line = 0
        for entry in entries(branch.outgoing.parts(), self.name):
            if isinstance(entry, Entry) and not is_part(entry):
                origin = entry.said[0].block.origin
                line = (origin.line if origin else None) or line
                yield line, branch, entry

    def _line(self, branch: _Branch, entry: Entry) -> bytes:
        line = line_of(entry)
        item: Any = entry.rest
        if item is None:
            parsed = parse(line.strip())
            if parsed.problem:
                return line  # where entries are counted, it is none
            item = parsed.value
        if not isinstance(item, dict):
            self.place += 1
            return line
        kind = str(item.get("type"))
        if kind == "title":
            return self._slot(item, line)
        self.place += 1
        if kind == "session":
            return self._header(item, line)
        if kind in TITLES and isinstance(title := item.get(TITLES[kind]), str):
            self.titles.add(title)
        self._note(branch, entry, item)
        return line

    def _note(self, branch: _Branch, entry: Entry, item: Item) -> None:
        """Remember where the entry stands, and that others may follow it."""
        id = item.get("id")
        named = id if isinstance(id, str) else None
        if entry.rest is not None:
            first, last = entry.said[0].position, entry.said[-1].position
            branch.written.append(Written(first, last, named, self.place - 1))
            for one in entry.said:
                if isinstance(one.block, ToolCall):
                    branch.calls[one.block.tool_call_id] = one.block.name
                elif isinstance(one.block, ToolResult):
                    branch.calls.pop(one.block.tool_call_id, None)
        if named is None:
            return
        self.ids.add(named)
        if entry.rest is None or not all(one.retracted for one in entry.said):
            branch.newest = named

    def _slot(self, item: Item, line: bytes) -> bytes:
        self.title = self.outgoing.title
        self.titles.add(self.title or "")
        if not self.title or item.get("title") == self.title:
            return line
        time = item.get("updatedAt")
        return title_slot(self.title, time if isinstance(time, str) else iso(self.outgoing.opened))

    def _header(self, item: Item, line: bytes) -> bytes:
        version = item.get("version")
        self.is_list = not isinstance(version, int) or version < 2
        if isinstance(title := item.get("title"), str) and title and not self.title:
            self.title = title
        if self.outgoing.fork is None:
            return line
        # A branch by itself is a session of its own, and not the one that it left.
        return dumped(item | {"id": _header_id(self.outgoing.key)})

    def _added(self, branch: _Branch) -> Iterator[bytes]:
        """What was said in the session since it was imported."""
        outgoing, path = branch.outgoing, self._path(branch)
        shared = len(path) - len(branch.written)
        composer = Composer(
            outgoing,
            self.ids,
            parent=self._tip(branch),
            is_list=self.is_list,
            place=self.place,
            written=path,
            calls=branch.calls,
        )
        for entry in composer.entries(messages(self._foreign(outgoing))):
            yield dumped(entry)
        told = {*self.titles, self.title or ""}
        if outgoing is self.outgoing and outgoing.title and outgoing.title not in told:
            kind, fields = "session_info", {"name": outgoing.title}
            if self.name != "pi":
                kind, fields = "title_change", {"title": outgoing.title, "source": "user"}
            yield dumped(composer.entry("title", outgoing.opened, type=kind, **fields))
        self.place, branch.written = composer.place, path[shared:]
        if outgoing is not self.outgoing:
            self.outgoing.losses.update(outgoing.losses)

    def _foreign(self, outgoing: Outgoing) -> Iterator[Part]:
        """The parts that did not come in this format; what the source recorded it says itself."""
        is_ours = False
        for part in outgoing.parts():
            match part:
                case Said():
                    is_ours = not _came_in(self.name, part)
                    if is_ours:
                        yield part
                case Called(call=call):
                    if is_ours and call.lineage != RECORDED:
                        yield part
                case Compacted(boundary=boundary):
                    if boundary.policy != RECORDED:
                        yield part

    def _tip(self, branch: _Branch) -> str | None:
        """The entry that what was added follows."""
        if branch.newest or branch.outgoing.fork is None:
            return branch.newest
        path = self._path(branch)
        return path[-1].id if path else None

    def _depth(self, branch: _Branch) -> int:
        """How many of these sessions left one another down to this one."""
        depth, fork = 0, branch.outgoing.fork
        while fork and fork.key in self.branches:
            depth, fork = depth + 1, self.branches[fork.key].outgoing.fork
        return depth

    def _path(self, branch: _Branch) -> list[Written]:
        """What was written from the root to the newest of the branch."""
        fork = branch.outgoing.fork
        if fork is None or fork.key not in self.branches:
            return list(branch.written)
        above = self._path(self.branches[fork.key])
        return [one for one in above if one.last <= fork.position] + branch.written
