"""Recognizes opencode exports, and reads their header, messages and parts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block
from .....domain.compaction_events import Trigger
from ..entry_steps import EntrySteps, digest_text, read_entry_steps
from ..fields import JsonDict, MalformedError, drop_fields, find_text, get_field, require_field
from ..json_lines import SourceLine
from ..placeholders import Placeholder
from ..source import TranscriptSource
from ..steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    Rewind,
    SessionStart,
    SourceCompaction,
    SourceProblem,
    SubAgentLink,
)
from ..summary_mark import find_marked_summary
from .message_parts import (
    OPENCODE_MESSAGE_PREFIX,
    OPENCODE_SESSION_ENTRY,
    PART_PREFIX,
    PRUNED_TEXT,
    OpencodePart,
    make_file_block,
    make_tool_call,
    make_tool_result,
    read_cost,
    read_opencode_usage,
    read_pruned_time,
    read_thought_native,
)

_KNOWN_PART_TYPES = {
    *("agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start"),
    "subtask",
}
"""Types of parts that no model is sent unchanged, but that opencode needs to resume."""


def recognizes(source: TranscriptSource) -> bool:
    document = source.document
    match document.value if document else None:
        case {"info": {"id": str(), "directory": _, "time": _}, "messages": list()}:
            return True
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    line = source.document
    if line is None or line.problem or not isinstance(line.value, dict):
        yield SourceProblem(1, (line and line.problem) or "not one JSON object")
        yield EntryEnd("error", line.end if line else source.size)
        return
    yield from OpencodeExportReader(line, source.stem).read_steps()


@dataclass(slots=True)
class OpencodeMessage:
    item: JsonDict
    id: str
    role: str | None
    index: int
    step: int = 0
    summary: list[str] | None = None
    """The texts of a message that is the summary of a compaction."""
    texts: list[str] = field(default_factory=list)

    @property
    def message_id(self) -> str:
        """The id that the pieces of one answer share."""
        return f"{self.id}#{self.step}" if self.step else self.id


class OpencodeExportReader:
    def __init__(self, line: SourceLine, stem: str) -> None:
        self.line = line
        self.stem = stem
        self.key = stem
        self.number = 0
        self.open: set[str] = set()
        self.seen: set[str] = set()
        self.context: list[OpencodeMessage] = []
        """The messages in context, the newest last."""
        self.last: dict[str, str | None] = {}
        """For each message, the source id of the part before it."""
        self.newest: str | None = None
        self.compactions: dict[str, JsonDict] = {}
        """Messages that ask for a compaction, each with that part."""
        self.has_said = False

    def read_steps(self) -> Iterator[ImportStep]:
        document: JsonDict = self.line.value
        yield from self._read_entry(self._read_header, document)
        messages = document.get("messages")
        for index, message in enumerate(messages if isinstance(messages, list) else []):
            yield from self._read_message(message, index)
        match document.get("info"):
            case {"revert": {"messageID": str(id)}} if id in self.last:
                yield Rewind(f"revert:{id}", to=self.last[id])

    def _read_entry(self, read: Any, item: Any, *more: Any) -> Iterable[ImportStep]:
        self.number += 1
        return read_entry_steps(self.line, self.number, read, item, *more)

    def _read_header(self, entry: EntrySteps, document: JsonDict) -> None:
        info = document.get("info")
        told = info if isinstance(info, dict) else {}
        id, title, parent = (told.get(name) for name in ("id", "title", "parentID"))
        self.key = id if isinstance(id, str) and id else self.stem
        entry.add(
            SessionStart(
                self.key,
                title=title if isinstance(title, str) else None,
                parent_key=parent if isinstance(parent, str) and parent != self.key else None,
                project=find_text(told, "directory"),
            )
        )
        raw = self.line.to_json(drop_fields(document, "messages"))
        entry.add(
            RawEntry(
                f"{OPENCODE_SESSION_ENTRY}:{digest_text(raw)}",
                OPENCODE_SESSION_ENTRY,
                raw,
                self.key,
                entry.number,
            )
        )
        require_field(document, "info", dict)

    def _read_message(self, item: Any, index: int) -> Iterator[ImportStep]:
        message = OpencodeMessage({}, f"message-{index}", None, index)
        yield from self._read_entry(self._read_info, item, message)
        self.last.setdefault(message.id, self.newest)
        parts = item.get("parts", []) if isinstance(item, dict) else []
        if not isinstance(parts, list):
            yield from self._read_entry(self._refuse_parts, parts)
            parts = []
        for place, part in enumerate(parts):
            yield from self._read_entry(self._read_part, part, message, place)
        self.newest = message.texts[-1] if message.texts else message.id
        yield from self._finish_message(message)
        self.context.append(message)

    def _read_info(self, entry: EntrySteps, item: Any, message: OpencodeMessage) -> None:
        if not isinstance(item, dict):
            raise MalformedError("messages: expected an object")
        info = require_field(item, "info", dict)
        message.item = info
        message.id = get_field(info, "id", str, "info.") or message.id
        role = require_field(info, "role", str, "info.")
        raw = self.line.to_json(drop_fields(item, "parts"))
        if role not in ("user", "assistant"):
            entry.add_unknown(f"{OPENCODE_MESSAGE_PREFIX}{role}", raw, message.id)
            return
        message.role = role
        if role == "assistant" and info.get("summary") is True:
            message.summary = []
        key = f"{message.id}:{digest_text(raw)}"
        entry.add(RawEntry(key, f"{OPENCODE_MESSAGE_PREFIX}{role}", raw, message.id, entry.number))

    def _refuse_parts(self, _entry: EntrySteps, parts: Any) -> None:
        require_field({"parts": parts}, "parts", list)

    def _read_part(
        self, entry: EntrySteps, part: Any, message: OpencodeMessage, place: int
    ) -> None:
        if not isinstance(part, dict):
            raise MalformedError("parts: expected an object")
        kind = require_field(part, "type", str)
        id = get_field(part, "id", str) or f"{message.id}/part-{place}"
        if id in self.seen:
            id = f"{id}#{message.index}-{place}"
        self.seen.add(id)
        message.texts.append(id)
        if message.role is None:
            entry.add_unknown(f"{PART_PREFIX}{kind}", self.line.to_json(part), id)
            return
        match kind:
            case "text":
                self._read_text(entry, part, id, message)
            case "reasoning" if message.summary is None and message.role == "assistant":
                text = require_field(part, "text", str)
                native = read_thought_native(part, text)
                if text or native:
                    self._append_text(entry, part, id, Block.thinking(text, native=native), message)
                else:
                    self._keep_raw(entry, part, id)
            case "file":
                block = make_file_block(OpencodePart(part, id, entry.number, self.line))
                if block:
                    self._append_block(entry, f"{id}:0", block, id)
                else:
                    self._keep_raw(entry, part, id)
            case "tool" if message.role == "assistant":
                self._read_tool(entry, part, id, message)
            case "step-finish":
                self._keep_raw(entry, part, id)
                entry.add(self._make_call(message, part, id))
                message.step += 1
            case "compaction":
                self._keep_raw(entry, part, id)
                self.compactions[message.id] = part
            case _ if kind in _KNOWN_PART_TYPES or kind == "reasoning":
                self._keep_raw(entry, part, id)
            case _:
                entry.add_unknown(f"{PART_PREFIX}{kind}", self.line.to_json(part), id)

    def _read_text(
        self, entry: EntrySteps, part: JsonDict, id: str, message: OpencodeMessage
    ) -> None:
        text = require_field(part, "text", str)
        if message.summary is not None:
            message.summary.append(text)
        if message.summary is not None or not text or part.get("ignored") is True:
            self._keep_raw(entry, part, id)
        elif message.role == "assistant":
            self._append_text(entry, part, id, Block.assistant(text), message)
        elif found := find_marked_summary(part, text):
            if self.has_said:
                self._keep_raw(entry, part, id)
                entry.add(
                    SourceCompaction(
                        f"{id}:compacted", Trigger.MANUAL, found.text, self._kept_ids()
                    )
                )
            else:
                block = Block.developer(found.text, name="summary")
                self._append_text(entry, part, id, block, message)
        elif part.get("synthetic") is True:
            self._append_text(entry, part, id, Block.developer(text), message)
        else:
            self._append_text(entry, part, id, Block.user(text), message)

    def _read_tool(
        self, entry: EntrySteps, part: JsonDict, id: str, message: OpencodeMessage
    ) -> None:
        status = require_field(require_field(part, "state", dict), "status", str, "state.")
        if status == "pending":
            self._keep_raw(entry, part, id)  # the model still writes the call
            return
        if status not in ("running", "completed", "error"):
            raise MalformedError(f"state.status: {status!r} is not known")
        call = require_field(part, "callID", str) or id
        if call in self.open:
            call = f"{call}#{id}"
        told = OpencodePart(part, id, entry.number, self.line)
        made = make_tool_call(told, call, message.message_id)
        if status == "running":
            self.open.add(call)
            self._append_block(entry, f"{id}:call", made, id)
            return
        answer = make_tool_result(told, call)
        self._append_block(entry, f"{id}:call", made, id)
        self._append_block(entry, f"{id}:result", answer, id)
        if pruned := read_pruned_time(part):
            raw = self.line.to_json({"id": id, "compacted": pruned})
            entry.add(RawEntry(f"{id}:pruned", PRUNED_TEXT, raw))  # not a piece of the result
        match part:
            case {"tool": "task", "state": {"metadata": {"sessionId": str(child)}}}:
                entry.add(SubAgentLink(child, self.key, call))

    def _append_text(
        self, entry: EntrySteps, part: JsonDict, id: str, block: Block, message: OpencodeMessage
    ) -> None:
        """Append a part's text. Its key includes the text, since a part grows over time."""
        # A summary's mark stays in the remainder.
        holes = [Placeholder(("text",))] if block.text == part["text"] else []
        more: dict[str, Any] = {
            "origin": OpencodePart(part, id, entry.number, self.line).make_origin(holes)
        }
        if message.role == "assistant":
            more["message_id"] = message.message_id
        key = f"{id}:{digest_text(block.text)}"
        self._append_block(entry, key, block.model_copy(update=more), id)

    def _append_block(self, entry: EntrySteps, key: str, block: AnyBlock, id: str) -> None:
        self.has_said = True
        entry.add(Append(key, block, id))

    def _keep_raw(self, entry: EntrySteps, part: JsonDict, id: str) -> None:
        raw = self.line.to_json(part)
        kind = f"{PART_PREFIX}{part['type']}"
        entry.add(RawEntry(f"{id}:{digest_text(raw)}", kind, raw, id, entry.number))

    def _make_call(self, message: OpencodeMessage, told: JsonDict, id: str) -> ReportedCall:
        info = message.item
        return ReportedCall(
            key=f"{id}:step",
            fields={
                "call_id": message.message_id,
                "model": get_field(info, "modelID", str, "info."),
                "usage": read_opencode_usage(told),
                "cost_usd": read_cost(told),
                "stop_reason": _compaction_reason(told),
                "source_time": _read_time(info),
            },
            first_answer_id=message.id if message.step == 0 else None,
        )

    def _finish_message(self, message: OpencodeMessage) -> Iterator[ImportStep]:
        if message.role == "assistant" and message.step == 0 and message.item.get("finish"):
            try:
                yield self._make_call(message, message.item, message.id)
            except MalformedError as error:
                yield SourceProblem(self.number, f"{message.id}: {error}")
        if message.summary is None or not message.item.get("finish") or message.item.get("error"):
            return
        text = "\n\n".join(one for one in message.summary if one)
        asked = str(message.item.get("parentID"))
        part = self.compactions.get(asked, {})
        trigger = Trigger.MANUAL
        if part.get("auto") is True:
            trigger = Trigger.OVERFLOW if part.get("overflow") is True else Trigger.THRESHOLD
        if self.has_said:
            kept = self._kept_ids(part.get("tail_start_id"), asked)
            key, time = f"{message.id}:compacted", _read_time(message.item)
            yield SourceCompaction(key, trigger, text or None, kept, source_time=time)
        elif text:
            block = Block.developer(text, name="summary")
            yield Append(f"{message.id}:summary", block, message.id)

    def _kept_ids(self, tail: Any = None, asked: str | None = None) -> tuple[str, ...]:
        """Return the source ids of the messages from `tail` to `asked`; all others left."""
        ids = [one.id for one in self.context]
        first = ids.index(tail) if tail in ids else len(ids)
        last = ids.index(asked) if asked in ids else len(ids)
        self.context = self.context[first:last]
        return tuple(id for one in self.context for id in one.texts)


def _compaction_reason(told: JsonDict) -> str | None:
    reason = told.get("reason", told.get("finish"))
    return reason if isinstance(reason, str) else None


def _read_time(info: JsonDict) -> str | None:
    match info.get("time"):
        case {"created": int(created)}:
            return str(created)
        case _:
            return None
