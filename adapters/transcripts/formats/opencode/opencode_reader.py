"""Recognizes opencode exports, and reads their header, messages and parts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .....domain.blocks import AnyBlock, Block, Origin
from .....domain.compaction_events import Trigger
from ..entry_steps import EntrySteps, digest_text, read_entry
from ..fields import (
    JsonDict,
    MalformedError,
    as_number,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..json_lines import SourceLine
from ..steps import (
    Append,
    ImportStep,
    ReportedCall,
    Rewind,
    SessionStart,
    SourceCompaction,
    SourceProblem,
    SubAgentLink,
)
from ..summary_mark import find_marked_summary
from .message_parts import (
    FORMAT_NAME,
    OpencodeMessage,
    make_file_block,
    make_tool_call,
    make_tool_result,
    read_opencode_usage,
    read_part_time,
    read_thought_native,
)

_KNOWN_PART_TYPES = {
    *("agent", "patch", "reasoning", "retry", "snapshot", "step-start", "subtask"),
}
"""Types of parts that no model is sent, or not from this message."""


def is_export(value: Any) -> bool:
    match value:
        case {"info": {"id": str(), "directory": _, "time": _}, "messages": list()}:
            return True
        case _:
            return False


def read_export(line: SourceLine, stem: str) -> Iterator[ImportStep]:
    info = line.value["info"]
    reader = _ExportReader(line, info["id"] or stem)
    yield from reader.read_entry(reader.read_header, info)
    for index, message in enumerate(line.value["messages"]):
        yield from reader.read_message(message, index)
    match info:
        case {"revert": {"messageID": str(id)}} if id in reader.last:
            yield Rewind(f"revert:{id}", to=reader.last[id])


class _ExportReader:
    def __init__(self, line: SourceLine, key: str) -> None:
        self.line = line
        self.key = key
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

    def read_entry(self, read: Callable[..., None], item: Any, *more: Any) -> Iterable[ImportStep]:
        self.number += 1
        return read_entry(EntrySteps(FORMAT_NAME, self.line, self.number, item), read, *more)

    def read_header(self, entry: EntrySteps) -> None:
        info = entry.value
        parent = find_text(info, "parentID")
        entry.add(
            SessionStart(
                self.key,
                title=find_text(info, "title"),
                parent_key=parent if parent != self.key else None,
                project=find_text(info, "directory"),
            )
        )

    def read_message(self, item: Any, index: int) -> Iterator[ImportStep]:
        message = OpencodeMessage(f"message-{index}", index)
        yield from self.read_entry(self._read_info, item, message)
        self.last.setdefault(message.id, self.newest)
        parts = item.get("parts", []) if isinstance(item, dict) else []
        for place, part in enumerate(parts if isinstance(parts, list) else [parts]):
            yield from self.read_entry(self._read_part, part, message, place)
        self.newest = message.part_ids[-1] if message.part_ids else self.newest
        yield from self._finish_message(message)
        self.context.append(message)

    def _read_info(self, entry: EntrySteps, message: OpencodeMessage) -> None:
        item = require_object(entry.value, "messages: ")
        info = message.info = require_field(item, "info", dict)
        message.id = get_field(info, "id", str, "info.") or message.id
        role = require_field(info, "role", str, "info.")
        if role not in ("user", "assistant"):
            entry.add_unknown(f"message/{role}")
            return
        message.role = role
        if role == "assistant" and info.get("summary") is True:
            message.summary = []

    def _read_part(self, entry: EntrySteps, message: OpencodeMessage, place: int) -> None:
        item = require_object(entry.value, "parts: ")
        kind = require_field(item, "type", str)
        id = get_field(item, "id", str) or f"{message.id}/part-{place}"
        if id in self.seen:
            id = f"{id}#{message.index}-{place}"
        self.seen.add(id)
        entry.id, entry.time = id, read_part_time(item)
        entry.key = f"{id}:{digest_text(entry.raw)}"
        is_answer = message.role == "assistant"
        if message.role is None:
            entry.add_unknown(f"part/{kind}")
            return
        match kind:
            case "text":
                self._read_text(entry, message)
            case "reasoning" if message.summary is None and is_answer:
                text = require_field(item, "text", str)
                native = read_thought_native(item, text)
                if text or native:
                    self._append_text(entry, message, Block.thinking(text, native=native))
            case "file":
                if block := make_file_block(item):
                    self._append_block(entry, "0", block)
            case "tool" if is_answer:
                self._read_tool(entry, message)
            case "step-finish":
                entry.add(_make_call(message, item, id))
                message.step += 1
            case "compaction":
                self.compactions[message.id] = item
            case _ if kind not in _KNOWN_PART_TYPES:
                entry.add_unknown(f"part/{kind}")
        if entry.has_appended:
            message.part_ids.append(id)
        elif not entry.steps:
            entry.skip()

    def _read_text(self, entry: EntrySteps, message: OpencodeMessage) -> None:
        item = entry.value
        text = require_field(item, "text", str)
        if message.summary is not None:
            message.summary.append(text)
            entry.mark_compaction("part/text")
        elif not text or item.get("ignored") is True:
            pass
        elif message.role == "assistant":
            self._append_text(entry, message, Block.assistant(text))
        elif (found := find_marked_summary(item, text)) and self.has_said:
            entry.mark_compaction("part/text")
            name, kept = f"{entry.id}:compacted", self._kept_ids()
            entry.add(SourceCompaction(name, Trigger.MANUAL, found.text, kept))
        elif found:
            self._append_text(entry, message, Block.developer(found.text, name="summary"))
        else:
            make = Block.developer if item.get("synthetic") is True else Block.user
            self._append_text(entry, message, make(text))

    def _read_tool(self, entry: EntrySteps, message: OpencodeMessage) -> None:
        item = entry.value
        status = require_field(require_field(item, "state", dict), "status", str, "state.")
        if status == "pending":
            return  # the model still writes the call
        if status not in ("running", "completed", "error"):
            raise MalformedError(f"state.status: {status!r} is not known")
        call = require_field(item, "callID", str) or str(entry.id)
        if call in self.open:
            call = f"{call}#{entry.id}"
        made = make_tool_call(entry, call, message.message_id)
        if status == "running":
            self.open.add(call)
            self._append_block(entry, "call", made)
            return
        answer = make_tool_result(item, call)
        self._append_block(entry, "call", made)
        self._append_block(entry, "result", answer)
        match item:
            case {"tool": "task", "state": {"metadata": {"sessionId": str(child)}}}:
                entry.add(SubAgentLink(child, self.key, call))

    def _append_text(self, entry: EntrySteps, message: OpencodeMessage, block: Block) -> None:
        """Append a part's text. Its key includes the text, since a part grows over time."""
        shared = message.message_id if message.role == "assistant" else None
        self._append_block(entry, digest_text(block.text), block, shared)

    def _append_block(
        self, entry: EntrySteps, name: str, block: AnyBlock, message_id: str | None = None
    ) -> None:
        self.has_said = True
        entry.append_block(f"{entry.id}:{name}", block, entry.id, message_id)

    def _finish_message(self, message: OpencodeMessage) -> Iterator[ImportStep]:
        if message.role == "assistant" and message.step == 0 and message.info.get("finish"):
            try:
                yield _make_call(message, message.info, message.id)
            except MalformedError as error:
                yield SourceProblem(self.number, f"{message.id}: {error}")
        if message.summary is None or not message.info.get("finish") or message.info.get("error"):
            return
        text = "\n\n".join(one for one in message.summary if one)
        asked = str(message.info.get("parentID"))
        part = self.compactions.get(asked, {})
        trigger = Trigger.MANUAL
        if part.get("auto") is True:
            trigger = Trigger.OVERFLOW if part.get("overflow") is True else Trigger.THRESHOLD
        if self.has_said:
            kept = self._kept_ids(part.get("tail_start_id"), asked)
            key, time = f"{message.id}:compacted", _read_time(message.info)
            yield SourceCompaction(key, trigger, text or None, kept, source_time=time)
        elif text:
            origin = Origin(format=FORMAT_NAME, id=message.id, line=self.number)
            block = Block.developer(text, name="summary", origin=origin)
            yield Append(f"{message.id}:summary", block, message.id)

    def _kept_ids(self, tail: Any = None, asked: str | None = None) -> tuple[str, ...]:
        """Return the source ids of the messages from `tail` to `asked`; all others left."""
        ids = [one.id for one in self.context]
        first = ids.index(tail) if tail in ids else len(ids)
        last = ids.index(asked) if asked in ids else len(ids)
        self.context = self.context[first:last]
        return tuple(id for one in self.context for id in one.part_ids)


def _make_call(message: OpencodeMessage, told: JsonDict, id: str) -> ReportedCall:
    reason = told.get("reason", told.get("finish"))
    return ReportedCall(
        key=f"{id}:step",
        fields={
            "call_id": message.message_id,
            "model": get_field(message.info, "modelID", str, "info."),
            "usage": read_opencode_usage(told),
            "cost_usd": as_number(told.get("cost")),
            "stop_reason": reason if isinstance(reason, str) else None,
            "source_time": _read_time(message.info),
        },
        first_answer_id=message.part_ids[0] if message.step == 0 and message.part_ids else None,
    )


def _read_time(info: JsonDict) -> str | None:
    match info.get("time"):
        case {"created": int(created)}:
            return str(created)
        case _:
            return None
