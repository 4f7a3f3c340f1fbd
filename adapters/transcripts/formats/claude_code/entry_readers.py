"""Reads each type of entry of a Claude Code transcript."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, ToolResult
from ..fields import JsonDict, MalformedError, get_field, require_field
from ..json_lines import SourceLine
from ..steps import Append, ImportStep, RawEntry, SkippedEntry, SourceProblem, UnknownEntry
from ..summary_mark import find_marked_summary
from .attachments import read_attachment
from .content import IndexedBlocks, UnknownItemError, read_assistant_item, read_user_item
from .conversations import ClaudeConversation, ClaudeEntry, ConversationMap, OrphanResultError
from .entries import classify_user_text, read_message_items, read_message_text
from .entry_tree import SHORTENING_READERS, EntryTree, PendingCompaction, read_boundary

_ItemReader = Callable[[JsonDict, Any, SourceLine], AnyBlock]


@dataclass(slots=True)
class _ReadItems:
    """The result of reading a content's items."""

    blocks: list[tuple[int, Any, AnyBlock]] = field(default_factory=list)
    """Each with the index of its item, and the item."""
    unknown_items: list[tuple[int, str, Any]] = field(default_factory=list)
    malformed_items: list[tuple[int, str, Any]] = field(default_factory=list)
    orphan_results: IndexedBlocks = field(default_factory=dict)

    def refuse(self, index: int, error: MalformedError, item: Any) -> None:
        """Record that the item at that index cannot be read."""
        self.malformed_items.append((index, f"message.content[{index}]: {error}", item))


@dataclass(slots=True)
class LineReport:
    """The steps of a line, each under its session."""

    home: ClaudeConversation
    """The conversation for what belongs to no other."""
    current: ClaudeConversation | None = None
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"
    owning_conversation: ClaudeConversation = field(init=False)
    id: str | None = None
    previous_id: str | None = None
    """As in the origin of a block."""
    key_counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.owning_conversation = self.home

    def begin_line(self) -> None:
        self.steps, self.outcome = [], "imported"
        self.owning_conversation, self.id, self.previous_id = self.home, None, None

    def add_steps(self, conversation: ClaudeConversation, steps: Iterable[ImportStep]) -> None:
        for step in steps:
            self._enter_conversation(conversation)
            self.steps.append(step)

    def report_title(self, conversation: ClaudeConversation) -> None:
        self.current = None
        self._enter_conversation(conversation)

    def skip(self, kind: str, reason: str) -> None:
        """Record that the entry is known and has no content."""
        self.outcome = "skipped"
        self.steps.append(SkippedEntry(kind, reason))

    def keep(self, line: SourceLine, kind: str) -> None:
        """Keep a known entry unchanged; no model was sent it."""
        self._enter_conversation(self.owning_conversation)
        key = f"{self.id}:entry" if self.id else self.name_line(line)
        self.steps.append(RawEntry(key, kind, line.text, self.id, line.number, self.previous_id))

    def add_unknown(self, line: SourceLine, kind: str) -> None:
        """Record an entry of unknown type, or with only unknown items."""
        self._count_unknown()
        key = self.name_line(line)
        self.steps.append(
            UnknownEntry(key, kind, line.text, line.number, self.id, self.previous_id)
        )

    def add_unknown_item(self, line: SourceLine, kind: str, raw: str, index: int) -> None:
        """Record an item of unknown type. The rest of the entry holds it too."""
        self._count_unknown()
        self.steps.append(UnknownEntry(f"{line.digest}:{index}", kind, raw))

    def add_problem(
        self, line: SourceLine, reason: str, raw: str | None = None, append: Append | None = None
    ) -> None:
        """Record that all or part of the entry cannot be read. `raw` is the entry if nothing was
        read.
        """
        self.outcome = "error"
        if raw is None:
            self.steps.append(SourceProblem(line.number, reason))
        else:
            self._enter_conversation(self.owning_conversation)
            key = self.name_line(line)
            problem = SourceProblem(line.number, reason, key, raw, self.previous_id, append=append)
            self.steps.append(problem)

    def add_problem_item(self, line: SourceLine, reason: str, raw: str, index: int) -> None:
        """Record that an item cannot be read. The rest of the entry holds it too."""
        self.outcome = "error"
        self._enter_conversation(self.owning_conversation)
        key = f"{line.digest}:{index}"
        self.steps.append(SourceProblem(line.number, reason, key, raw, is_part=True))

    def name_line(self, line: SourceLine) -> str:
        """Return a unique key for a line without an id; the same line may occur more than once."""
        self.key_counts[line.digest] += 1
        times = self.key_counts[line.digest]
        return line.digest if times == 1 else f"{line.digest}:{times}"

    def _count_unknown(self) -> None:
        if self.outcome != "error":
            self.outcome = "unknown"
        self._enter_conversation(self.owning_conversation)

    def _enter_conversation(self, conversation: ClaudeConversation) -> None:
        if self.current is not conversation:
            self.current = conversation
            self.steps.append(conversation.begin)


