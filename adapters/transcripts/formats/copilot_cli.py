"""Reads sessions of GitHub Copilot CLI: event files in which each event names its parent."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ....domain.blocks import Block, BlockKind, ToolCall
from ....domain.compaction_events import Trigger
from ....domain.session_events import Usage
from .content import ContentPart, media_from_base64
from .entry_steps import EntrySteps, read_entry
from .fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    read_usage,
    require_field,
    require_object,
)
from .format import LineReader, make_line_format
from .json_lines import SourceLine
from .source import TranscriptSource
from .steps import (
    ImportStep,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SourceCompaction,
)

_SKIPPED_EVENT_TYPES = frozenset(
    {
        *("abort", "assistant.intent", "assistant.message_delta", "assistant.message_start"),
        *("assistant.reasoning", "assistant.reasoning_delta", "assistant.streaming_delta"),
        *("assistant.turn_end", "assistant.turn_start", "assistant.usage", "hook.end"),
        *("hook.start", "model.message", "model.messages_snapshot", "model.model_call_started"),
        *("model.model_call_success", "model.response", "model.turn_ended", "model.turn_started"),
        *("pending_messages.modified", "permission.completed"),
        *("permission.requested", "session.background_tasks_changed"),
        *("session.compaction_complete", "session.compaction_start", "session.context_changed"),
        *("session.custom_agents_updated", "session.error", "session.handoff", "session.idle"),
        *("session.info", "session.mcp_servers_loaded", "session.mode_changed"),
        *("session.model_change", "session.permissions_changed", "session.plan_changed"),
        *("session.remote_steerable_changed", "session.resume", "session.shutdown"),
        *("session.skills_loaded", "session.snapshot_rewind", "session.start"),
        *("session.task_complete", "session.title_changed", "session.tools_updated"),
        *("session.truncation", "session.usage_checkpoint", "session.usage_info"),
        *("session.usage_record", "session.warning", "session.workspace_file_changed"),
        *("skill.invoked", "subagent.completed", "subagent.configured", "subagent.deselected"),
        *("subagent.failed", "subagent.selected"),
        *("subagent.started", "system.message", "system.notification"),
        *("tool.execution_partial_result", "tool.execution_progress", "tool.execution_start"),
        *("tool.user_requested",),
    }
)
"""Types of events without blocks, some of which change the session."""


def is_from_sub_agent(event: JsonDict, data: JsonDict) -> bool:
    """Return whether a sub-agent wrote it: sub-agents share the session's file."""
    return isinstance(data.get("parentToolCallId"), str) or isinstance(event.get("agentId"), str)


def read_user_message(entry: EntrySteps, data: JsonDict, *, by_harness: bool) -> None:
    """Read a user message; the model got its `transformedContent`."""
    said = get_field(data, "content", str, "data.") or ""
    sent = get_field(data, "transformedContent", str, "data.")
    entry.add_text(BlockKind.DEVELOPER if by_harness else BlockKind.USER, sent or said)
    for file in get_field(data, "attachments", list, "data.") or []:
        match file:  # only a blob holds its bytes; others are not in the file
            case {"type": "blob", "data": str(encoded), "mimeType": str(mime)}:
                media = media_from_base64(encoded, mime, "data: ", find_text(file, "displayName"))
                entry.blocks.append(Block(kind=BlockKind(media.type), media=media, name=media.name))


def read_assistant_message(
    entry: EntrySteps, data: JsonDict, calls: Mapping[str, str]
) -> dict[str, str]:
    """Read a model's message; return its calls' source ids with their unique ids.

    `calls` are the open calls.
    """
    opened: dict[str, str] = {}
    entry.add_text(BlockKind.THINKING, get_field(data, "reasoningText", str, "data.") or "")
    entry.add_text(BlockKind.ASSISTANT, get_field(data, "content", str, "data.") or "")
    for index, item in enumerate(get_field(data, "toolRequests", list, "data.") or []):
        within = f"data.toolRequests[{index}]"
        request = require_object(item, f"{within}: ")
        id = require_field(request, "toolCallId", str, f"{within}.")
        name = require_field(request, "name", str, f"{within}.")
        if not id:
            raise MalformedError(f"{within}.toolCallId: expected an id, but it is empty")
        told = request.get("arguments", {})
        arguments = told if isinstance(told, str) else entry.line.to_json(told)
        opened[id] = f"{id}#{entry.key}/{index}" if id in calls or id in opened else id
        entry.blocks.append(ToolCall(tool_call_id=opened[id], name=name, arguments=arguments))
    return opened


