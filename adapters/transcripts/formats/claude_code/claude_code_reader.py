"""Converts the lines of a Claude Code transcript to steps."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .....domain.blocks import AnyBlock, Block, BlockKind, ToolResult
from ..entry_steps import read_entry
from ..fields import (
    JsonDict,
    MalformedError,
    UnknownItemError,
    get_field,
    require_field,
    require_object,
)
from ..format import LineReader
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RequestParameters, SourceProblem
from ..summary_mark import find_marked_summary
from .compactions import SHORTENING_READERS, keep_after_summary, read_boundary
from .content import (
    IndexedBlocks,
    read_assistant_item,
    read_attachment,
    read_user_item,
)
from .conversations import ClaudeEntry, ConversationMap
from .entries import (
    FORMAT_NAME,
    SKIPPED_ENTRY_TYPES,
    TITLE_FIELDS,
    PromptQueue,
    WaitingLines,
    classify_user_text,
    read_message_items,
    read_message_text,
)


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
            return kind in SKIPPED_ENTRY_TYPES
        case _:
            return False


def _find_first_entry(source: TranscriptSource) -> JsonDict:
    """Return the first entry of a conversation, which identifies the session."""
    for line in source.read_lines():
        match line.value:
            case {"type": "user" | "assistant", "sessionId": str()}:
                return dict(line.value)
    return {}


class ClaudeTranscriptReader(LineReader):
    def __init__(self, stem: str, first: JsonDict) -> None:
        self.sessions = ConversationMap(stem, first)
        self.queue = PromptQueue()
        self.waiting = WaitingLines()
        self.pending_line: SourceLine | None = None
        """The newest line, until its end is reported."""

    def read(self, line: SourceLine) -> list[ImportStep]:
        """Return the steps of one line, and of those that waited for it; none if it has to wait."""
        # A line that still waits when the next one comes counts as imported.
        last = self.pending_line
        steps: list[ImportStep] = [EntryEnd(last.end)] if last else []
        self.pending_line = line
        return steps + self._read_all(self.waiting.take(line))

    def close(self, *, final: bool = False) -> list[ImportStep]:
        steps = self._read_all(self.waiting.release()) if final else []
        for conversation in self.sessions.conversations.values():
            steps += self.sessions.enter(conversation, conversation.finish_message())
            if boundary := conversation.boundary:
                # No compaction yet: its summary may be the very next line.
                reason = "the file ends between a compaction and its summary"
                steps.append(SourceProblem(boundary.line.number, reason))
        return steps

    def _read_all(self, lines: Iterable[SourceLine]) -> list[ImportStep]:
        """Return the steps of these lines, and the end of the newest one if included."""
        steps: list[ImportStep] = []
        end: ImportStep | None = None
        for line in lines:
            home = self.sessions.home
            entry = ClaudeEntry(
                FORMAT_NAME,
                line,
                line.number,
                line.value,
                sessions=self.sessions,
                conversation=home,
            )
            *found, ended = read_entry(entry, self._read)
            steps += found
            if line is self.pending_line:
                end, self.pending_line = ended, None
        return [*steps, end] if end else steps

    def _read(self, entry: ClaudeEntry) -> None:
        item = require_object(entry.value)
        kind = require_field(item, "type", str)
        if kind == "system":
            kind = f"system/{require_field(item, 'subtype', str)}"
        entry.kind = kind
        if field := TITLE_FIELDS.get(kind):
            entry.steps += self.sessions.read_title(kind, require_field(item, field, str))
        if kind == "queue-operation" and (prompt := self.queue.read_operation(item)):
            entry.place()
            _append_aside(entry, [Block(kind=classify_user_text({}, prompt), text=prompt)])
        elif reader := _READERS.get(kind):
            self.queue.told_otherwise |= kind == "attachment"
            _read_once(entry, reader)
        else:
            if "uuid" in item:
                entry.place()  # other entries may follow it
            entry.skip_known(kind, SKIPPED_ENTRY_TYPES)


def _read_once(entry: ClaudeEntry, reader: Callable[[ClaudeEntry], None]) -> None:
    """Read an entry, unless one with its id was read before."""
    entry.place()
    item, node = entry.value, entry.node
    contents = [entry.kind, item.get("message"), item.get("attachment"), item.get("content")]
    content_hash = hash(entry.line.to_json(contents))
    if node.content_hash is None:
        reader(entry)
        node.content_hash = content_hash
    elif node.content_hash == content_hash:
        entry.skip("repeated id")
    else:
        raise MalformedError(f"uuid: another entry has the id {node.id}")


def _read_user(entry: ClaudeEntry) -> None:
    summary = _read_summary_text(entry.value)
    if summary is not None:
        _read_summary(entry, summary)
        return
    if entry.value.get("isVisibleInTranscriptOnly") is True:
        entry.skip()
        return
    conversation = entry.conversation
    found = _read_items(entry, _read_message(entry), read_user_item)
    results = [block.tool_call_id for block in found.values() if isinstance(block, ToolResult)]
    if found:
        _finish_boundary(entry)
        if not results:
            entry.add(*conversation.rewind(entry.node))
    if blocks := _append_items(entry, found):
        begins = not results and any(block.kind is BlockKind.USER for block in blocks)
        conversation.add_to_context(entry.node, begins=begins)
    if results:
        entry.add(*entry.sessions.link_sub_agent(entry.value, conversation, results[0]))


def _read_assistant(entry: ClaudeEntry) -> None:
    message, conversation = _read_message(entry), entry.conversation
    entry.message_id = get_field(message, "id", str, "message.") or None
    id = entry.message_id or entry.node.id
    found = _read_items(entry, message, read_assistant_item)
    if found:
        _finish_boundary(entry)
        entry.add(*conversation.finish_message(next_id=id))
    if _append_items(entry, found):
        time = get_field(entry.value, "timestamp", str)
        begins = conversation.begin_message(id, entry.node.id, time)
        conversation.add_to_context(entry.node, begins=begins)
    if conversation.message and conversation.message.id == id:
        try:
            conversation.message.update(message)
        except MalformedError as error:
            entry.add_problem(str(error))


def _read_attachment(entry: ClaudeEntry) -> None:
    match entry.value.get("attachment"):
        case {"type": "prompt_snapshot", "systemPrompt": list(pieces)} as snapshot:
            texts = [snapshot.get("cliPrefix"), *pieces]
            prompt = "\n\n".join(text for text in texts if isinstance(text, str))
            tools = get_field(snapshot, "tools", list, "attachment.")
            entry.add(RequestParameters(f"{entry.node.id}:asked", prompt, tools))
            return
    try:
        blocks = read_attachment(entry.value, entry.line)
    except UnknownItemError as error:
        entry.add_unknown(f"attachment/{error}")
        return
    if blocks:
        _append_aside(entry, blocks)
    else:
        entry.skip()


def _read_local_command(entry: ClaudeEntry) -> None:
    text = require_field(entry.value, "content", str)
    _append_aside(entry, [Block.developer(text, name="local_command")])


def _read_shortening(entry: ClaudeEntry) -> None:
    read = SHORTENING_READERS[entry.kind]
    answered = entry.conversation.answer_entries
    shortening = read(entry.value, f"{entry.node.id}:shortened", answered)
    entry.skip()
    if shortening.replacements:
        entry.add(shortening)


def _read_boundary(entry: ClaudeEntry) -> None:
    conversation, node, nodes = entry.conversation, entry.node, entry.sessions.nodes
    _finish_boundary(entry)
    node.nearest_above = None  # the next entry starts a new chain, whatever parent it names
    conversation.add_to_context(node, begins=True, blocks=False)
    conversation.boundary = read_boundary(entry.value, entry.line, node, nodes)
    entry.mark_compaction(entry.kind)


def _finish_boundary(entry: ClaudeEntry) -> None:
    """Record a boundary without a summary as a compaction."""
    conversation = entry.conversation
    if boundary := conversation.boundary:
        entry.add(*conversation.compact(boundary, None, entry.sessions.nodes))


def _read_summary_text(item: JsonDict) -> str | None:
    """Return the text of a summary: Claude Code's own, or one that cutbank marked on export."""
    text = read_message_text(item)
    if marked := find_marked_summary(item, text):
        return marked.text
    return text if item.get("isCompactSummary") is True else None


