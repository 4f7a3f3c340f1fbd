"""Tells opencode's exports, and reads one: its header, its messages, and their parts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block
from .....domain.compaction_events import Trigger
from ..content.holes import Hole
from ..json_lines import Line
from ..reading.entry_steps import EntrySteps, digest_of, entry_steps
from ..reading.fields import Item, MalformedError, take, take_optional, text_in
from ..source import Source
from ..steps import Append, Aside, Begin, Call, Compacted, EntryRead, Linked, Problem, Rewind, Step
from ..summary_mark import summary_of
from .names import MESSAGE, PART, PRUNED, SESSION
from .parts import (
    Part,
    cost_of,
    file_block,
    pruned_at,
    thinking_native,
    tool_call,
    tool_result,
    usage_of,
)

KNOWN = {
    *("agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start"),
    "subtask",
}
"""Types of parts that no model is sent as they are, and that opencode needs to go on."""


def recognises(source: Source) -> bool:
    """Whether this is a session that opencode exported."""
    document = source.document
    match document.value if document else None:
        case {"info": {"id": str(), "directory": _, "time": _}, "messages": list()}:
            return True
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The steps of an export."""
    line = source.document
    if line is None or line.problem or not isinstance(line.value, dict):
        yield Problem(1, (line and line.problem) or "not one JSON object")
        yield EntryRead("error", line.end if line else source.size)
        return
    yield from Export(line, source.stem).steps()


@dataclass(slots=True)
class Message:
    """A message while its parts are read."""

    item: Item
    id: str
    role: str | None
    index: int
    step: int = 0
    """How many calls of the model it has told of."""
    summary: list[str] | None = None
    """The texts of a message that is the summary of a compaction."""
    said: list[str] = field(default_factory=list)
    """Source ids of its parts."""

    @property
    def message_id(self) -> str:
        """What the pieces share that one call answered with."""
        return f"{self.id}#{self.step}" if self.step else self.id


