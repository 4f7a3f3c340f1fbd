"""Reads the folder of an OpenHands SDK conversation: its state, then event by event."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .....domain.blocks import Block, BlockKind, Native, ToolCall
from ..content import (
    ContentPart,
    image_from_data,
    make_thinking_block,
    read_content,
    read_image_addresses,
)
from ..entry_steps import NOT_SENT, EntrySteps, read_entry
from ..fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    require_field,
    require_name,
    require_object,
)
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SkippedEntry,
    SourceProblem,
)
from .conversation import EventReader, read_response_usage

FORMAT_NAME = "openhands-v1"
_STATE_FILE_NAMES = ("base_state.json", "meta.json")
_EVENT_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,})\.json")
"""The file name of an event: its number, and its id."""
_NO_PARENT = "__root__"
"""The `parent_id` of an event that follows no other."""
_STATE_EVENT_TYPE = "ConversationStateUpdateEvent"
"""Events that no other one follows."""
_SKIPPED_EVENT_TYPES = frozenset(
    {
        *("ACPToolCallEvent", "AskUserEvent", "CondensationRequest", "ConversationErrorEvent"),
        *("ConversationIterationLimitEvent", _STATE_EVENT_TYPE, "HookExecutionEvent"),
        *("InterruptEvent", "LLMCompletionLogEvent", "PauseEvent"),
        *("SecurityAnalyzerConfigurationEvent", "StreamingDeltaEvent", "TokenEvent"),
        *("UserActionEvent", "WarningEvent"),
    }
)
_TEXT_FIELDS = ("output", "content", "message", "text", "error", "rejection_reason")
"""The text fields of an observation, in reading order."""


def recognizes(source: TranscriptSource) -> bool:
    return _find_event_folder(source) is not None


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the conversation's state, then its events, ordered by number."""
    within = _find_event_folder(source)
    if within is not None:
        yield from _ConversationReader(source, within).read()


def _find_event_folder(source: TranscriptSource) -> str | None:
    """Return the folder with the events: the conversation's, or a server's folder below it."""
    for within in ("", "event_service/") if source.is_folder else ():
        if any(map(_EVENT_NAME.fullmatch, _list_event_files(source, within))):
            return within
    return None


def _list_event_files(source: TranscriptSource, within: str) -> Iterator[str]:
    folder = source.path / within / "events"
    for file in folder.iterdir() if folder.is_dir() else ():
        yield file.name.encode(errors="replace").decode()