def _read_summary(entry: ClaudeEntry, text: str) -> None:
    conversation, node, nodes = entry.conversation, entry.node, entry.sessions.nodes
    if not text:
        entry.add_problem("a compaction's summary without a text")
    boundary = conversation.boundary
    if boundary is None:
        boundary = read_boundary(entry.value, entry.line, node, nodes)
    else:
        node.nearest_above = boundary.node
    conversation.add_to_context(node, begins=boundary.node is node, blocks=False)
    if boundary.node.last_id is None:  # nothing precedes it: it sums up another file
        conversation.boundary = None
        if text:
            node.last_id = node.id
            entry.append_items({0: Block.developer(text, name="summary")})
        return
    partial = boundary.is_partial or entry.value.get("summarizeMetadata") is not None
    if partial and not boundary.kept_ids:
        boundary.step = replace(boundary.step, partial_reason="what it kept")
        entry.add_problem("a partial compaction that does not say what it kept")
    entry.mark_compaction(entry.kind)
    entry.add(*conversation.compact(boundary, text or None, nodes))
    keep_after_summary(nodes, boundary.kept_ids, node)


_READERS: dict[str, Callable[[ClaudeEntry], None]] = {
    "user": _read_user,
    "assistant": _read_assistant,
    "attachment": _read_attachment,
    "system/local_command": _read_local_command,
    "system/compact_boundary": _read_boundary,
    **dict.fromkeys(SHORTENING_READERS, _read_shortening),
}


