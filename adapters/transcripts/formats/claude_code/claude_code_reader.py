"""Converts the lines of a Claude Code transcript to steps."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, ToolResult
from ..fields import JsonDict, MalformedError, get_field, require_field, require_object
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import Append, EntryEnd, ImportStep, RequestParameters
from ..summary_mark import find_marked_summary
from .attachments import read_attachment
from .content import IndexedBlocks, UnknownItemError, read_assistant_item, read_user_item
from .conversations import ClaudeConversation, ClaudeEntry, ConversationMap, OrphanResultError
from .entries import (
    KEPT_ENTRY_TYPES,
    SKIPPED_ENTRY_TYPES,
    TITLE_FIELDS,
    PromptQueue,
    RequestAudit,
    classify_user_text,
    read_message_items,
    read_message_text,
)
from .entry_tree import SHORTENING_READERS, EntryTree, PendingCompaction, read_boundary
from .line_report import LineReport, WaitingLines

_ItemReader = Callable[[JsonDict, Any, SourceLine], AnyBlock]


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def begin_reading(source: TranscriptSource) -> "ClaudeTranscriptReader":
    return ClaudeTranscriptReader(source.stem, _find_first_entry(source))


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": "user" | "assistant" | "system" | "attachment" | "progress", "sessionId": _}:
            return "parentUuid" in value or "uuid" in value
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "messageId": _}:
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
class _ReadItems:
    blocks: list[tuple[int, Any, AnyBlock]] = field(default_factory=list)
    unknown: list[tuple[int, str, Any]] = field(default_factory=list)
    malformed: list[tuple[int, str, Any]] = field(default_factory=list)
    orphan_results: IndexedBlocks = field(default_factory=dict)

    def refuse(self, index: int, error: MalformedError, item: Any) -> None:
        self.malformed.append((index, f"message.content[{index}]: {error}", item))


class ClaudeTranscriptReader:
    def __init__(self, stem: str, first: JsonDict) -> None:
        self.sessions = ConversationMap(stem, first)
        self.report = LineReport(self.sessions.home)
        self.tree = EntryTree()
        self.queue = PromptQueue()
        self.audit = RequestAudit()
        self.waiting = WaitingLines()
        self.untold: SourceLine | None = None
        """The newest line, until its outcome is reported."""
        self.seen: dict[str, int] = {}
        """Ids of the entries read, each with a hash of its content."""
        self.readers: dict[str, Callable[[ClaudeEntry], None]] = {
            "user": self._read_user,
            "assistant": self._read_assistant,
            "attachment": self._read_attachment,
            "system/local_command": self._read_local_command,
            "system/compact_boundary": self._read_boundary,
            **dict.fromkeys(SHORTENING_READERS, self._read_shortening),
        }

    def read(self, line: SourceLine) -> list[ImportStep]:
        """Return the steps of one line, and of those that waited for it; none if it has to wait."""
        # A line that still waits when the next one comes counts as imported.
        steps: list[ImportStep] = [EntryEnd("imported", self.untold.end)] if self.untold else []
        self.untold = line
        return steps + self._read_all(self.waiting.take(line))

    def close(self, *, final: bool = False) -> list[ImportStep]:
        steps = self._read_all(self.waiting.release()) if final else []
        self.report.begin_line()
        for conversation in self.sessions.conversations.values():
            self.report.add_steps(conversation, conversation.finish_message())
            if boundary := conversation.boundary:
                # No compaction yet: its summary may be the very next line.
                reason = "the file ends between a compaction and its summary"
                self.report.add_remark(boundary.line, reason)
        return steps + self.report.steps

    def _read_all(self, lines: Iterable[SourceLine]) -> list[ImportStep]:
        """Return the steps of these lines, and the outcome of the newest one if included."""
        steps: list[ImportStep] = []
        end: EntryEnd | None = None
        for line in lines:
            self.report.begin_line()
            if line.problem and not line.text:
                self.report.add_remark(line, line.problem)
            elif line.problem:
                self.report.add_problem(line, line.problem)
            else:
                try:
                    self._read(line)
                except (MalformedError, NestedTooDeeplyError) as error:
                    self.report.add_problem(line, str(error))
            steps += self.report.steps
            if line is self.untold:
                end, self.untold = EntryEnd(self.report.outcome, line.end), None
        return [*steps, end] if end else steps

    def _read(self, line: SourceLine) -> None:
        item = require_object(line.value)
        kind = require_field(item, "type", str)
        if kind == "system":
            kind = f"system/{require_field(item, 'subtype', str)}"
        if kind in TITLE_FIELDS and self.sessions.set_title(
            kind, require_field(item, TITLE_FIELDS[kind], str)
        ):
            self.report.report_title(self.sessions.home)
        if kind == "queue-operation" and (prompt := self.queue.read_operation(item)):
            block = Block(kind=classify_user_text({}, prompt), text=prompt)
            self._append_aside(self._make_entry(item, kind, line), [block])
        elif reader := self.readers.get(kind):
            self.queue.told_otherwise |= kind == "attachment"
            self._read_once(self._make_entry(item, kind, line), reader)
        elif kind in KEPT_ENTRY_TYPES:
            if "uuid" in item:
                self._read_once(self._make_entry(item, kind, line), self._keep)
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
        if kind == "api-request-shape":
            return self.audit.read_shape(item)
        if kind == "api-request" and self.sessions.is_main_request(item):
            return self.audit.read_request(item, f"asked:{line.digest}")
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
        self.report.owner, self.report.id = conversation, own
        self.report.previous_id = node.previous_id
        return ClaudeEntry(item, kind, line, conversation, node)

    def _skip_entry(self, entry: ClaudeEntry) -> None:
        """Skip an entry; its children follow its parent instead."""
        node = entry.node
        if node.id not in self.seen:
            above = entry.item.get("parentUuid") or ""
            node.skipped_parent_id = above if node.previous_id is None else node.previous_id

    def _read_once(self, entry: ClaudeEntry, reader: Callable[[ClaudeEntry], None]) -> None:
        """Read an entry, unless one with its id was read before."""
        item = entry.item
        said = [entry.kind, item.get("message"), item.get("attachment"), item.get("content")]
        digest = hash(entry.line.to_json(said))
        known = self.seen.get(entry.node.id)
        if known is None:
            reader(entry)
            self.seen[entry.node.id] = digest
        elif known == digest:
            self.report.skip(entry.kind, "repeated id")
        else:
            raise MalformedError(f"uuid: another entry has the id {entry.node.id}")

    def _keep(self, entry: ClaudeEntry) -> None:
        self.report.keep(entry.line, entry.kind)

    def _read_user(self, entry: ClaudeEntry) -> None:
        told = _read_summary_text(entry.item)
        if told is not None:
            self._read_summary(entry, told)
            return
        if entry.item.get("isVisibleInTranscriptOnly") is True:
            self._keep(entry)
            return
        message, conversation = _message_of(entry), entry.conversation
        made = _read_items(entry, message, read_user_item)
        results = [one.tool_call_id for *_, one in made.blocks if isinstance(one, ToolResult)]
        if made.blocks:
            self._finish_boundary(conversation)
            if not results:
                self.report.add_steps(conversation, conversation.rewind(entry.node))
        appended = self._append(entry, made)
        if appended:
            prompt = not results and any(block.kind is Kind.USER for block in appended)
            conversation.context.add_entry(entry.node, begins=prompt)
        if results:
            links = self.sessions.link_sub_agent(entry.item, conversation, results[0])
            self.report.add_steps(conversation, links)

    def _read_assistant(self, entry: ClaudeEntry) -> None:
        message, conversation = _message_of(entry), entry.conversation
        entry.message_id = get_field(message, "id", str, "message.") or None
        id = entry.message_id or entry.node.id
        made = _read_items(entry, message, read_assistant_item)
        if made.blocks:
            self._finish_boundary(conversation)
            self.report.add_steps(conversation, conversation.finish_message(next_id=id))
        if self._append(entry, made):
            time = get_field(entry.item, "timestamp", str)
            begins = conversation.begin_message(id, entry.node.id, time)
            conversation.context.add_entry(entry.node, begins=begins)
        try:
            conversation.update_message(id, message)
        except MalformedError as error:
            self.report.add_remark(entry.line, str(error))

    def _read_attachment(self, entry: ClaudeEntry) -> None:
        try:
            made = read_attachment(entry.item, entry.line)
        except UnknownItemError as error:
            self.report.add_unknown(entry.line, f"attachment/{error}")
            return
        if made:
            self._append_aside(entry, made)
        else:
            self._keep(entry)

    def _read_local_command(self, entry: ClaudeEntry) -> None:
        text = require_field(entry.item, "content", str)
        self._append_aside(entry, [Block.developer(text, name="local_command")])

    def _read_shortening(self, entry: ClaudeEntry) -> None:
        conversation = entry.conversation
        read = SHORTENING_READERS[entry.kind]
        told = read(entry.item, f"{entry.node.id}:shortened", conversation.answer_entries)
        self._keep(entry)
        if told.replacements:
            self.report.add_steps(conversation, [told])

    def _read_boundary(self, entry: ClaudeEntry) -> None:
        conversation, node = entry.conversation, entry.node
        self._finish_boundary(conversation)
        node.nearest_above = None  # the next entry starts a new chain, whatever parent it names
        conversation.context.add_entry(node, begins=True, blocks=False)
        conversation.boundary = read_boundary(entry.item, entry.line, node, self.tree)
        last = entry.item.get("logicalParentUuid")
        if isinstance(last, str) and (passed := self.tree.nodes.get(last)):
            self.report.previous_id = passed.skipped_parent_id  # it has no parent
        self._keep(entry)

    def _read_summary(self, entry: ClaudeEntry, text: str) -> None:
        conversation, node = entry.conversation, entry.node
        if not text:
            self.report.add_remark(entry.line, "a compaction's summary without a text")
        boundary = conversation.boundary
        if boundary is None:
            time = get_field(entry.item, "timestamp", str)
            boundary = PendingCompaction(entry.line, node, time=time)
        else:
            node.nearest_above = boundary.node
        conversation.context.add_entry(node, begins=boundary.node is node, blocks=False)
        if boundary.node.last_id is None:  # nothing precedes it: it sums up another file
            conversation.boundary = None
            if text:
                node.last_id = node.id
                held: IndexedBlocks = {0: Block.developer(text, name="summary")}
                self.report.add_steps(conversation, _make_appends(entry, held))
            else:
                self._keep(entry)
            return
        partial = boundary.is_partial or entry.item.get("summarizeMetadata") is not None
        if partial and not boundary.kept_ids:
            boundary.partial_reason = "what it kept"
            reason = "a partial compaction that does not say what it kept"
            self.report.add_remark(entry.line, reason)
        self._keep(entry)
        self.report.add_steps(conversation, conversation.compact(boundary, text or None, self.tree))
        self.tree.keep(boundary.kept_ids, node)

    def _append(self, entry: ClaudeEntry, made: _ReadItems) -> list[AnyBlock]:
        """Append the valid blocks, then report what is wrong with the others.

        If no block is left, the entry is kept unchanged.
        """
        held: IndexedBlocks = {}
        for index, item, block in made.blocks:
            try:
                entry.conversation.check_pairing(entry.node, block, item)
            except MalformedError as error:
                made.refuse(index, error, item)
                if isinstance(error, OrphanResultError):
                    made.orphan_results[index] = block
            else:
                held[index] = block
        line, whole = entry.line, not held
        if held:
            self.report.add_steps(entry.conversation, _make_appends(entry, held))
        is_orphan = len(made.malformed) == len(made.orphan_results) == 1 and not made.unknown
        for index, reason, item in made.malformed:
            part = None if whole else (index, item)
            append = (
                next(_make_appends(entry, made.orphan_results)) if whole and is_orphan else None
            )
            self.report.add_problem(line, reason, part, append)
            whole = False
        for index, kind, item in made.unknown:
            self.report.add_unknown(line, kind, None if whole else (index, item))
            whole = False
        if whole:
            self._keep(entry)
        return list(held.values())

    def _append_aside(self, entry: ClaudeEntry, blocks: list[Any]) -> None:
        """Append what is neither prompt nor answer. It is never a point to rewind to."""
        conversation = entry.conversation
        self.report.add_steps(conversation, _make_appends(entry, dict(enumerate(blocks))))
        if conversation.context.count_staying(entry.node) is None:
            conversation.context.add_entry(entry.node)
        if conversation.boundary:
            conversation.boundary.later_ids.append(entry.node.id)

    def _finish_boundary(self, conversation: ClaudeConversation) -> None:
        """Record a boundary without a summary as a compaction."""
        if boundary := conversation.boundary:
            self.report.add_steps(conversation, conversation.compact(boundary, None, self.tree))


def _read_items(entry: ClaudeEntry, message: JsonDict, read: _ItemReader) -> _ReadItems:
    made = _ReadItems()
    for index, item in enumerate(read_message_items(message)):
        try:
            block = read(entry.item, item, entry.line)
        except UnknownItemError as error:
            made.unknown.append((index, f"{entry.kind}/{error}", item))
        except MalformedError as error:
            made.refuse(index, error, item)
        else:
            if block.text or block.native or not isinstance(block, Block) or block.media:
                made.blocks.append((index, item, block))
    return made


def _make_appends(entry: ClaudeEntry, held: IndexedBlocks) -> Iterator[Append]:
    for index, block in entry.pair_blocks(held):
        yield Append(f"{entry.node.id}:{index}", block, entry.node.id)


def _read_summary_text(item: JsonDict) -> str | None:
    """Return the text of a summary: Claude Code's own, or one that cutbank marked on export."""
    text = read_message_text(item)
    if told := find_marked_summary(item, text):
        return told.text
    return text if item.get("isCompactSummary") is True else None


def _message_of(entry: ClaudeEntry) -> JsonDict:
    message = require_field(entry.item, "message", dict)
    role = get_field(message, "role", str, "message.")
    if role not in (None, entry.kind):
        raise MalformedError(f"message.role: expected {entry.kind}, got {role}")
    return message