class _ConversationReader(EventReader):
    def __init__(self, source: TranscriptSource, within: str) -> None:
        super().__init__()
        self.source = source
        self.root = source.path.resolve()
        self.within = within
        self.end = 0
        """Bytes of the folder read so far."""
        self.number = -1
        """The highest number of an event so far."""
        self.ids: set[str] = set()
        self.path: list[str] = []
        """The ids of the events from the first one to the newest, without those gone back from."""
        self.forgotten: dict[str, list[str]] = {}
        """The ids that each event took out of view; it is empty for one that has only blocks."""
        self.reported: set[str] = set()
        paths = {name: source.path / within / name for name in _STATE_FILE_NAMES}
        self.states = {name: self._read_file(name) for name, at in paths.items() if at.exists()}
        states = [line.value for line in self.states.values() if line.value]
        self.state: JsonDict = states[0] if states and isinstance(states[0], dict) else {}
        self.usage = read_response_usage(self.state)
        self.condenser_calls = iter(read_response_usage(self.state, "condenser").values())
        """The fields of the calls that wrote summaries; older condensations do not name theirs."""
        self.model = find_text(self.state, "agent", "llm", "model")

    def read(self) -> Iterator[ImportStep]:
        key = find_text(self.state, "id") or self.source.stem
        yield SessionStart(key, find_text(self.state, "title"))
        if self.model:
            yield RequestParameters(f"settings:{self.model}", settings={"model": self.model})
        for name, line in self.states.items():
            if line.problem:
                yield SourceProblem(0, f"{name}: {line.problem}")
            else:
                yield SkippedEntry(NOT_SENT)
            yield EntryEnd(self.end)
        found = [
            (_EVENT_NAME.fullmatch(it), it) for it in _list_event_files(self.source, self.within)
        ]
        for number, name in sorted((int(event[1]), name) for event, name in found if event):
            yield from self._read_event_file(number, self._read_file(f"events/{name}", number))
        for name in sorted(name for event, name in found if not event and name.endswith(".json")):
            yield SourceProblem(0, f"events/{name}: no event has that name")
            yield EntryEnd(self.end)

    def _read_file(self, name: str, number: int = 0) -> SourceLine:
        """Read a file of the folder; a link to a file elsewhere is not followed."""
        name = f"{self.within}{name}"
        file = self.source.path / name
        try:
            if not file.resolve().is_relative_to(self.root):
                problem = f"{name}: a link out of the folder"
            elif not file.is_file():
                problem = f"{name}: no file"
            else:
                line = self.source.read_member(name)
                self.end += line.end
                return line
        except (OSError, RuntimeError) as error:
            problem = f"{name}: cannot be read: {error}"
        return SourceLine(number, self.end, problem=problem)

    def _read_event_file(self, number: int, line: SourceLine) -> Iterator[ImportStep]:
        before, self.number = self.number, max(self.number, number)
        if number > before + 1 and not line.problem:
            missing = f"event {before + 1}" + (f" to {number - 1}" if number > before + 2 else "")
            yield SourceProblem(number, f"{missing}: not there")
        entry = EntrySteps(FORMAT_NAME, replace(line, end=self.end), number, line.value)
        yield from read_entry(entry, self._read_event, number == before)

    def _read_event(self, entry: EntrySteps, is_repeated: bool) -> None:
        if is_repeated:
            raise MalformedError(f"another event has the number {entry.number}")
        event = require_object(entry.value)
        kind, id = require_field(event, "kind", str), require_name(event, "id")
        if id in self.ids:
            raise MalformedError(f"id: another event has the id {id}")
        entry.key = entry.id = id
        entry.time = get_field(event, "timestamp", str)
        if kind != _STATE_EVENT_TYPE:
            self._follow_parent(entry, get_field(event, "parent_id", str))
            self.path.append(id)
        match kind:
            case "SystemPromptEvent":
                entry.add(self._read_system(entry, event))
            case "Condensation":
                ids = get_field(event, "forgotten_event_ids", list) or []
                forgotten = [id for id in ids if isinstance(id, str)]
                named = get_field(event, "llm_response_id", str)
                call = self.usage.get(named) if named else next(self.condenser_calls, None)
                self.condense(entry, kind, forgotten, get_field(event, "summary", str), call)
                self.forgotten[id] = forgotten if id in self.shown else [*forgotten, id]
            case _ if read := _CONTENT_READERS.get(kind):
                read(entry, event)
                response = get_field(event, "llm_response_id", str) or None
                self.append(entry, response)
                if entry.has_appended:
                    self.forgotten[id] = []
                if response and response not in self.reported and entry.blocks:
                    self.reported.add(response)
                    entry.add(self._report_call(response, entry))
            case _:
                if kind == "CondensationRequest":
                    self.request_condensation(event)
                entry.skip_known(kind, _SKIPPED_EVENT_TYPES)
        self.ids.add(id)

    def _follow_parent(self, entry: EntrySteps, parent: str | None) -> None:
        """Go back to the event that this one follows, if it does not follow the newest."""
        if parent is None or not self.path or parent == self.path[-1]:
            return
        if parent not in self.path and parent != _NO_PARENT:
            entry.add_problem(f"parent_id: {parent} is no event that this one can follow")
            return
        del self.path[self.path.index(parent) + 1 if parent in self.path else 0 :]
        self.shown.clear()
        for id in filter(self.forgotten.__contains__, self.path):
            self.shown[id] = None
            for gone in self.forgotten[id]:
                self.shown.pop(gone, None)
        known = [id for id in self.path if id in self.forgotten]
        entry.add(Rewind(f"{entry.key}:rewind", known[-1] if known else None))

    def _read_system(self, entry: EntrySteps, event: JsonDict) -> RequestParameters:
        prompt = require_field(event, "system_prompt", dict)
        texts = [require_field(prompt, "text", str, "system_prompt.")]
        if context := get_field(event, "dynamic_context", dict):
            texts.append(require_field(context, "text", str, "dynamic_context."))
        tools = get_field(event, "tools", list)
        return RequestParameters(f"{entry.key}:asked", "\n\n".join(texts), tools)

    def _report_call(self, response: str, entry: EntrySteps) -> ReportedCall:
        spent = self.usage.get(response, {})
        usage = spent.get("usage")
        known = usage.output or 0 if usage else "unknown"
        model = spent.get("model") or self.model
        fields = {"call_id": response, **spent, "model": model, "source_time": entry.time}
        return ReportedCall(f"call:{response}:{known}", fields, entry.id)


