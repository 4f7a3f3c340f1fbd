"""Folds the lines of a Claude Code transcript into steps."""

from collections.abc import Callable, Iterable

from ..json_lines import Line, NestedTooDeeplyError
from ..reading.fields import Item, MalformedError, json_name, take, take_optional
from ..steps import Asked, EntryRead, Step
from .audit import Audit
from .entries import KEPT, SKIPPED, TITLES
from .queue import Queue
from .readers import Readers
from .report import Report
from .sessions import Entry, Sessions
from .tree import Tree
from .waiting import WaitingLines


class Transcript:
    """What is known of a file at some line of it."""

    def __init__(self, stem: str, first: Item) -> None:
        self.sessions = Sessions(stem, first)
        self.report = Report(self.sessions.home)
        self.tree = Tree()
        self.readers = Readers(self.sessions, self.tree, self.report)
        self.queue = Queue()
        self.audit = Audit()
        self.waiting = WaitingLines()
        self.untold: Line | None = None
        """The newest line, until its end was told."""
        self.seen: dict[str, int] = {}
        """Ids of the entries that were taken in, each with a hash of what it said."""

    def read(self, line: Line) -> list[Step]:
        """The steps of one line, and of those that waited for it; none where it has to wait."""
        # How a line ends that waits still is not known when the next one comes: not as an error.
        steps: list[Step] = [EntryRead("imported", self.untold.end)] if self.untold else []
        self.untold = line
        return steps + self._read_all(self.waiting.take(line))

    def close(self, *, final: bool = False) -> list[Step]:
        """The steps that the end of the file brings."""
        steps = self._read_all(self.waiting.release()) if final else []
        self.report.begin()
        for conversation in self.sessions.conversations.values():
            self.report.say(conversation, conversation.finish_message())
            if boundary := conversation.boundary:
                # No compaction yet: its summary may be the very next line to be written.
                reason = "the file ends between a compaction and its summary"
                self.report.problem(boundary.line, reason)
        return steps + self.report.steps

    def _read_all(self, lines: Iterable[Line]) -> list[Step]:
        """The steps of these lines, and the end of the newest of the file if it is among them."""
        steps: list[Step] = []
        end: EntryRead | None = None
        for line in lines:
            steps += self._steps(line)
            if line is self.untold:
                end, self.untold = EntryRead(self.report.outcome, line.end), None
        return [*steps, end] if end else steps

    def _steps(self, line: Line) -> list[Step]:
        self.report.begin()
        if line.problem:
            self.report.problem(line, line.problem, line.text or None)
        else:
            try:
                self._read(line)
            except (MalformedError, NestedTooDeeplyError) as error:
                self.report.problem(line, str(error), line.text)
        return self.report.steps

    def _read(self, line: Line) -> None:
        item = line.value
        if not isinstance(item, dict):
            raise MalformedError(f"expected an object, got {json_name(item)}")
        kind = take(item, "type", str)
        if kind == "system":
            kind = f"system/{take(item, 'subtype', str)}"
        if kind in TITLES and self.sessions.name(kind, take(item, TITLES[kind], str)):
            self.report.rename(self.sessions.home)
        if kind == "queue-operation" and (prompt := self.queue.given_by(item)):
            self.readers.queued(self._entry(item, kind, line), prompt)
        elif reader := self.readers.of(kind):
            self.queue.told_otherwise |= kind == "attachment"
            self._once(self._entry(item, kind, line), reader)
        elif kind in KEPT:
            if "uuid" in item:
                self._once(self._entry(item, kind, line), self.readers.keep)
            else:
                self.report.keep(line, kind)
        elif asked := self._asked(item, kind, line):
            self.report.say(self.sessions.home, [asked])
        elif reason := SKIPPED.get(kind):
            self.report.skip(kind, reason)
            if "uuid" in item:
                self._pass(self._entry(item, kind, line))
        else:
            if "uuid" in item:
                self._entry(item, kind, line)  # other entries may follow it
            self.report.unknown(line, kind)

    def _asked(self, item: Item, kind: str, line: Line) -> Asked | None:
        match kind:
            case "api-request-shape":
                return self.audit.shape(item)
            case "api-request" if self.sessions.is_homes(item):
                return self.audit.request(item, f"asked:{line.digest}")
            case _:
                return None

    def _entry(self, item: Item, kind: str, line: Line) -> Entry:
        own = take_optional(item, "uuid", str)
        id = own or line.digest
        above = take_optional(item, "parentUuid", str)
        conversation = self.sessions.of(item, id, self.tree.nodes.get(above or ""))
        if id in self.seen:
            node = self.tree.nodes[id]
        else:
            rooted = "parentUuid" in item and above is None
            node = self.tree.add(id, above, conversation.context, rooted=rooted)
        take_optional(item, "timestamp", str)
        self.report.owner, self.report.id = conversation, own
        self.report.follows = node.follows
        return Entry(item, kind, line, conversation, node)

    def _pass(self, entry: Entry) -> None:
        """An entry that is not kept: whatever follows it comes after what it follows itself."""
        node = entry.node
        if node.id not in self.seen:
            above = entry.item.get("parentUuid") or ""
            node.skipped = above if node.follows is None else node.follows

    def _once(self, entry: Entry, reader: Callable[[Entry], bool]) -> None:
        """Read an entry, unless one with its id was read before."""
        item = entry.item
        said = [entry.kind, item.get("message"), item.get("attachment"), item.get("content")]
        digest = hash(entry.line.json(said))
        known = self.seen.get(entry.node.id)
        if known is None:
            if reader(entry):
                self.seen[entry.node.id] = digest
        elif known == digest:
            self.report.skip(entry.kind, "repeated id")
        else:
            raise MalformedError(f"uuid: another entry has the id {entry.node.id}")
