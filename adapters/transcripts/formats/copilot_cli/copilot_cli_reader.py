"""Recognizes sessions of Copilot CLI, and reads them event by event."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .....domain.blocks import Block
from .....domain.compaction_events import Trigger
from ..entry_steps import EntryBlocks, EntryLocation, EntrySteps
from ..fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    Append,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SourceCompaction,
)
from ..summary_mark import find_marked_summary
from .event_content import (
    KEPT_EVENT_TYPES,
    SKIPPED_EVENT_TYPES,
    is_from_sub_agent,
    read_assistant_message,
    read_copilot_usage,
    read_tool_result,
    read_user_message,
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


class CopilotReader:
    def __init__(self, key: str, project: str | None = None) -> None:
        self.begin = SessionStart(key, project=project)
        self.has_begun = False
        self.has_said = False
        self.seen: dict[str, str | None] = {}
        """Ids of events, each with the id of the event that was kept before it."""
        self.digests: dict[str, str] = {}
        self.kept: str | None = None
        self.calls: dict[str, str] = {}
        """Open tool calls: their ids in the source and in the session."""
        self.answers: dict[str, str] = {}
        """Calls of the model, each with the first event of its answer."""

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        entry = EntrySteps(line.number, line.end)
        if not self.has_begun:
            self.has_begun = True
            entry.add(self.begin)
        if line.problem:
            entry.refuse(line, line.problem)
            return entry.finish()
        try:
            self._read_event(entry, line)
        except MalformedError as error:
            entry.add_problem(str(error), _raw_text(line))
        except NestedTooDeeplyError as error:
            entry.add_problem(str(error), line.text)
        return entry.finish()

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:  # noqa: ARG002 - nothing waits
        return []

    def _read_event(self, entry: EntrySteps, line: SourceLine) -> None:
        event = require_object(line.value)
        kind = require_field(event, "type", str)
        data = require_field(event, "data", dict)
        id = get_field(event, "id", str) or line.digest
        if (known := self.digests.get(id)) is not None:
            if known != line.digest:
                raise MalformedError(f"id: another event has the id {id}")
            entry.skip(kind, "repeated id")
            return
        if reason := SKIPPED_EVENT_TYPES.get(kind):
            entry.skip(kind, reason)
            self.digests[id] = line.digest
            return
        before = self.kept
        if is_from_sub_agent(event, data):
            self._keep_raw(entry, line, id)
        elif kind == "user.message":
            self._read_user(entry, line, data, id)
        elif kind == "assistant.message":
            self._read_assistant(entry, line, data, id)
        elif kind == "tool.execution_complete":
            self._read_result(entry, line, data, id)
        elif kind in KEPT_EVENT_TYPES:
            self._read_known(entry, line, kind, data, id)
        else:
            entry.add_unknown(kind, _raw_text(line), id)
        self.seen[id] = before
        self.digests[id] = line.digest
        self.kept = id

    def _locate(self, line: SourceLine, id: str) -> EntryLocation:
        time = get_field(line.value, "timestamp", str)
        return EntryLocation(FORMAT_NAME, id, line, line.number, id, time)

    def _append_content(
        self,
        entry: EntrySteps,
        pieces: EntryBlocks,
        whence: EntryLocation,
        message_id: str | None = None,
    ) -> None:
        if not pieces.blocks:
            self._keep_raw(entry, whence.line, whence.key)
            return
        self.has_said = True
        entry.add(*pieces.make_appends(whence, message_id))

    def _read_user(self, entry: EntrySteps, line: SourceLine, data: JsonDict, id: str) -> None:
        pieces, whence = EntryBlocks(), self._locate(line, id)
        source = get_field(data, "source", str, "data.")
        found = find_marked_summary(data, data.get("content"))
        if found and self.has_said:
            self._keep_raw(entry, line, id)
            entry.add(SourceCompaction(f"{id}:compacted", Trigger.MANUAL, found.text))
            return
        if found:
            pieces.add_summary(found.text)
        else:
            read_user_message(pieces, data, by_harness=source not in _USER_SOURCES)
        self._append_content(entry, pieces, whence)

    def _read_assistant(self, entry: EntrySteps, line: SourceLine, data: JsonDict, id: str) -> None:
        pieces, whence = EntryBlocks(), self._locate(line, id)
        said = get_field(data, "messageId", str, "data.") or id
        answer = get_field(data, "apiCallId", str, "data.") or said
        self.calls |= read_assistant_message(pieces, whence, data, self.calls)
        first = self.answers.setdefault(answer, id)
        self._append_content(entry, pieces, whence, answer)
        if data.get("outputTokens") is not None:
            entry.add(self._read_call(data, answer, whence, first))

    def _read_result(self, entry: EntrySteps, line: SourceLine, data: JsonDict, id: str) -> None:
        call = require_field(data, "toolCallId", str, "data.")
        if call not in self.calls:
            raise MalformedError(f"data.toolCallId: {call} answers no open call")
        pieces, whence = EntryBlocks(), self._locate(line, id)
        read_tool_result(pieces, data, self.calls[call])
        del self.calls[call]
        self._append_content(entry, pieces, whence)

    def _read_known(
        self, entry: EntrySteps, line: SourceLine, kind: str, data: JsonDict, id: str
    ) -> None:
        self._keep_raw(entry, line, id)
        match kind, data:
            case "system.message", {"content": str(text)}:
                entry.add(RequestParameters(f"{id}:asked", system_prompt=text))
            case ("session.start", {"selectedModel": str(model)}) | (
                "session.model_change",
                {"newModel": str(model)},
            ):
                entry.add(RequestParameters(f"{id}:asked", settings={"model": model}))
            case "session.title_changed", {"title": str(title)}:
                self.begin = replace(self.begin, title=title)
                entry.add(self.begin)
            case "session.compaction_complete", {"success": True}:
                compacted = self._read_compaction(line, data, id)
                if self.has_said:
                    entry.add(compacted)
                elif compacted.summary:
                    origin = self._locate(line, id).make_origin()
                    block = Block.developer(compacted.summary, name="summary", origin=origin)
                    entry.add(Append(f"{id}:summary", block, id))
            case "session.snapshot_rewind", {"upToEventId": str(first)} if first in self.seen:
                entry.add(Rewind(f"{id}:rewind", to=self.seen[first]))
            case "assistant.usage", _:
                answer = get_field(data, "apiCallId", str, "data.") or id
                whence = self._locate(line, id)
                entry.add(self._read_call(data, answer, whence, self.answers.get(answer)))

    def _read_compaction(self, line: SourceLine, data: JsonDict, id: str) -> SourceCompaction:
        before = get_field(data, "preCompactionMessagesLength", int, "data.")
        removed = get_field(data, "messagesRemoved", int, "data.")
        manual = data.get("trigger") == "manual"
        return SourceCompaction(
            key=f"{id}:compacted",
            trigger=Trigger.MANUAL if manual else Trigger.THRESHOLD,
            summary=get_field(data, "summaryContent", str, "data.") or None,
            pre_tokens=get_field(data, "preCompactionTokens", int, "data."),
            post_tokens=get_field(data, "postCompactionTokens", int, "data."),
            source_time=get_field(line.value, "timestamp", str),
            partial_reason=_KEPT_UNKNOWN if before and removed and removed < before else None,
        )

    def _read_call(
        self, data: JsonDict, answer: str, whence: EntryLocation, first: str | None
    ) -> ReportedCall:
        fields = {
            "call_id": answer,
            "model": get_field(data, "model", str, "data."),
            "usage": read_copilot_usage(data),
            "source_time": whence.time,
        }
        return ReportedCall(f"{whence.key}:call", fields, first_answer_id=first)

    def _keep_raw(self, entry: EntrySteps, line: SourceLine, id: str) -> None:
        entry.add(RawEntry(id, line.value["type"], _raw_text(line), id, line.number))


def _raw_text(line: SourceLine) -> str:
    """Return the original event, with unpaired surrogates replaced."""
    return line.to_json(line.value) if line.has_odd_numbers else line.text


def _is_event(value: Any) -> bool:
    match value:
        case {"type": str(kind), "data": dict(), "id": str(), "timestamp": _, "parentId": _}:
            return kind in _EVENT_TYPES
        case _:
            return False


_EVENT_TYPES = {
    *("user.message", "assistant.message", "tool.execution_complete"),
    *(*KEPT_EVENT_TYPES, *SKIPPED_EVENT_TYPES),
}