def _read_message(entry: EntrySteps, event: JsonDict) -> None:
    """Read a message of the user, of the model, or of the program."""
    said = require_field(event, "llm_message", dict)
    role = require_field(said, "role", str, "llm_message.")
    if role == "assistant":
        _read_thoughts(entry, said)
        kind = BlockKind.ASSISTANT
    elif role == "user" and event.get("source") == "user":
        kind = BlockKind.USER
    else:
        kind = BlockKind.DEVELOPER  # the program's own text, in any role
    entry.add_parts(kind, read_content(said.get("content"), _read_images))
    more = read_content(event.get("extended_content"), _read_images, "extended_content")
    entry.add_parts(BlockKind.DEVELOPER, more)


def _read_action(entry: EntrySteps, event: JsonDict) -> None:
    _read_thoughts(entry, event)
    said = read_content(event.get("thought"), _read_images, "thought")
    entry.add_parts(BlockKind.ASSISTANT, said)
    owner = require_field(event, "tool_call", dict)
    if isinstance(owner.get("function"), dict):
        owner = owner["function"]
    call = ToolCall(
        tool_call_id=require_name(event, "tool_call_id"),
        name=require_field(event, "tool_name", str),
        arguments=require_field(owner, "arguments", str, "tool_call."),
    )
    entry.blocks.append(call)


def _read_observation(entry: EntrySteps, event: JsonDict) -> None:
    said = require_field(event, "observation", dict)
    about = said.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    # The shell's output appears between these two.
    parts = _read_part(metadata, "prefix")
    for field in _TEXT_FIELDS:
        parts += _read_part(said, field)
    parts += _read_part(metadata, "suffix")
    data = said.get("screenshot_data")
    if isinstance(data, str) and data and (picture := image_from_data(data, "image/png")):
        parts.append(picture)
    parts += _read_part(event, "extended_content")
    is_error = bool(said.get("error") or said.get("is_error"))
    entry.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=is_error)


def _read_rejection(entry: EntrySteps, event: JsonDict) -> None:
    """Read the rejection of a call by a user or a hook."""
    reason = get_field(event, "rejection_reason", str)
    parts = [reason] if reason else []
    entry.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=True)


def _read_error(entry: EntrySteps, event: JsonDict) -> None:
    """Read the error of a call that could not be made."""
    error = require_field(event, "error", str)
    entry.add_tool_result(require_name(event, "tool_call_id"), [error], is_error=True)


def _read_thoughts(entry: EntrySteps, owner: JsonDict) -> None:
    signed = get_field(owner, "thinking_blocks", list) or []
    plain = get_field(owner, "reasoning_content", str) or ""
    if not any(isinstance(item, dict) and item.get("thinking") == plain for item in signed):
        entry.add_text(BlockKind.THINKING, plain)
    for item in signed:
        thought = require_object(item, "thinking_blocks: ")
        entry.blocks.append(make_thinking_block(thought, entry.line))
    if item := get_field(owner, "responses_reasoning_item", dict):
        entry.blocks.append(_read_reasoning(item, entry.line))


def _read_reasoning(item: JsonDict, line: SourceLine) -> Block:
    told = get_field(item, "summary", list, "responses_reasoning_item.") or []
    summary = [text for text in told if isinstance(text, str)]
    wire = {
        "type": "reasoning",
        "id": item.get("id"),
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "encrypted_content": item.get("encrypted_content"),
    }
    native = Native(provider="openai-responses", item=line.to_json(wire))
    return Block.thinking("\n\n".join(summary), native=native)


def _read_part(owner: JsonDict, field: str) -> list[ContentPart]:
    content = owner.get(field)
    return read_content(content, _read_images, field) if isinstance(content, str | list) else []


def _read_images(item: Any) -> list[ContentPart] | None:
    match item:
        case {"type": "image", "image_urls": list(addresses)}:
            return read_image_addresses(addresses, "image_urls")
        case _:
            return None


_CONTENT_READERS: dict[str, Callable[[EntrySteps, JsonDict], None]] = {
    "MessageEvent": _read_message,
    "ActionEvent": _read_action,
    "ObservationEvent": _read_observation,
    "UserRejectObservation": _read_rejection,
    "AgentErrorEvent": _read_error,
    # A summary with nothing before it.
    "CondensationSummaryEvent": lambda entry, event: entry.add_summary(
        require_field(event, "summary", str)
    ),
}
"""The readers of events with content, by kind."""