def read_tool_result(entry: EntrySteps, data: JsonDict, call: str) -> None:
    """Read a tool's answer: the model got `result.content`, or the error's message."""
    failed = require_field(data, "success", bool, "data.") is False
    result = get_field(data, "result", dict, "data.")
    name, field = ("result", "content") if result else ("error", "message")
    owner = result or data.get("error")
    text = get_field(owner, field, str, f"data.{name}.") if isinstance(owner, dict) else None
    parts: list[ContentPart] = [text or ""]
    for item in get_field(result or {}, "contents", list, "data.") or []:
        match item:
            case {"type": "image", "data": str(encoded), "mimeType": str(mime)}:
                parts.append(media_from_base64(encoded, mime, "data: "))
    entry.add_tool_result(call, parts, is_error=failed)


def read_copilot_usage(data: JsonDict, within: str = "data.") -> Usage:
    """Return the usage of a call; messages of older versions tell only its output."""
    return read_usage(
        data,
        within,
        is_total=True,
        input="inputTokens",
        cache_read="cacheReadTokens",
        cache_write="cacheWriteTokens",
        output="outputTokens",
        reasoning="reasoningTokens",
    )


FORMAT_NAME = "copilot-cli"
_USER_SOURCES = (None, "", "user")
_KEPT_UNKNOWN = "the source does not say which messages stayed in context"


def recognizes(source: TranscriptSource) -> bool:
    return any(_is_event(value) for value in source.first_values)


def begin_reading(source: TranscriptSource) -> "CopilotReader":
    for value in source.first_values:
        match value:
            case {"type": "session.start", "data": {"sessionId": str(id)} as data} if id:
                return CopilotReader(id, find_text(data, "context", "cwd"))
    # A session's file is `events.jsonl` in a folder with the session's id.
    return CopilotReader(source.path.parent.name if source.stem == "events" else source.stem)


