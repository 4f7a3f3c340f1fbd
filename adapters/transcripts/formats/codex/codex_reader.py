"""Converts the lines of a Codex rollout to steps."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..entry_steps import EntrySteps, read_entry
from ..fields import JsonDict, get_field, require_field, require_object
from ..format import LineReader
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import (
    ImportStep,
    RequestParameters,
    Rewind,
    SessionStart,
    SubAgentLink,
)
from .compaction import (
    PROMPT_ROLE,
    ContextItem,
    add_post_tokens,
    append_inherited_summary,
    drop_turns,
    find_summary,
    make_compaction_step,
    make_context_item,
    make_source_id,
    read_compaction,
)
from .entries import (
    FORMAT_NAME,
    MODEL_KINDS,
    NO_USAGE,
    REPEATED_USAGE,
    SHOWN,
    SKIPPED_LINE_TYPES,
    UsageTracker,
    find_spawned_agent,
    read_communication,
    read_item,
    read_session_start,
    wrap_line,
)

_MAIN_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_LINE_TYPES = _MAIN_LINE_TYPES | {"inter_agent_communication", "token_usage_record"}


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_entry(value) for value in source.first_values)


def _is_entry(value: Any) -> bool:
    match value:
        case {"type": str(kind), "payload": dict(), "timestamp": _}:
            return kind in _MAIN_LINE_TYPES
        case {"id": str(), "timestamp": str(), "instructions": _}:
            return "type" not in value
        case {"record_type": "state"}:
            return True
        case _:
            return False


class CodexTranscriptReader(LineReader):
    def __init__(self, source: TranscriptSource) -> None:
        self.source = source
        self.begin = SessionStart("")
        """The session; it has no key until the first line is read."""
        self.line = SourceLine(0, 0)
        self.now = EntrySteps(FORMAT_NAME, self.line, 0, None)
        """The steps of the line."""
        self.context: list[ContextItem] = []
        """The items in context, oldest first."""
        self.meter = UsageTracker()
        self.prompt: str | None = None
        self.compaction: list[ImportStep] = []
        """The compaction whose remaining tokens the next token count has."""
        self.is_copy = False
        """Whether the rollout began with a copy of its parent's; then the owner of a call is
        unknown.
        """
        self.spawn_calls: set[str] = set()
        """Calls that start other sessions, before their outputs."""

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        self.line = line
        self.now = EntrySteps(FORMAT_NAME, line, line.number, line.value, _line_key(line))
        return read_entry(self.now, self._read)

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:  # noqa: ARG002 - nothing waits
        return [*self.compaction]  # it stays, since the count may be the very next line

    def _read(self, _: EntrySteps) -> None:
        if not self.begin.key:
            self.begin = read_session_start(self.line.value, self.source)
            self.now.add(self.begin)
        entry = wrap_line(require_object(self.line.value))
        self.now.time = get_field(self.line.value, "timestamp", str)
        kind = require_field(entry, "type", str)
        if kind in SKIPPED_LINE_TYPES:
            self.now.skip()
            return
        if kind not in _LINE_TYPES:
            self.now.add_unknown(kind)
            return
        payload = require_object(entry["payload"], "payload: ")
        match kind:
            case "response_item":
                self._append_item(read_item(payload, self.line), payload)
            case "inter_agent_communication":
                self._append_item(read_communication(payload), payload)
            case "event_msg":
                self._read_event(payload)
            case "session_meta":
                self._read_meta(payload)
            case "turn_context":
                self.meter.model = get_field(payload, "model", str) or self.meter.model
                self.now.skip()
            case "compacted":
                self._begin_compaction(payload)
            case _:
                self._read_usage_record(payload)

    def _read_meta(self, meta: JsonDict) -> None:
        is_own = require_field(meta, "id", str) == self.begin.key
        base = get_field(meta, "base_instructions", dict) or {}
        text = get_field(base, "text", str, "base_instructions.")
        if is_own:
            self._set_system_prompt(text)
        else:
            self.is_copy = True
        self.now.skip()
        if is_own and meta.get("history_base") is not None:
            reason = "history_base: what came before is in another rollout, and is not read"
            self.now.add_problem(reason)

    def _set_system_prompt(self, prompt: str | None) -> None:
        if prompt and prompt != self.prompt:
            self.prompt = prompt
            self.now.add(RequestParameters(f"{self.now.key}:asked", system_prompt=prompt))

    def _append_item(self, read: list[AnyBlock], payload: JsonDict) -> None:
        """Append an item of the conversation; `payload` is the item, with or without a wrapper."""
        key, line = self.now.key, self.line
        self._finish_compaction()
        if not read:
            self.now.skip()
            return
        if summary := find_summary(read, payload):
            if self.context:  # everything before it left the context
                self.now.mark_compaction("summary")
                self.now.add(make_compaction_step(self.now, summary))
                self.context.clear()
            else:
                self.now.add(append_inherited_summary(self.now, summary))
            return
        self.now.id = get_field(payload, "id", str)
        name = make_source_id(line.number)
        item = make_context_item(read, payload, line, name)
        self.context.append(item)
        # The provider answers other calls itself, in the same item.
        is_call = str(payload.get("type")).endswith("_call")
        for index, block in enumerate(read):
            served = index == 0 and is_call and not isinstance(block, ToolCall)
            self.now.append_block(f"{key}:{index}", block, name, is_server_call=served)
        first = read[0]
        if isinstance(first, (ToolCall, ToolResult)) and not self.is_copy:
            self._link_agent(first.tool_call_id, payload)
        if first.kind in MODEL_KINDS:
            self.meter.first_answer_id = self.meter.first_answer_id or name
        elif item.role == PROMPT_ROLE:
            self.meter.first_answer_id = None  # no count came for earlier answers

    def _link_agent(self, call: str, payload: JsonDict) -> None:
        """Link a call with the session that it started, once its output names it."""
        match payload:
            case {"type": "function_call", "name": "spawn_agent"}:
                self.spawn_calls.add(call)
            case {"type": "function_call_output", "output": str(output)} if (
                call in self.spawn_calls
            ):
                self.spawn_calls.remove(call)
                agent = find_spawned_agent(output)
                if agent and agent != self.begin.key:
                    self.now.add(SubAgentLink(agent, self.begin.key, call))

    def _begin_compaction(self, payload: JsonDict) -> None:
        self._finish_compaction()
        steps = read_compaction(self.now, payload, self.context, self.meter.context_tokens)
        self.meter.first_answer_id = None
        self.now.mark_compaction("compacted")
        self.compaction = steps

    def _finish_compaction(self, post_tokens: int | None = None) -> None:
        if self.compaction:
            self.now.add(*add_post_tokens(self.compaction, post_tokens))
            self.compaction = []

    def _read_event(self, payload: JsonDict) -> None:
        """Read what the person was shown; what items say as well is skipped."""
        kind = require_field(payload, "type", str)
        if kind == "token_count":
            self._read_token_count(payload)
        elif kind == "thread_rolled_back":
            self._roll_back(payload)
        elif kind == "thread_name_updated":
            self._read_title(payload)
        else:
            self.meter.note_window(payload)
            self.now.skip(SHOWN)

    def _roll_back(self, payload: JsonDict) -> None:
        self._finish_compaction()
        if drop_turns(self.context, require_field(payload, "num_turns", int)):
            to = self.context[-1].source_id if self.context else None
            self.now.add(Rewind(f"{self.now.key}:rewind", to))
            self.meter.first_answer_id = None

    def _read_title(self, payload: JsonDict) -> None:
        title = get_field(payload, "thread_name", str)
        thread = get_field(payload, "thread_id", str)
        if title and thread in (None, self.begin.key):
            self.begin = replace(self.begin, title=title)
            self.now.add(self.begin)

    def _read_token_count(self, payload: JsonDict) -> None:
        info = get_field(payload, "info", dict) or {}
        self.meter.note_window(info, "info.")
        last = get_field(info, "last_token_usage", dict, "info.")
        if last is None:
            self.now.skip(NO_USAGE)
            return
        total = get_field(info, "total_token_usage", dict, "info.")
        count = self.meter.read_count(last, total, "info.last_token_usage.")
        if not count.has_prompt:
            self._finish_compaction(count.context_tokens)
        if count.is_new_call:
            self._report_call(f"token_count:{self.line.number}", count.usage)
        else:
            self.now.skip(REPEATED_USAGE)

    def _read_usage_record(self, payload: JsonDict) -> None:
        total = get_field(payload, "thread_token_usage", dict)
        count = self.meter.read_count(require_field(payload, "usage", dict), total, "usage.")
        if count.is_new_call:
            id = get_field(payload, "response_id", str)
            self._report_call(id or f"token_usage_record:{self.line.number}", count.usage)
        self.now.skip()

    def _report_call(self, id: str, usage: Usage) -> None:
        self._finish_compaction()
        self.now.add(self.meter.make_call(id, self.now.key, usage, self.now.time))


def _line_key(line: SourceLine) -> str:
    """Return a line's name; a copied history has one time for all lines."""
    return f"{line.digest}:{line.number}"
