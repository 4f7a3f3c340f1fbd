"""Converts the lines of a Claude Code transcript to steps."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..fields import JsonDict, MalformedError, get_field, json_name, require_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    RequestParameters,
)
from .conversations import ClaudeEntry, ConversationMap
from .entries import KEPT_ENTRY_TYPES, SKIPPED_ENTRY_TYPES, TITLE_FIELDS, PromptQueue, RequestAudit
from .entry_readers import EntryReaders, LineReport
from .entry_tree import EntryTree


class ClaudeTranscriptReader:
    def __init__(self, stem: str, first: JsonDict) -> None:
        self.sessions = ConversationMap(stem, first)
        self.report = LineReport(self.sessions.home)
        self.tree = EntryTree()
        self.readers = EntryReaders(self.sessions, self.tree, self.report)
        self.queue = PromptQueue()
        self.audit = RequestAudit()
        self.waiting = WaitingLines()
        self.untold: SourceLine | None = None
        """The newest line, until its outcome is reported."""
        self.seen: dict[str, int] = {}
        """Ids of the entries read, each with a hash of its content."""

    def read(self, line: SourceLine) -> list[ImportStep]:
        """Return the steps of one line, and of those that waited for it; none if it has to wait."""
        # A line that still waits when the next one comes counts as imported.
        steps: list[ImportStep] = [EntryEnd("imported", self.untold.end)] if self.untold else []
        self.untold = line
        return steps + self._read_all(self.waiting.take(line))

    def close(self, *, final: bool = False) -> list[ImportStep]:
        """Return the steps at the end of the file."""
        steps = self._read_all(self.waiting.release()) if final else []
        self.report.begin_line()
        for conversation in self.sessions.conversations.values():
            self.report.add_steps(conversation, conversation.finish_message())
            if boundary := conversation.boundary:
                # No compaction yet: its summary may be the very next line.
                reason = "the file ends between a compaction and its summary"
                self.report.add_problem(boundary.line, reason)
        return steps + self.report.steps

    def _read_all(self, lines: Iterable[SourceLine]) -> list[ImportStep]:
        """Return the steps of these lines, and the outcome of the newest one if included."""
        steps: list[ImportStep] = []
        end: EntryEnd | None = None
        for line in lines:
            steps += self._steps(line)
            if line is self.untold:
                end, self.untold = EntryEnd(self.report.outcome, line.end), None
        return [*steps, end] if end else steps

    def _steps(self, line: SourceLine) -> list[ImportStep]:
        self.report.begin_line()
        if line.problem:
            self.report.add_problem(line, line.problem, line.text or None)
        else:
            try:
                self._read(line)
            except (MalformedError, NestedTooDeeplyError) as error:
                self.report.add_problem(line, str(error), line.text)
        return self.report.steps

    def _read(self, line: SourceLine) -> None:
        item = line.value
        if not isinstance(item, dict):
            raise MalformedError(f"expected an object, got {json_name(item)}")
        kind = require_field(item, "type", str)
        if kind == "system":
            kind = f"system/{require_field(item, 'subtype', str)}"
        if kind in TITLE_FIELDS and self.sessions.set_title(
            kind, require_field(item, TITLE_FIELDS[kind], str)
        ):
            self.report.report_title(self.sessions.home)
        if kind == "queue-operation" and (prompt := self.queue.read_operation(item)):
            self.readers.append_queued_prompt(self._make_entry(item, kind, line), prompt)
        elif reader := self.readers.find_reader(kind):
            self.queue.told_otherwise |= kind == "attachment"
            self._read_once(self._make_entry(item, kind, line), reader)
        elif kind in KEPT_ENTRY_TYPES:
            if "uuid" in item:
                self._read_once(self._make_entry(item, kind, line), self.readers.keep)
            else:
                self.report.keep(line, kind)
        elif asked := self._read_request(item, kind, line):
            self.report.add_steps(self.sessions.home, [asked])
        elif reason := SKIPPED_ENTRY_TYPES.get(kind):
            self.report.skip(kind, reason)
            if "uuid" in item:
                self._skip_entry(self._make_entry(item, kind, line))
        else:
            if "uuid" in item:
                self._make_entry(item, kind, line)  # other entries may follow it
            self.report.add_unknown(line, kind)

    def _read_request(
        self, item: JsonDict, kind: str, line: SourceLine
    ) -> RequestParameters | None:
        match kind:
            case "api-request-shape":
                return self.audit.read_shape(item)
            case "api-request" if self.sessions.is_main_request(item):
                return self.audit.read_request(item, f"asked:{line.digest}")
            case _:
                return None

    def _make_entry(self, item: JsonDict, kind: str, line: SourceLine) -> ClaudeEntry:
        own = get_field(item, "uuid", str)
        id = own or line.digest
        above = get_field(item, "parentUuid", str)
        conversation = self.sessions.find_conversation(item, id, self.tree.nodes.get(above or ""))
        if id in self.seen:
            node = self.tree.nodes[id]
        else:
            rooted = "parentUuid" in item and above is None
            node = self.tree.add(id, above, conversation.context, rooted=rooted)
        get_field(item, "timestamp", str)
        self.report.owning_conversation, self.report.id = conversation, own
        self.report.previous_id = node.previous_id
        return ClaudeEntry(item, kind, line, conversation, node)

    def _skip_entry(self, entry: ClaudeEntry) -> None:
        """Skip an entry; its children follow its parent instead."""
        node = entry.node
        if node.id not in self.seen:
            above = entry.item.get("parentUuid") or ""
            node.skipped_parent_id = above if node.previous_id is None else node.previous_id

    def _read_once(self, entry: ClaudeEntry, reader: Callable[[ClaudeEntry], bool]) -> None:
        """Read an entry, unless one with its id was read before."""
        item = entry.item
        said = [entry.kind, item.get("message"), item.get("attachment"), item.get("content")]
        digest = hash(entry.line.to_json(said))
        known = self.seen.get(entry.node.id)
        if known is None:
            if reader(entry):
                self.seen[entry.node.id] = digest
        elif known == digest:
            self.report.skip(entry.kind, "repeated id")
        else:
            raise MalformedError(f"uuid: another entry has the id {entry.node.id}")


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def begin_reading(source: TranscriptSource) -> ClaudeTranscriptReader:
    return ClaudeTranscriptReader(source.stem, _find_first_entry(source))


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": _}:
            return "parentUuid" in value or "uuid" in value
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "messageId": _}:
            return True
        case {"type": "ai-title" | "custom-title", "sessionId": _}:
            return True
        case {"type": str(kind), "sessionId": _}:
            return kind in SKIPPED_ENTRY_TYPES or kind in KEPT_ENTRY_TYPES
        case _:
            return False


def _find_first_entry(source: TranscriptSource) -> JsonDict:
    """Return the first entry of a conversation, which identifies the session."""
    for line in source.read_lines():
        match line.value:
            case {"type": "user" | "assistant", "sessionId": str()}:
                return dict(line.value)
    return {}


@dataclass(slots=True)
class WaitingLines:
    """The waiting lines, in groups: a result without its call, and its descendants."""

    known_calls: set[str] = field(default_factory=set)
    groups: dict[int, list[SourceLine]] = field(default_factory=dict)
    """Groups by the number of their first line."""
    group_of: dict[str, int] = field(default_factory=dict)
    """The group of each waiting entry, by id."""
    wanted_calls: dict[str, set[int]] = field(default_factory=dict)

    def take(self, line: SourceLine) -> Iterator[SourceLine]:
        """Yield the lines that can be read now, in order; none if this one has to wait."""
        item = line.value if isinstance(line.value, dict) else {}
        answered = list(_call_ids(item, "user", "tool_result", "tool_use_id"))
        above = item.get("parentUuid")
        group = self.group_of.get(above) if isinstance(above, str) else None
        if group is not None and not answered and item.get("type") in ("user", "assistant"):
            yield from self._release(group)
        elif group is not None or (answered and self.known_calls.isdisjoint(answered)):
            self._hold(line, item, answered, line.number if group is None else group)
            return
        yield line
        for call in _call_ids(item, "assistant", "tool_use", "id"):
            self.known_calls.add(call)
            for waiting in sorted(self.wanted_calls.pop(call, ())):
                for held in self._release(waiting):
                    yield from self.take(held)

    def release(self) -> Iterator[SourceLine]:
        """Yield all lines that still wait."""
        for group in list(self.groups):
            yield from self._release(group)

    def _hold(
        self, line: SourceLine, item: dict[str, Any], answered: list[str], group: int
    ) -> None:
        self.groups.setdefault(group, []).append(line)
        if isinstance(id := item.get("uuid"), str):
            self.group_of[id] = group
        for call in answered:
            self.wanted_calls.setdefault(call, set()).add(group)

    def _release(self, group: int) -> list[SourceLine]:
        lines = self.groups.pop(group, [])
        for line in lines:
            if isinstance(id := line.value.get("uuid"), str):
                self.group_of.pop(id, None)
        return lines


def _call_ids(item: dict[str, Any], kind: str, part: str, field: str) -> Iterator[str]:
    """Yield the ids of tool calls that an entry of this kind makes or answers."""
    message = item.get("message") if item.get("type") == kind else None
    content = message.get("content") if isinstance(message, dict) else None
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("type") == part and isinstance(one.get(field), str):
            yield one[field]