class CopilotReader(LineReader):
    def __init__(self, key: str, project: str | None = None) -> None:
        self.begin = SessionStart(key, project=project)
        self.has_begun = False
        self.has_said = False
        self.seen: dict[str, str | None] = {}
        """Ids of events, each with the id of the newest event with blocks before it."""
        self.digests: dict[str, str] = {}
        self.newest: str | None = None
        """The newest event with blocks."""
        self.calls: dict[str, str] = {}
        """Open tool calls: their ids in the source and in the session."""
        self.answers: dict[str, str] = {}
        """Calls of the model, each with the first event of its answer."""
        self.reported: set[str] = set()
        """Calls whose usage has an event of its own, before their answers."""

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        entry = EntrySteps(FORMAT_NAME, line, line.number, line.value)
        if not self.has_begun:
            self.has_begun = True
            entry.add(self.begin)
        return read_entry(entry, self._read_event)

    def _read_event(self, entry: EntrySteps) -> None:
        line, event = entry.line, require_object(entry.value)
        kind = require_field(event, "type", str)
        data = require_field(event, "data", dict)
        id = entry.key = entry.id = get_field(event, "id", str) or line.digest
        if (known := self.digests.get(id)) is not None:
            if known != line.digest:
                raise MalformedError(f"id: another event has the id {id}")
            entry.skip("repeated id")
            return
        entry.time = get_field(event, "timestamp", str)
        before = self.newest
        if is_from_sub_agent(event, data):
            entry.skip()
        elif kind == "user.message":
            source = get_field(data, "source", str, "data.")
            read_user_message(entry, data, by_harness=source not in _USER_SOURCES)
            self.has_said |= entry.append()
        elif kind == "assistant.message":
            self._read_assistant(entry, data)
        elif kind == "tool.execution_complete":
            self._read_result(entry, data)
        elif kind in _SKIPPED_EVENT_TYPES:
            self._read_known(entry, kind, data)
        else:
            entry.add_unknown(kind)
        self.seen[id] = before
        self.digests[id] = line.digest
        if entry.has_appended:
            self.newest = id

    def _read_assistant(self, entry: EntrySteps, data: JsonDict) -> None:
        said = get_field(data, "messageId", str, "data.") or entry.key
        answer = get_field(data, "apiCallId", str, "data.") or said
        self.calls |= read_assistant_message(entry, data, self.calls)
        if entry.append(answer):
            self.has_said = True
            self.answers.setdefault(answer, entry.key)
        if data.get("outputTokens") is not None and answer not in self.reported:
            entry.add(self._read_call(entry, data, answer))

    def _read_result(self, entry: EntrySteps, data: JsonDict) -> None:
        call = require_field(data, "toolCallId", str, "data.")
        if call not in self.calls:
            raise MalformedError(f"data.toolCallId: {call} answers no open call")
        read_tool_result(entry, data, self.calls[call])
        del self.calls[call]
        self.has_said |= entry.append()

    def _read_known(self, entry: EntrySteps, kind: str, data: JsonDict) -> None:
        entry.skip()
        match kind, data:
            case "system.message", {"content": str(text)}:
                entry.add(RequestParameters(f"{entry.key}:asked", system_prompt=text))
            case ("session.start", {"selectedModel": str(model)}) | (
                "session.model_change",
                {"newModel": str(model)},
            ):
                entry.add(RequestParameters(f"{entry.key}:asked", settings={"model": model}))
            case "session.title_changed", {"title": str(title)}:
                self.begin = replace(self.begin, title=title)
                entry.add(self.begin)
            case "session.compaction_complete", {"success": True}:
                compacted = self._read_compaction(entry, data)
                if self.has_said:
                    entry.mark_compaction(kind)
                    entry.add(compacted)
                elif compacted.summary:
                    entry.append_summary(compacted.summary)
            case "session.snapshot_rewind", {"upToEventId": str(first)} if first in self.seen:
                entry.add(Rewind(f"{entry.key}:rewind", to=self.seen[first]))
            case ("assistant.usage", told) | ("session.usage_record", {"usage": dict(told)}):
                answer = get_field(told, "apiCallId", str, "data.") or entry.key
                self.reported.add(answer)
                entry.add(self._read_call(entry, told, answer))

    def _read_compaction(self, entry: EntrySteps, data: JsonDict) -> SourceCompaction:
        before = get_field(data, "preCompactionMessagesLength", int, "data.")
        removed = get_field(data, "messagesRemoved", int, "data.")
        manual = data.get("trigger") == "manual"
        used = get_field(data, "compactionTokensUsed", dict, "data.")
        return SourceCompaction(
            key=f"{entry.key}:compacted",
            trigger=Trigger.MANUAL if manual else Trigger.THRESHOLD,
            summary=get_field(data, "summaryContent", str, "data.") or None,
            pre_tokens=get_field(data, "preCompactionTokens", int, "data."),
            post_tokens=get_field(data, "postCompactionTokens", int, "data."),
            source_time=entry.time,
            partial_reason=_KEPT_UNKNOWN if before and removed and removed < before else None,
            summary_call=_read_summary_call(used) if used else None,
        )

    def _read_call(self, entry: EntrySteps, data: JsonDict, answer: str) -> ReportedCall:
        fields = {
            "call_id": answer,
            "model": get_field(data, "model", str, "data."),
            "usage": read_copilot_usage(data),
            "source_time": entry.time,
        }
        return ReportedCall(f"{entry.key}:call", fields, self.answers.get(answer))


def _read_summary_call(used: JsonDict) -> JsonDict:
    within = "data.compactionTokensUsed."
    model = get_field(used, "model", str, within)
    return {"model": model, "usage": read_copilot_usage(used, within)}


def _is_event(value: Any) -> bool:
    match value:
        case {"type": str(kind), "data": dict(), "id": str(), "timestamp": _, "parentId": _}:
            return kind in _EVENT_TYPES
        case _:
            return False


_EVENT_TYPES = _SKIPPED_EVENT_TYPES | {
    *("user.message", "assistant.message", "tool.execution_complete"),
}


FORMAT = make_line_format(
    FORMAT_NAME,
    "sessions of GitHub Copilot CLI",
    recognizes,
    begin_reading,
    home_patterns=("~/.copilot/session-state", "~/.copilot/history-session-state"),
)