class Export:
    """One exported session."""

    def __init__(self, line: Line, stem: str) -> None:
        self.line = line
        self.stem = stem
        self.key = stem
        self.number = 0
        self.open: set[str] = set()
        """Tool calls without a result."""
        self.seen: set[str] = set()
        """Ids of parts."""
        self.context: list[Message] = []
        """The messages that are in context, the newest last."""
        self.last: dict[str, str | None] = {}
        """For each message the source id of what stands before it."""
        self.newest: str | None = None
        self.compactions: dict[str, Item] = {}
        """Messages that ask for a compaction, each with that part."""
        self.has_said = False

    def steps(self) -> Iterator[Step]:
        document: Item = self.line.value
        yield from self._read(self._header, document)
        messages = document.get("messages")
        for index, message in enumerate(messages if isinstance(messages, list) else []):
            yield from self._message(message, index)
        match document.get("info"):
            case {"revert": {"messageID": str(id)}} if id in self.last:
                yield Rewind(f"revert:{id}", to=self.last[id])
            case _:
                pass

    def _read(self, read: Any, item: Any, *more: Any) -> Iterable[Step]:
        self.number += 1
        return entry_steps(self.line, self.number, read, item, *more)

    def _header(self, entry: EntrySteps, document: Item) -> None:
        info = document.get("info")
        told = info if isinstance(info, dict) else {}
        id, title, parent = (told.get(name) for name in ("id", "title", "parentID"))
        self.key = id if isinstance(id, str) and id else self.stem
        entry.say(
            Begin(
                self.key,
                title=title if isinstance(title, str) else None,
                parent_key=parent if isinstance(parent, str) and parent != self.key else None,
                project=text_in(told, "directory"),
            )
        )
        raw = self.line.json({name: one for name, one in document.items() if name != "messages"})
        entry.say(Aside(f"{SESSION}:{digest_of(raw)}", SESSION, raw, self.key, entry.number))
        take(document, "info", dict)

    def _message(self, item: Any, index: int) -> Iterator[Step]:
        message = Message({}, f"message-{index}", None, index)
        yield from self._read(self._info, item, message)
        self.last.setdefault(message.id, self.newest)
        parts = item.get("parts", []) if isinstance(item, dict) else []
        if not isinstance(parts, list):
            yield from self._read(self._no_parts, parts)
            parts = []
        for place, part in enumerate(parts):
            yield from self._read(self._part, part, message, place)
        self.newest = message.said[-1] if message.said else message.id
        yield from self._finish(message)
        self.context.append(message)

    def _info(self, entry: EntrySteps, item: Any, message: Message) -> None:
        if not isinstance(item, dict):
            raise MalformedError("messages: expected an object")
        info = take(item, "info", dict)
        message.item = info
        message.id = take_optional(info, "id", str, "info.") or message.id
        role = take(info, "role", str, "info.")
        raw = self.line.json({name: one for name, one in item.items() if name != "parts"})
        if role not in ("user", "assistant"):
            entry.unknown(f"{MESSAGE}{role}", raw, message.id)
            return
        message.role = role
        if role == "assistant" and info.get("summary") is True:
            message.summary = []
        key = f"{message.id}:{digest_of(raw)}"
        entry.say(Aside(key, f"{MESSAGE}{role}", raw, message.id, entry.number))

    def _no_parts(self, _entry: EntrySteps, parts: Any) -> None:
        take({"parts": parts}, "parts", list)

    def _part(self, entry: EntrySteps, part: Any, message: Message, place: int) -> None:
        if not isinstance(part, dict):
            raise MalformedError("parts: expected an object")
        kind = take(part, "type", str)
        id = take_optional(part, "id", str) or f"{message.id}/part-{place}"
        if id in self.seen:
            id = f"{id}#{message.index}-{place}"
        self.seen.add(id)
        message.said.append(id)
        if message.role is None:
            entry.unknown(f"{PART}{kind}", self.line.json(part), id)
            return
        match kind:
            case "text":
                self._text(entry, part, id, message)
            case "reasoning" if message.summary is None and message.role == "assistant":
                text = take(part, "text", str)
                native = thinking_native(part, text)
                if text or native:
                    self._say_text(entry, part, id, Block.thinking(text, native=native), message)
                else:
                    self._keep(entry, part, id)
            case "file":
                block = file_block(Part(part, id, entry.number, self.line))
                if block:
                    self._say(entry, f"{id}:0", block, id)
                else:
                    self._keep(entry, part, id)
            case "tool" if message.role == "assistant":
                self._tool(entry, part, id, message)
            case "step-finish":
                self._keep(entry, part, id)
                entry.say(self._call(message, part, id))
                message.step += 1
            case "compaction":
                self._keep(entry, part, id)
                self.compactions[message.id] = part
            case _ if kind in KNOWN or kind == "reasoning":
                self._keep(entry, part, id)
            case _:
                entry.unknown(f"{PART}{kind}", self.line.json(part), id)

    def _text(self, entry: EntrySteps, part: Item, id: str, message: Message) -> None:
        text = take(part, "text", str)
        if message.summary is not None:
            message.summary.append(text)
        if message.summary is not None or not text or part.get("ignored") is True:
            self._keep(entry, part, id)
        elif message.role == "assistant":
            self._say_text(entry, part, id, Block.assistant(text), message)
        elif found := summary_of(part, text):
            if self.has_said:
                self._keep(entry, part, id)
                entry.say(Compacted(f"{id}:compacted", Trigger.MANUAL, found.text, self._kept()))
            else:
                block = Block.developer(found.text, name="summary")
                self._say_text(entry, part, id, block, message)
        elif part.get("synthetic") is True:
            self._say_text(entry, part, id, Block.developer(text), message)
        else:
            self._say_text(entry, part, id, Block.user(text), message)

    def _tool(self, entry: EntrySteps, part: Item, id: str, message: Message) -> None:
        status = take(take(part, "state", dict), "status", str, "state.")
        if status == "pending":
            self._keep(entry, part, id)  # the model still writes the call
            return
        if status not in ("running", "completed", "error"):
            raise MalformedError(f"state.status: {status!r} is not known")
        call = take(part, "callID", str) or id
        if call in self.open:
            call = f"{call}#{id}"
        told = Part(part, id, entry.number, self.line)
        made = tool_call(told, call, message.message_id)
        if status == "running":
            self.open.add(call)
            self._say(entry, f"{id}:call", made, id)
            return
        answer = tool_result(told, call)
        self._say(entry, f"{id}:call", made, id)
        self._say(entry, f"{id}:result", answer, id)
        if pruned := pruned_at(part):
            raw = self.line.json({"id": id, "compacted": pruned})
            entry.say(Aside(f"{id}:pruned", PRUNED, raw))  # no piece of the result
        match part:
            case {"tool": "task", "state": {"metadata": {"sessionId": str(child)}}}:
                entry.say(Linked(child, self.key, call))
            case _:
                pass

    def _say_text(
        self, entry: EntrySteps, part: Item, id: str, block: Block, message: Message
    ) -> None:
        """A block of a part's text. Its key tells the text: a part grows while it is written."""
        # A summary is without its mark, which stays in the rest.
        holes = [Hole(("text",))] if block.text == part["text"] else []
        more: dict[str, Any] = {"origin": Part(part, id, entry.number, self.line).origin(holes)}
        if message.role == "assistant":
            more["message_id"] = message.message_id
        key = f"{id}:{digest_of(block.text)}"
        self._say(entry, key, block.model_copy(update=more), id)

    def _say(self, entry: EntrySteps, key: str, block: AnyBlock, id: str) -> None:
        self.has_said = True
        entry.say(Append(key, block, id))

    def _keep(self, entry: EntrySteps, part: Item, id: str) -> None:
        raw = self.line.json(part)
        kind = f"{PART}{part['type']}"
        entry.say(Aside(f"{id}:{digest_of(raw)}", kind, raw, id, entry.number))

    def _call(self, message: Message, told: Item, id: str) -> Call:
        info = message.item
        return Call(
            key=f"{id}:step",
            fields={
                "call_id": message.message_id,
                "model": take_optional(info, "modelID", str, "info."),
                "usage": usage_of(told),
                "cost_usd": cost_of(told),
                "stop_reason": _reason(told),
                "source_time": _time_of(info),
            },
            before=message.id if message.step == 0 else None,
        )

    def _finish(self, message: Message) -> Iterator[Step]:
        """What is known once all parts of a message were read."""
        if message.role == "assistant" and message.step == 0 and message.item.get("finish"):
            try:
                yield self._call(message, message.item, message.id)
            except MalformedError as error:
                yield Problem(self.number, f"{message.id}: {error}")
        if message.summary is None or not message.item.get("finish") or message.item.get("error"):
            return
        text = "\n\n".join(one for one in message.summary if one)
        asked = str(message.item.get("parentID"))
        part = self.compactions.get(asked, {})
        trigger = Trigger.MANUAL
        if part.get("auto") is True:
            trigger = Trigger.OVERFLOW if part.get("overflow") is True else Trigger.THRESHOLD
        if self.has_said:
            kept = self._kept(part.get("tail_start_id"), asked)
            key, time = f"{message.id}:compacted", _time_of(message.item)
            yield Compacted(key, trigger, text or None, kept, source_time=time)
        elif text:
            block = Block.developer(text, name="summary")
            yield Append(f"{message.id}:summary", block, message.id)

    def _kept(self, tail: Any = None, asked: str | None = None) -> tuple[str, ...]:
        """All left the context but for the messages from `tail` to `asked`: their source ids."""
        ids = [one.id for one in self.context]
        first = ids.index(tail) if tail in ids else len(ids)
        last = ids.index(asked) if asked in ids else len(ids)
        self.context = self.context[first:last]
        return tuple(id for one in self.context for id in one.said)


def _reason(told: Item) -> str | None:
    reason = told.get("reason", told.get("finish"))
    return reason if isinstance(reason, str) else None


def _time_of(info: Item) -> str | None:
    match info.get("time"):
        case {"created": int(created)}:
            return str(created)
        case _:
            return None
