"""What each type of entry of a Claude Code transcript says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, ToolResult
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from ..steps import Append
from ..summary_mark import summary_of
from .attachments import read_attachment
from .compaction import SHORTENING, Boundary, boundary_of
from .content import UnheardError, assistant_item, user_item
from .conversation import Conversation, OrphanError
from .entries import content_of, kind_of_user_text, text_of
from .report import Report
from .rest import Held
from .sessions import Entry, Sessions
from .tree import Tree

_ItemReader = Callable[[Item, Any, Line], AnyBlock]


@dataclass(slots=True)
class _Made:
    """What became of a content's items."""

    blocks: list[tuple[int, Any, AnyBlock]] = field(default_factory=list)
    """Each with the place of the item that it was made of, and that item."""
    unheard: list[tuple[int, str, Any]] = field(default_factory=list)
    wrong: list[tuple[int, str, Any]] = field(default_factory=list)
    orphans: Held = field(default_factory=dict)

    def refuse(self, index: int, error: MalformedError, item: Any) -> None:
        """Note that the item of that index cannot be read."""
        self.wrong.append((index, f"message.content[{index}]: {error}", item))


@dataclass(slots=True)
class Readers:
    """Readers of entries. Each tells whether it took the entry in."""

    sessions: Sessions
    tree: Tree
    report: Report

    def of(self, kind: str) -> Callable[[Entry], bool] | None:
        """The reader of a type of entries."""
        match kind:
            case "user":
                return self.user
            case "assistant":
                return self.assistant
            case "attachment":
                return self.attachment
            case "system/local_command":
                return self.local_command
            case "system/compact_boundary":
                return self.boundary
            case _:
                return self.shortening if kind in SHORTENING else None

    def user(self, entry: Entry) -> bool:
        told = _told_summary(entry.item)
        if told is not None:
            return self.summary(entry, told)
        if entry.item.get("isVisibleInTranscriptOnly") is True:
            return self.keep(entry)
        message, conversation = _message(entry), entry.conversation
        made = self._make(entry, message, user_item)
        results = [one.tool_call_id for *_, one in made.blocks if isinstance(one, ToolResult)]
        if made.blocks:
            self._settle(conversation)
            if not results:
                self.report.say(conversation, conversation.rewind(entry.node))
        appended = self._append(entry, made)
        if appended:
            prompt = not results and any(block.kind is Kind.USER for block in appended)
            conversation.context.place(entry.node, begins=prompt)
        if results:
            links = self.sessions.linked(entry.item, conversation, results[0])
            self.report.say(conversation, links)
        return True

    def assistant(self, entry: Entry) -> bool:
        message, conversation = _message(entry), entry.conversation
        entry.message_id = take_optional(message, "id", str, "message.") or None
        id = entry.message_id or entry.node.id
        made = self._make(entry, message, assistant_item)
        if made.blocks:
            self._settle(conversation)
            self.report.say(conversation, conversation.finish_message(unless=id))
        appended = self._append(entry, made)
        if appended:
            time = take_optional(entry.item, "timestamp", str)
            begins = conversation.begin_message(id, entry.node.id, time)
            conversation.context.place(entry.node, begins=begins)
        try:
            conversation.grow_message(id, message)
        except MalformedError as error:
            self.report.problem(entry.line, str(error))
        return True

    def attachment(self, entry: Entry) -> bool:
        try:
            made = read_attachment(entry.item, entry.line)
        except UnheardError as error:
            self.report.unknown(entry.line, f"attachment/{error}")
            return True
        return self._beside(entry, made) if made else self.keep(entry)

    def keep(self, entry: Entry) -> bool:
        """Keep an entry as it stands."""
        self.report.keep(entry.line, entry.kind)
        return True

    def local_command(self, entry: Entry) -> bool:
        text = take(entry.item, "content", str)
        return self._beside(entry, [Block.developer(text, name="local_command")])

    def shortening(self, entry: Entry) -> bool:
        conversation = entry.conversation
        tell = SHORTENING[entry.kind]
        told = tell(entry.item, f"{entry.node.id}:shortened", conversation.answered)
        self.keep(entry)
        if told.instead:
            self.report.say(conversation, [told])
        return True

    def queued(self, entry: Entry, prompt: str) -> None:
        """A prompt that the queue tells of, and no other entry."""
        kind = kind_of_user_text({}, prompt)
        self._beside(entry, [Block(kind=kind, text=prompt)])

    def boundary(self, entry: Entry) -> bool:
        conversation = entry.conversation
        self._settle(conversation)
        entry.node.up = None  # what follows begins anew, whatever the entry names as its parent
        conversation.context.place(entry.node, begins=True, blocks=False)
        conversation.boundary = boundary_of(entry.item, entry.line, entry.node, self.tree)
        last = entry.item.get("logicalParentUuid")
        if isinstance(last, str) and (passed := self.tree.nodes.get(last)):
            self.report.follows = passed.skipped  # for it has no parent
        return self.keep(entry)

    def summary(self, entry: Entry, text: str) -> bool:
        conversation, node = entry.conversation, entry.node
        if not text:
            self.report.problem(entry.line, "a compaction's summary without a text")
        boundary = conversation.boundary
        if boundary is None:
            time = take_optional(entry.item, "timestamp", str)
            boundary = Boundary(entry.line, node, time=time)
        else:
            node.up = boundary.node
        conversation.context.place(node, begins=boundary.node is node, blocks=False)
        if boundary.node.last_id is None:
            return self._inherited(entry, text)
        partial = boundary.partial or entry.item.get("summarizeMetadata") is not None
        if partial and not boundary.kept:
            boundary.untold = "what it kept"
            self.report.problem(entry.line, "a partial compaction that does not say what it kept")
        self.keep(entry)
        self.report.say(conversation, conversation.compact(boundary, text or None, self.tree))
        self.tree.keep(boundary.kept, node)
        return True

    def _inherited(self, entry: Entry, text: str) -> bool:
        """A summary with nothing before it tells what another file holds."""
        entry.conversation.boundary = None
        if not text:
            return self.keep(entry)
        entry.node.last_id = entry.node.id
        self._say(entry, {0: Block.developer(text, name="summary")})
        return True

    def _make(self, entry: Entry, message: Item, read: _ItemReader) -> _Made:
        """The blocks of a message, each with its place in the content."""
        made = _Made()
        for index, item in enumerate(content_of(message)):
            try:
                block = read(entry.item, item, entry.line)
            except UnheardError as error:
                made.unheard.append((index, f"{entry.kind}/{error}", item))
            except MalformedError as error:
                made.refuse(index, error, item)
            else:
                if block.text or block.native or not isinstance(block, Block) or block.media:
                    made.blocks.append((index, item, block))
        return made

    def _append(self, entry: Entry, made: _Made) -> list[AnyBlock]:
        """Say the blocks that keep to the rules, and then what is wrong with the others.

        Where none is left, the entry is kept as it stands.
        """
        held: Held = {}
        for index, item, block in made.blocks:
            try:
                entry.conversation.pair(entry.node, block, item)
            except MalformedError as error:
                made.refuse(index, error, item)
                if isinstance(error, OrphanError):
                    made.orphans[index] = block
            else:
                held[index] = block
        line, whole = entry.line, not held
        if held:
            self._say(entry, held)
        for index, reason, item in made.wrong:
            if whole:
                alone = len(made.wrong) == len(made.orphans) == 1 and not made.unheard
                append = next(_appends(entry, made.orphans)) if alone else None
                self.report.problem(line, reason, line.text, append)
                whole = False
            else:
                self.report.problem_item(line, reason, line.json(item), index)
        for index, kind, item in made.unheard:
            if whole:
                self.report.unknown(line, kind)
                whole = False
            else:
                self.report.unknown_item(line, kind, line.json(item), index)
        if whole:
            self.keep(entry)
        return list(held.values())

    def _say(self, entry: Entry, held: Held) -> None:
        self.report.say(entry.conversation, _appends(entry, held))

    def _beside(self, entry: Entry, blocks: list[Any]) -> bool:
        """Say what is neither prompt nor answer. Nothing goes back to it past what was said."""
        conversation = entry.conversation
        self._say(entry, dict(enumerate(blocks)))
        if conversation.context.stays_before(entry.node) is None:
            conversation.context.place(entry.node)
        if conversation.boundary:
            conversation.boundary.since.append(entry.node.id)
        return True

    def _settle(self, conversation: Conversation) -> None:
        """A boundary that no summary followed is a compaction all the same."""
        if conversation.boundary:
            self.report.say(
                conversation, conversation.compact(conversation.boundary, None, self.tree)
            )


def _appends(entry: Entry, held: Held) -> Iterator[Append]:
    for index, block in entry.told_by(held):
        yield Append(f"{entry.node.id}:{index}", block, entry.node.id)


def _told_summary(item: Item) -> str | None:
    """The text of a summary: Claude Code's own, or one that cutbank marked as it exported it."""
    text = text_of(item)
    if told := summary_of(item, text):
        return told.text
    return text if item.get("isCompactSummary") is True else None


def _message(entry: Entry) -> Item:
    message = take(entry.item, "message", dict)
    role = take_optional(message, "role", str, "message.")
    if role not in (None, entry.kind):
        raise MalformedError(f"message.role: expected {entry.kind}, got {role}")
    return message