@dataclass(slots=True)
class EntryReaders:
    """Readers of entries. Each returns whether it accepted the entry."""

    sessions: ConversationMap
    tree: EntryTree
    report: LineReport

    def find_reader(self, kind: str) -> Callable[[ClaudeEntry], bool] | None:
        """Return the reader of a type of entries."""
        match kind:
            case "user":
                return self.read_user
            case "assistant":
                return self.read_assistant
            case "attachment":
                return self.read_attachment_entry
            case "system/local_command":
                return self.read_local_command
            case "system/compact_boundary":
                return self.read_boundary_entry
            case _:
                return self.read_shortening if kind in SHORTENING_READERS else None

    def read_user(self, entry: ClaudeEntry) -> bool:
        told = _read_summary_text(entry.item)
        if told is not None:
            return self.read_summary(entry, told)
        if entry.item.get("isVisibleInTranscriptOnly") is True:
            return self.keep(entry)
        message, conversation = _message_of(entry), entry.conversation
        made = self._read_items(entry, message, read_user_item)
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
        return True

    def read_assistant(self, entry: ClaudeEntry) -> bool:
        message, conversation = _message_of(entry), entry.conversation
        entry.message_id = get_field(message, "id", str, "message.") or None
        id = entry.message_id or entry.node.id
        made = self._read_items(entry, message, read_assistant_item)
        if made.blocks:
            self._finish_boundary(conversation)
            self.report.add_steps(conversation, conversation.finish_message(next_id=id))
        appended = self._append(entry, made)
        if appended:
            time = get_field(entry.item, "timestamp", str)
            begins = conversation.begin_message(id, entry.node.id, time)
            conversation.context.add_entry(entry.node, begins=begins)
        try:
            conversation.update_message(id, message)
        except MalformedError as error:
            self.report.add_problem(entry.line, str(error))
        return True

    def read_attachment_entry(self, entry: ClaudeEntry) -> bool:
        try:
            made = read_attachment(entry.item, entry.line)
        except UnknownItemError as error:
            self.report.add_unknown(entry.line, f"attachment/{error}")
            return True
        return self._append_aside(entry, made) if made else self.keep(entry)

    def keep(self, entry: ClaudeEntry) -> bool:
        self.report.keep(entry.line, entry.kind)
        return True

    def read_local_command(self, entry: ClaudeEntry) -> bool:
        text = require_field(entry.item, "content", str)
        return self._append_aside(entry, [Block.developer(text, name="local_command")])

    def read_shortening(self, entry: ClaudeEntry) -> bool:
        conversation = entry.conversation
        tell = SHORTENING_READERS[entry.kind]
        told = tell(entry.item, f"{entry.node.id}:shortened", conversation.answer_entries)
        self.keep(entry)
        if told.replacements:
            self.report.add_steps(conversation, [told])
        return True

    def append_queued_prompt(self, entry: ClaudeEntry, prompt: str) -> None:
        kind = classify_user_text({}, prompt)
        self._append_aside(entry, [Block(kind=kind, text=prompt)])

    def read_boundary_entry(self, entry: ClaudeEntry) -> bool:
        conversation = entry.conversation
        self._finish_boundary(conversation)
        entry.node.nearest_above = (
            None  # the next entry starts a new chain, whatever parent it names
        )
        conversation.context.add_entry(entry.node, begins=True, blocks=False)
        conversation.boundary = read_boundary(entry.item, entry.line, entry.node, self.tree)
        last = entry.item.get("logicalParentUuid")
        if isinstance(last, str) and (passed := self.tree.nodes.get(last)):
            self.report.previous_id = passed.skipped_parent_id  # it has no parent
        return self.keep(entry)

    def read_summary(self, entry: ClaudeEntry, text: str) -> bool:
        conversation, node = entry.conversation, entry.node
        if not text:
            self.report.add_problem(entry.line, "a compaction's summary without a text")
        boundary = conversation.boundary
        if boundary is None:
            time = get_field(entry.item, "timestamp", str)
            boundary = PendingCompaction(entry.line, node, time=time)
        else:
            node.nearest_above = boundary.node
        conversation.context.add_entry(node, begins=boundary.node is node, blocks=False)
        if boundary.node.last_id is None:
            return self._append_inherited_summary(entry, text)
        partial = boundary.is_partial or entry.item.get("summarizeMetadata") is not None
        if partial and not boundary.kept_ids:
            boundary.partial_reason = "what it kept"
            self.report.add_problem(
                entry.line, "a partial compaction that does not say what it kept"
            )
        self.keep(entry)
        self.report.add_steps(conversation, conversation.compact(boundary, text or None, self.tree))
        self.tree.keep(boundary.kept_ids, node)
        return True

    def _append_inherited_summary(self, entry: ClaudeEntry, text: str) -> bool:
        """Append a summary of another file's content, if nothing precedes it."""
        entry.conversation.boundary = None
        if not text:
            return self.keep(entry)
        entry.node.last_id = entry.node.id
        self._append_blocks(entry, {0: Block.developer(text, name="summary")})
        return True

    def _read_items(self, entry: ClaudeEntry, message: JsonDict, read: _ItemReader) -> _ReadItems:
        """Return the blocks of a message, each with its index in the content."""
        made = _ReadItems()
        for index, item in enumerate(read_message_items(message)):
            try:
                block = read(entry.item, item, entry.line)
            except UnknownItemError as error:
                made.unknown_items.append((index, f"{entry.kind}/{error}", item))
            except MalformedError as error:
                made.refuse(index, error, item)
            else:
                if block.text or block.native or not isinstance(block, Block) or block.media:
                    made.blocks.append((index, item, block))
        return made

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
            self._append_blocks(entry, held)
        for index, reason, item in made.malformed_items:
            if whole:
                alone = (
                    len(made.malformed_items) == len(made.orphan_results) == 1
                    and not made.unknown_items
                )
                append = next(_make_appends(entry, made.orphan_results)) if alone else None
                self.report.add_problem(line, reason, line.text, append)
                whole = False
            else:
                self.report.add_problem_item(line, reason, line.to_json(item), index)
        for index, kind, item in made.unknown_items:
            if whole:
                self.report.add_unknown(line, kind)
                whole = False
            else:
                self.report.add_unknown_item(line, kind, line.to_json(item), index)
        if whole:
            self.keep(entry)
        return list(held.values())

    def _append_blocks(self, entry: ClaudeEntry, held: IndexedBlocks) -> None:
        self.report.add_steps(entry.conversation, _make_appends(entry, held))

    def _append_aside(self, entry: ClaudeEntry, blocks: list[Any]) -> bool:
        """Append what is neither prompt nor answer. It is never a point to rewind to."""
        conversation = entry.conversation
        self._append_blocks(entry, dict(enumerate(blocks)))
        if conversation.context.count_staying(entry.node) is None:
            conversation.context.add_entry(entry.node)
        if conversation.boundary:
            conversation.boundary.later_ids.append(entry.node.id)
        return True

    def _finish_boundary(self, conversation: ClaudeConversation) -> None:
        """Record a boundary without a summary as a compaction."""
        if conversation.boundary:
            self.report.add_steps(
                conversation, conversation.compact(conversation.boundary, None, self.tree)
            )


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
