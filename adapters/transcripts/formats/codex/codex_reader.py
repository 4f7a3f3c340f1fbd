"""Converts the lines of a Codex rollout to steps."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .....domain.blocks import Origin, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..entry_steps import EntrySteps
from ..fields import JsonDict, MalformedError, get_field, require_field, require_object
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    Append,
    ImportStep,
    RawEntry,
    RequestParameters,
    Rewind,
    SessionStart,
    SubAgentLink,
)
from .compaction import (
    PROMPT_ROLE,
    CodexCompaction,
    ItemContext,
    append_inherited_summary,
    find_summary,
    make_compaction_step,
    make_context_item,
    make_source_id,
    read_compaction,
)
from .entries import (
    EVENT_REASONS,
    FORMAT_NAME,
    MCP_END_EVENT,
    NO_USAGE,
    PROGRAM_STATE,
    RAW_LINE_TYPES,
    REPEATED_LINE,
    REPEATED_USAGE,
    TURN_END_EVENTS,
    SpawnedAgents,
    UsageTracker,
    read_session_meta,
    read_session_start,
)
from .items import ItemContent, UnknownCodexItemError, read_communication, read_item

_LINE_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": str(kind), "payload": dict(), "timestamp": _}:
            return kind in _LINE_TYPES
        case {"id": str(), "timestamp": str(), "instructions": _}:
            return "type" not in value
        case {"record_type": "state"}:
            return True
        case _:
            return False


class CodexTranscriptReader:
    def __init__(self, source: TranscriptSource) -> None:
        self.source = source
        self.begin: SessionStart | None = None
        self.spawning = SpawnedAgents()
        self.context = ItemContext()
        self.meter = UsageTracker()
        self.prompt: str | None = None
        self.compaction: CodexCompaction | None = None
        """The compaction whose remaining tokens the next token count has."""
        self.open: set[str] = set()
        self.answered: dict[str, tuple[SourceLine, JsonDict]] = {}
        """Events with the answer of a call, before its output comes."""
        self.now = EntrySteps(0, 0)

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        self.now = EntrySteps(line.number, line.end)
        if line.problem:
            self.now.refuse(line, line.problem)
        else:
            try:
                self._read(line)
            except (MalformedError, NestedTooDeeplyError) as error:
                self.now.add_problem(str(error), line.text)
            except UnknownCodexItemError as error:
                self.now.add_unknown(f"response_item/{error}", line.text)
        return self.now.finish()

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:
        # Keep the compaction: the count may be the very next line.
        steps = list(self.compaction.make_steps()) if self.compaction else []
        if final:
            steps += [_make_raw_entry(MCP_END_EVENT, line) for line, _ in self.answered.values()]
        return steps

    def _read(self, line: SourceLine) -> None:
        if self.begin is None:
            self.begin = read_session_start(line.value, self.source)
            self.now.add(self.begin)
        entry = require_object(line.value)
        if "payload" not in entry:
            self._read_bare_item(entry, line)
            return
        kind = require_field(entry, "type", str)
        match kind:
            case "response_item":
                self._append_item(
                    read_item(require_object(entry["payload"], "payload: "), line), entry, line
                )
            case "event_msg":
                self._read_event(require_object(entry["payload"], "payload: "), line)
            case "session_meta":
                self._read_meta(require_object(entry["payload"], "payload: "), line)
            case "turn_context":
                payload = require_object(entry["payload"], "payload: ")
                model = get_field(payload, "model", str)
                self.meter.model = model or self.meter.model
                self._keep_raw(kind, line)
            case "compacted":
                self._begin_compaction(require_object(entry["payload"], "payload: "), line)
            case "inter_agent_communication":
                payload = require_object(entry["payload"], "payload: ")
                self._append_item(read_communication(payload), entry, line)
            case "token_usage_record":
                self._read_usage_record(require_object(entry["payload"], "payload: "), line)
            case _ if kind in RAW_LINE_TYPES:
                self._keep_raw(kind, line)
            case _:
                self.now.add_unknown(kind, line.text)

    def _read_bare_item(self, entry: JsonDict, line: SourceLine) -> None:
        """Read an item without a wrapper, as in the oldest versions."""
        if "type" in entry:
            self._append_item(read_item(entry, line), None, line)
        elif "record_type" in entry:
            self._keep_raw("state", line)
        elif read_session_meta(entry) is not None:
            self._set_system_prompt(get_field(entry, "instructions", str), line)
            self._keep_raw("session_meta", line)
        else:
            raise MalformedError("type: expected text, but it is missing")

    def _read_meta(self, meta: JsonDict, line: SourceLine) -> None:
        id = require_field(meta, "id", str)
        base = get_field(meta, "base_instructions", dict) or {}
        text = get_field(base, "text", str, "base_instructions.")
        own = self.begin is not None and id == self.begin.key
        if own:
            self._set_system_prompt(text, line)
        else:
            self.spawning.copied = True
        self._keep_raw("session_meta", line)
        if own and meta.get("history_base") is not None:
            reason = "history_base: what came before is in another rollout, and is not read"
            self.now.add_problem(reason)

    def _set_system_prompt(self, prompt: str | None, line: SourceLine) -> None:
        if prompt and prompt != self.prompt:
            self.prompt = prompt
            self.now.add(RequestParameters(f"{_line_key(line)}:asked", system_prompt=prompt))

    def _append_item(self, read: ItemContent, entry: JsonDict | None, line: SourceLine) -> None:
        """Append an item of the conversation; `entry` is its wrapper."""
        payload = line.value if entry is None else entry["payload"]
        time = get_field(line.value, "timestamp", str)
        self._finish_compaction()
        if not read.blocks:
            self._keep_raw(str(payload.get("type")), line)
            return
        if summary := find_summary(read, payload):
            self._record_summary(summary, line, time)
            return
        rest = read.rest if entry is None else {**entry, "payload": read.rest}
        origin = Origin(
            format=FORMAT_NAME,
            id=get_field(payload, "id", str),
            time=time,
            entry=line.to_json(rest),
            line=line.number,
        )
        again = origin.model_copy(update={"entry": None}) if len(read.blocks) > 1 else origin
        name = make_source_id(line.number)
        item = make_context_item(read, payload, line, name)
        self.context.items.append(item)
        for index, block in enumerate(read.blocks):
            placed = block.model_copy(update={"origin": again if index else origin})
            served = read.is_server_tool and index == 0
            self.now.add(Append(f"{_line_key(line)}:{index}", placed, name, is_server_call=served))
        if read.call_id and isinstance(read.blocks[0], ToolCall):
            self.open.add(read.call_id)
        elif read.call_id and isinstance(read.blocks[0], ToolResult):
            self._keep_event_answer(read.call_id, payload)
        if read.is_by_model:
            self.meter.first_answer_id = self.meter.first_answer_id or name
        elif item.role == PROMPT_ROLE:
            self.meter.first_answer_id = None  # no count came for earlier answers
        self._link_spawned(read, payload)

    def _record_summary(self, summary: str, line: SourceLine, time: str | None) -> None:
        """Record a message as a summary: everything before it left the context."""
        self._keep_raw("summary", line)
        if self.context.items:
            self.now.add(make_compaction_step(summary, _line_key(line), time))
            self.context.items = []
        else:
            self.now.add(append_inherited_summary(summary, _line_key(line), line, time))

    def _link_spawned(self, read: ItemContent, payload: JsonDict) -> None:
        if self.begin is None:
            return
        agent = self.spawning.find_agent(read.call_id, payload)
        if agent and read.call_id and agent != self.begin.key:
            self.now.add(SubAgentLink(agent, self.begin.key, read.call_id))

    def _begin_compaction(self, payload: JsonDict, line: SourceLine) -> None:
        time = get_field(line.value, "timestamp", str)
        self._finish_compaction()
        found = read_compaction(
            payload, line, _line_key(line), self.context, time=time, size=self.meter.context_tokens
        )
        self.meter.first_answer_id = None
        self._keep_raw("compacted", line)
        self.compaction = found

    def _finish_compaction(self, post_tokens: int | None = None) -> None:
        if self.compaction:
            self.now.add(*self.compaction.make_steps(post_tokens))
            self.compaction = None

    def _read_event(self, payload: JsonDict, line: SourceLine) -> None:
        kind = require_field(payload, "type", str)
        match kind:
            case "token_count":
                self._read_token_count(payload, line)
            case "thread_rolled_back":
                self._finish_compaction()
                self._roll_back(require_field(payload, "num_turns", int), line)
                self._keep_raw(kind, line)
            case "thread_name_updated":
                self._read_title(payload)
                self._keep_raw(kind, line)
            case _ if kind == MCP_END_EVENT:
                self._read_mcp_end(payload, line)
            case _ if kind in TURN_END_EVENTS:
                if payload.get("error"):
                    self._keep_raw(kind, line)
                else:
                    self.now.skip(f"event_msg/{kind}", PROGRAM_STATE)
            case _ if reason := EVENT_REASONS.get(kind):
                self.meter.note_window(payload, "")
                self.now.skip(f"event_msg/{kind}", reason)
            case _:
                self.now.add_unknown(f"event_msg/{kind}", line.text)

    def _read_mcp_end(self, payload: JsonDict, line: SourceLine) -> None:
        """Keep the answer of an MCP server if the output of the call does not repeat it."""
        call = get_field(payload, "call_id", str)
        if call in self.open:
            self.answered[call] = (line, payload)
            self.now.skip(f"event_msg/{MCP_END_EVENT}", REPEATED_LINE)
        else:
            self._keep_raw(MCP_END_EVENT, line)

    def _keep_event_answer(self, call: str, payload: JsonDict) -> None:
        """Compare the output of a call with its event; keep the event if the output has less."""
        self.open.discard(call)
        if (told := self.answered.pop(call, None)) and not _contains_texts(payload, told[1]):
            self._keep_raw(MCP_END_EVENT, told[0])

    def _roll_back(self, turns: int, line: SourceLine) -> None:
        left = self.context.drop_turns(turns)
        if left is not None:
            to = self.context.items[left - 1].source_id if left else None
            self.now.add(Rewind(f"{_line_key(line)}:rewind", to))
            self.meter.first_answer_id = None

    def _read_title(self, payload: JsonDict) -> None:
        title = get_field(payload, "thread_name", str)
        thread = get_field(payload, "thread_id", str)
        if title and self.begin and thread in (None, self.begin.key):
            self.begin = replace(self.begin, title=title)
            self.now.add(self.begin)

    def _read_token_count(self, payload: JsonDict, line: SourceLine) -> None:
        info = get_field(payload, "info", dict) or {}
        self.meter.note_window(info, "info.")
        last = get_field(info, "last_token_usage", dict, "info.")
        if last is None:
            self.now.skip("event_msg/token_count", NO_USAGE)
            return
        total = get_field(info, "total_token_usage", dict, "info.")
        count = self.meter.read_count(last, total, "info.last_token_usage.")
        if not count.has_prompt:
            self._finish_compaction(count.context_tokens)
        if count.is_new_call:
            self._report_call(f"token_count:{line.number}", count.usage, line)
        else:
            self.now.skip("event_msg/token_count", REPEATED_USAGE)

    def _read_usage_record(self, payload: JsonDict, line: SourceLine) -> None:
        total = get_field(payload, "thread_token_usage", dict)
        count = self.meter.read_count(require_field(payload, "usage", dict), total, "usage.")
        if count.is_new_call:
            id = get_field(payload, "response_id", str)
            self._report_call(id or f"token_usage_record:{line.number}", count.usage, line)
        self._keep_raw("token_usage_record", line)

    def _report_call(self, id: str, usage: Usage, line: SourceLine) -> None:
        self._finish_compaction()
        time = get_field(line.value, "timestamp", str)
        self.now.add(self.meter.make_call(id, _line_key(line), usage, time))

    def _keep_raw(self, kind: str, line: SourceLine) -> None:
        self.now.add(_make_raw_entry(kind, line))


def _make_raw_entry(kind: str, line: SourceLine) -> RawEntry:
    return RawEntry(_line_key(line), kind, line.text, line=line.number)


def _contains_texts(output: JsonDict, event: JsonDict) -> bool:
    """Return whether an output holds each text of an MCP server's answer, directly or as JSON."""
    said = "\n".join(_find_texts(output))
    return all(
        text in said or json.dumps(text, ensure_ascii=False)[1:-1] in said
        for text in _find_texts(event.get("result"))
    )


def _find_texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value at any depth, except type names."""
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case dict() as item:
                left += [item[name] for name in item if name not in ("type", "mimeType")]
            case list() as items:
                left += items


def _line_key(line: SourceLine) -> str:
    """Return a line's name; a copied history has one time for all lines."""
    return f"{line.digest}:{line.number}"


def begin_reading(source: TranscriptSource) -> CodexTranscriptReader:
    return CodexTranscriptReader(source)