def _append_aside(entry: ClaudeEntry, blocks: list[Block]) -> None:
    """Append what is neither prompt nor answer. It is never a point to rewind to."""
    conversation = entry.conversation
    entry.append_items(dict(enumerate(blocks)))
    if conversation.count_staying(entry.node) is None:
        conversation.add_to_context(entry.node)
    if conversation.boundary:
        conversation.boundary.later_ids.append(entry.node.id)


def _read_message(entry: ClaudeEntry) -> JsonDict:
    message = require_field(entry.value, "message", dict)
    role = get_field(message, "role", str, "message.")
    if role not in (None, entry.kind):
        raise MalformedError(f"message.role: expected {entry.kind}, got {role}")
    return message


def _read_items(
    entry: ClaudeEntry, message: JsonDict, read: Callable[[JsonDict, Any, SourceLine], AnyBlock]
) -> IndexedBlocks:
    """Return the blocks of a message's items; report what is wrong with the others."""
    found: IndexedBlocks = {}
    entry.contents = read_message_items(message)
    for index, item in enumerate(entry.contents):
        try:
            block = read(entry.value, item, entry.line)
        except UnknownItemError as error:
            entry.add_unknown(f"{entry.kind}/{error}")
        except MalformedError as error:
            entry.add_problem(f"message.content[{index}]: {error}")
        else:
            if block.text or block.native or not isinstance(block, Block) or block.media:
                found[index] = block
    return found


def _append_items(entry: ClaudeEntry, found: IndexedBlocks) -> list[AnyBlock]:
    """Append the blocks that keep the rule of pairs, and report the others."""
    valid: IndexedBlocks = {}
    for index, block in found.items():
        try:
            entry.conversation.check_pairing(entry.node, block, entry.contents[index])
        except MalformedError as error:
            entry.add_problem(f"message.content[{index}]: {error}")
        else:
            valid[index] = block
    entry.append_items(valid)
    if not valid:
        entry.skip()
    return [*valid.values()]
