"""Reads the folder of an OpenHands SDK conversation: its state, then event by event."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .....domain.blocks import Block, BlockKind, Native, ToolCall
from ..content_items import read_content, read_image_addresses
from ..entry_steps import (
    ContentPart,
    EntryBlocks,
    EntryLocation,
    image_from_data,
    make_line_problem,
    make_thinking_block,
)
from ..fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    require_field,
    require_name,
    require_object,
)
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SkippedEntry,
    SourceProblem,
)
from .call_usage import read_response_usage
from .event_reader import EventReader, find_outcome

FORMAT_NAME = "openhands-v1"
_STATE_FILE_NAMES = ("base_state.json", "meta.json")
_EVENT_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,})\.json")
"""The file name of an event: its number, and its id."""
_RAW_EVENT_TYPES = frozenset(
    {
        *("ACPToolCallEvent", "AskUserEvent", "ConversationErrorEvent"),
        *("ConversationIterationLimitEvent", "ConversationStateUpdateEvent"),
        *("HookExecutionEvent", "InterruptEvent", "PauseEvent"),
        *("SecurityAnalyzerConfigurationEvent", "UserActionEvent", "WarningEvent"),
    }
)
"""Kinds of events that no model was sent, and that the agent needs to resume."""
_TEXT_FIELDS = ("output", "content", "message", "text", "error", "rejection_reason")
"""The text fields of an observation, in reading order."""
_SKIPPED_EVENT_TYPES = {
    "LLMCompletionLogEvent": "a log of a request: its events say the same",
    "StreamingDeltaEvent": "pieces of a message that comes again whole",
    "TokenEvent": "token ids, for training",
}


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
        self.within = within
        self.end = 0
        """Bytes of the folder read so far."""
        self.number = -1
        """The highest number of an event so far."""
        self.ids: set[str] = set()
        self.reported: set[str] = set()
        paths = {name: source.path / within / name for name in _STATE_FILE_NAMES}
        self.states = {name: self._read_file(name) for name, at in paths.items() if at.exists()}
        states = [line.value for line in self.states.values() if line.value]
        self.state: JsonDict = states[0] if states and isinstance(states[0], dict) else {}
        self.usage = read_response_usage(self.state)
        self.model = find_text(self.state, "agent", "llm", "model")

    def read(self) -> Iterator[ImportStep]:
        key = find_text(self.state, "id") or self.source.stem
        yield SessionStart(key, find_text(self.state, "title"))
        if self.model:
            yield RequestParameters(f"settings:{self.model}", settings={"model": self.model})
        for name, line in self.states.items():
            if line.problem:
                yield from self._refuse(line, f"{name}: {line.problem}", 0)
            else:
                yield RawEntry(f"{name}:{line.digest}", name, line.text)
                yield EntryEnd("imported", self.end)
        found = [
            (_EVENT_NAME.fullmatch(it), it) for it in _list_event_files(self.source, self.within)
        ]
        for number, name in sorted((int(event[1]), name) for event, name in found if event):
            yield from self._read_event_file(number, self._read_file(f"events/{name}", number))
        for name in sorted(name for event, name in found if not event and name.endswith(".json")):
            yield SourceProblem(0, f"events/{name}: no event has that name")
            yield EntryEnd("error", self.end)

    def _read_file(self, name: str, number: int = 0) -> SourceLine:
        """Read a file of the folder; a link to a file elsewhere is not followed."""
        name = f"{self.within}{name}"
        file = self.source.path / name
        try:
            if not file.resolve().is_relative_to(self.source.path.resolve()):
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

    def _refuse(self, line: SourceLine, reason: str, number: int) -> Iterator[ImportStep]:
        yield replace(make_line_problem(line, reason), line=number)
        yield EntryEnd("error", self.end)

    def _read_event_file(self, number: int, line: SourceLine) -> Iterator[ImportStep]:
        before, self.number = self.number, max(self.number, number)
        if line.problem:
            yield from self._refuse(line, line.problem, number)
            return
        if number > before + 1:
            missing = f"event {before + 1}" + (f" to {number - 1}" if number > before + 2 else "")
            yield SourceProblem(number, f"{missing}: not there")
        try:
            steps = list(self._read_event(line, number, is_repeated=number == before))
            outcome = find_outcome(steps)
        except (MalformedError, NestedTooDeeplyError) as error:
            problem = SourceProblem(number, str(error), f"{number}:{line.digest}", line.text)
            steps, outcome = [problem], "error"
        yield from steps
        yield EntryEnd(outcome, self.end)

    def _read_event(
        self, line: SourceLine, number: int, *, is_repeated: bool
    ) -> Iterator[ImportStep]:
        if is_repeated:
            raise MalformedError(f"another event has the number {number}")
        event = require_object(line.value)
        kind, id = require_field(event, "kind", str), require_name(event, "id")
        if id in self.ids:
            raise MalformedError(f"id: another event has the id {id}")
        time = get_field(event, "timestamp", str)
        whence = EntryLocation(FORMAT_NAME, id, line, number, id, time)
        match kind:
            case "SystemPromptEvent":
                yield self._read_system(event, whence)
                yield self.keep_raw(whence, kind)
            case "Condensation":
                ids = get_field(event, "forgotten_event_ids", list) or []
                forgotten = [id for id in ids if isinstance(id, str)]
                summary = get_field(event, "summary", str)
                yield from self.condense(whence, kind, forgotten, summary)
            case "CondensationRequest":
                self.request_condensation(event)
                yield self.keep_raw(whence, kind)
            case _ if kind in _RAW_EVENT_TYPES:
                yield self.keep_raw(whence, kind)
            case _ if reason := _SKIPPED_EVENT_TYPES.get(kind):
                yield SkippedEntry(kind, reason)
            case _ if pieces := _read_content(kind, event, line):
                response = get_field(event, "llm_response_id", str) or None
                yield from self.append(pieces, whence, kind, response)
                if response and response not in self.reported and pieces.blocks:
                    self.reported.add(response)
                    yield self._report_call(response, whence)
            case _:
                yield self.keep_unknown(whence, kind)
        self.ids.add(id)

    def _read_system(self, event: JsonDict, whence: EntryLocation) -> RequestParameters:
        prompt = require_field(event, "system_prompt", dict)
        texts = [require_field(prompt, "text", str, "system_prompt.")]
        if context := get_field(event, "dynamic_context", dict):
            texts.append(require_field(context, "text", str, "dynamic_context."))
        tools = get_field(event, "tools", list)
        return RequestParameters(f"{whence.key}:asked", "\n\n".join(texts), tools)

    def _report_call(self, response: str, whence: EntryLocation) -> ReportedCall:
        spent = self.usage.get(response, {})
        usage = spent.get("usage")
        known = usage.output or 0 if usage else "unknown"
        model = spent.get("model") or self.model
        fields = {"call_id": response, **spent, "model": model, "source_time": whence.time}
        return ReportedCall(f"call:{response}:{known}", fields, whence.id)


def _read_content(kind: str, event: JsonDict, line: SourceLine) -> EntryBlocks | None:
    """Return the blocks of an event; None if events of its kind have none."""
    pieces = EntryBlocks()
    match kind:
        case "MessageEvent":
            _read_message(event, line, pieces)
        case "ActionEvent":
            _read_action(event, line, pieces)
        case "ObservationEvent":
            _read_observation(event, pieces)
        case "UserRejectObservation":  # by a user or a hook
            reason = get_field(event, "rejection_reason", str)
            parts = [reason] if reason else []
            pieces.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=True)
        case "AgentErrorEvent":  # of a call that could not be made
            error = require_field(event, "error", str)
            pieces.add_tool_result(require_name(event, "tool_call_id"), [error], is_error=True)
        case "CondensationSummaryEvent":  # a summary with nothing before it
            pieces.add_summary(require_field(event, "summary", str))
        case _:
            return None
    return pieces


def _read_message(event: JsonDict, line: SourceLine, pieces: EntryBlocks) -> None:
    """Read a message of the user, of the model, or of the program."""
    said = require_field(event, "llm_message", dict)
    role = require_field(said, "role", str, "llm_message.")
    if role == "assistant":
        _read_thoughts(said, line, pieces)
        kind = BlockKind.ASSISTANT
    elif role == "user" and event.get("source") == "user":
        kind = BlockKind.USER
    else:
        kind = BlockKind.DEVELOPER  # the program's own text, in any role
    pieces.add_parts(kind, read_content(said.get("content"), _read_images))
    more = read_content(event.get("extended_content"), _read_images, "extended_content")
    pieces.add_parts(BlockKind.DEVELOPER, more)


def _read_action(event: JsonDict, line: SourceLine, pieces: EntryBlocks) -> None:
    _read_thoughts(event, line, pieces)
    said = read_content(event.get("thought"), _read_images, "thought")
    pieces.add_parts(BlockKind.ASSISTANT, said)
    owner = require_field(event, "tool_call", dict)
    if isinstance(owner.get("function"), dict):
        owner = owner["function"]
    call = ToolCall(
        tool_call_id=require_name(event, "tool_call_id"),
        name=require_field(event, "tool_name", str),
        arguments=require_field(owner, "arguments", str, "tool_call."),
    )
    pieces.add(call)


def _read_observation(event: JsonDict, pieces: EntryBlocks) -> None:
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
    pieces.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=is_error)


def _read_thoughts(owner: JsonDict, line: SourceLine, pieces: EntryBlocks) -> None:
    signed = get_field(owner, "thinking_blocks", list) or []
    plain = get_field(owner, "reasoning_content", str) or ""
    if not any(isinstance(item, dict) and item.get("thinking") == plain for item in signed):
        pieces.add_text(BlockKind.THINKING, plain)
    for item in signed:
        pieces.add(make_thinking_block(require_object(item, "thinking_blocks: "), line))
    if item := get_field(owner, "responses_reasoning_item", dict):
        pieces.add(_read_reasoning(item, line))


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
