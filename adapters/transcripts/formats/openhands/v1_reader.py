"""Reads the folder of an OpenHands SDK conversation: its state, then event by event."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .....domain.compaction_events import Trigger
from ..entry_steps import EntryBlocks, EntryLocation, make_line_problem
from ..fields import JsonDict, MalformedError, get_field, json_name, require_field, require_name
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
    UnknownEntry,
)
from . import v1_content
from .call_usage import CallUsage, CondensedView, read_response_usage

_EVENT_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,})\.json")
"""The file name of an event: its number, and its id."""
STATE_FILE_NAMES = ("base_state.json", "meta.json")
_EVENT_FOLDERS = ("", "event_service/")
"""Where the events may be: in the conversation's folder, or a server's folder below it."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder: its value, or the reason why it is not read."""

    name: str
    number: int
    line: SourceLine


class EventFolder:
    def __init__(self, source: TranscriptSource, within: str) -> None:
        self.source = source
        self.within = within
        self.read = 0

    def read_states(self) -> Iterator[FolderFile]:
        for name in STATE_FILE_NAMES:
            if (self.source.path / self.within / name).exists():
                yield self.read_file(f"{self.within}{name}", 0)

    def read_events(self) -> Iterator[FolderFile]:
        numbered = sorted((int(found[1]), found[0]) for found in self._event_names())
        for number, name in numbered:
            yield self.read_file(f"{self.within}events/{name}", number)

    def read_other_files(self) -> Iterator[FolderFile]:
        """Yield JSON files among the events that have no event's name."""
        for name in sorted(_file_names(self.source.path / self.within / "events")):
            if name.endswith(".json") and _EVENT_NAME.fullmatch(name) is None:
                yield self.read_file(f"{self.within}events/{name}", 0)

    def read_file(self, name: str, number: int) -> FolderFile:
        """Read a file of the folder; a link to a file elsewhere is not followed."""
        file = self.source.path / name
        try:
            if not file.resolve().is_relative_to(self.source.path.resolve()):
                line = SourceLine(number, self.read, problem=f"{name}: a link out of the folder")
            elif not file.is_file():
                line = SourceLine(number, self.read, problem=f"{name}: no file")
            else:
                line = self.source.read_member(name)
                self.read += line.end
        except (OSError, RuntimeError) as error:
            line = SourceLine(number, self.read, problem=f"{name}: cannot be read: {error}")
        return FolderFile(name, number, line)

    def _event_names(self) -> Iterator[re.Match[str]]:
        for name in _file_names(self.source.path / self.within / "events"):
            if found := _EVENT_NAME.fullmatch(name):
                yield found


def find_event_folder(source: TranscriptSource) -> EventFolder | None:
    if not source.is_folder:
        return None
    for within in _EVENT_FOLDERS:
        folder = EventFolder(source, within)
        if any(
            _EVENT_NAME.fullmatch(name) for name in _file_names(source.path / within / "events")
        ):
            return folder
    return None


def _file_names(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        for file in folder.iterdir():
            yield file.name.encode(errors="replace").decode()


FORMAT_NAME = "openhands-v1"

_CONTENT_READERS: dict[str, Callable[[JsonDict, SourceLine], EntryBlocks]] = {
    "MessageEvent": v1_content.read_v1_message,
    "ActionEvent": v1_content.read_v1_action,
    "ObservationEvent": v1_content.read_observation,
    "UserRejectObservation": v1_content.read_rejection,
    "AgentErrorEvent": v1_content.read_error,
    "CondensationSummaryEvent": v1_content.read_summary_event,
}
_RAW_EVENT_TYPES = frozenset(
    {
        *("ACPToolCallEvent", "AskUserEvent", "ConversationErrorEvent"),
        *("ConversationIterationLimitEvent", "ConversationStateUpdateEvent"),
        *("HookExecutionEvent", "InterruptEvent", "PauseEvent"),
        *("SecurityAnalyzerConfigurationEvent", "UserActionEvent", "WarningEvent"),
    }
)
"""Kinds of events that no model was sent, and that the agent needs to resume."""
_SKIPPED_EVENT_TYPES = {
    "LLMCompletionLogEvent": "a log of a request: its events say the same",
    "StreamingDeltaEvent": "pieces of a message that comes again whole",
    "TokenEvent": "token ids, for training",
}


def recognizes(source: TranscriptSource) -> bool:
    return find_event_folder(source) is not None


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the conversation's state, then its events, ordered by number."""
    folder = find_event_folder(source)
    if folder is None:
        return
    states = list(folder.read_states())
    values = {member.name.rpartition("/")[2]: member.line.value for member in states}
    state = values.get("base_state.json") or values.get("meta.json")
    yield from _ConversationReader(folder, state if isinstance(state, dict) else {}).read(states)


class _ConversationReader:
    def __init__(self, folder: EventFolder, state: JsonDict) -> None:
        self.folder = folder
        self.state = state
        self.spent = read_response_usage(state)
        self.view = CondensedView()
        self.seen: set[str] = set()
        self.called: set[str] = set()
        self.number = -1

    def read(self, states: list[FolderFile]) -> Iterator[ImportStep]:
        id, title = self.state.get("id"), self.state.get("title")
        key = id if isinstance(id, str) and id else self.folder.source.stem
        yield SessionStart(key, title if isinstance(title, str) else None)
        if model := self._find_model():
            yield RequestParameters(f"settings:{model}", settings={"model": model})
        for member in states:
            yield from self._read_state(member)
        for member in self.folder.read_events():
            yield from self._read_member(member)
        for member in self.folder.read_other_files():
            name = member.name.rpartition("/")[2]
            reason = f"events/{name}: no event has that name"
            yield replace(make_line_problem(member.line, reason), line=0, is_part=True)
            yield EntryEnd("error", self.folder.read)

    def _read_state(self, member: FolderFile) -> Iterator[ImportStep]:
        name = member.name.rpartition("/")[2]
        if member.line.problem:
            yield replace(make_line_problem(member.line, f"{name}: {member.line.problem}"), line=0)
            yield EntryEnd("error", self.folder.read)
            return
        yield RawEntry(f"{name}:{member.line.digest}", name, member.line.text)
        yield EntryEnd("imported", self.folder.read)

    def _read_member(self, member: FolderFile) -> Iterator[ImportStep]:
        line, number = member.line, member.number
        if line.problem:
            self.number = max(self.number, number)
            yield replace(make_line_problem(line, line.problem), line=number)
            yield EntryEnd("error", self.folder.read)
            return
        try:
            yield from self._check_number(number)
            steps = list(self._read_event(line, number))
        except (MalformedError, NestedTooDeeplyError) as error:
            yield SourceProblem(number, str(error), f"{number}:{line.digest}", line.text)
            yield EntryEnd("error", self.folder.read)
            return
        yield from steps
        yield EntryEnd(_steps_outcome(steps), self.folder.read)

    def _check_number(self, number: int) -> Iterator[ImportStep]:
        before, self.number = self.number, max(self.number, number)
        if number == before:
            raise MalformedError(f"another event has the number {number}")
        if number > before + 1:
            missing = f"event {before + 1}" + (f" to {number - 1}" if number > before + 2 else "")
            yield SourceProblem(number, f"{missing}: not there")

    def _read_event(self, line: SourceLine, number: int) -> Iterator[ImportStep]:
        event = line.value
        if not isinstance(event, dict):
            raise MalformedError(f"expected an object, got {json_name(event)}")
        kind, id = require_field(event, "kind", str), require_name(event, "id")
        if id in self.seen:
            raise MalformedError(f"id: another event has the id {id}")
        whence = EntryLocation(
            FORMAT_NAME, id, line, number, id, get_field(event, "timestamp", str)
        )
        if kind == "SystemPromptEvent":
            steps = self._read_system(event, whence)
        elif kind == "Condensation":
            steps = self._read_condensation(event, whence)
        elif kind == "CondensationRequest":
            steps = self._read_request(event, whence)
        elif kind in _CONTENT_READERS:
            steps = self._read_content(event, kind, whence)
        elif kind in _RAW_EVENT_TYPES:
            steps = iter([_make_raw_entry(whence, kind)])
        elif reason := _SKIPPED_EVENT_TYPES.get(kind):
            steps = iter([SkippedEntry(kind, reason)])
        else:
            steps = iter([UnknownEntry(id, kind, line.text, number, id)])
        yield from list(steps)
        self.seen.add(id)

    def _read_content(
        self, event: JsonDict, kind: str, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        if self.view.names and (found := v1_content.find_exported_summary(event)):
            self.view.names.clear()
            yield self.view.make_compaction(
                whence, found.text, (), "the source does not say which blocks stayed"
            )
            yield _make_raw_entry(whence, kind)
            return
        pieces = _CONTENT_READERS[kind](event, whence.line)
        if not pieces.blocks:
            yield _make_raw_entry(whence, kind)
            return
        if found := v1_content.find_exported_summary(event):
            pieces.mark_as_summary(found.text)
        response = get_field(event, "llm_response_id", str) or None
        yield from pieces.make_appends(whence, event, response)
        self.view.show(whence.id, whence.key)
        if response and response not in self.called:
            self.called.add(response)
            yield self._make_call(response, whence)

    def _read_system(self, event: JsonDict, whence: EntryLocation) -> Iterator[ImportStep]:
        prompt = require_field(event, "system_prompt", dict)
        texts = [require_field(prompt, "text", str, "system_prompt.")]
        if context := get_field(event, "dynamic_context", dict):
            texts.append(require_field(context, "text", str, "dynamic_context."))
        tools = get_field(event, "tools", list)
        yield RequestParameters(f"{whence.key}:asked", "\n\n".join(texts), tools)
        yield _make_raw_entry(whence, "SystemPromptEvent")

    def _read_request(self, event: JsonDict, whence: EntryLocation) -> Iterator[ImportStep]:
        by_person = event.get("reason") == "manual" or event.get("source") == "user"
        self.view.requested_trigger = Trigger.MANUAL if by_person else Trigger.OVERFLOW
        yield _make_raw_entry(whence, "CondensationRequest")

    def _read_condensation(self, event: JsonDict, whence: EntryLocation) -> Iterator[ImportStep]:
        ids = get_field(event, "forgotten_event_ids", list) or []
        summary = get_field(event, "summary", str)
        compaction = self.view.condense(whence, [id for id in ids if isinstance(id, str)], summary)
        if compaction is not None:
            yield compaction
        elif summary:
            yield from v1_content.read_summary_event(event, whence.line).make_appends(whence, event)
            return
        yield _make_raw_entry(whence, "Condensation")

    def _make_call(self, response: str, whence: EntryLocation) -> ReportedCall:
        spent = self.spent.get(response, CallUsage())
        known = spent.usage.output or 0 if spent.usage else "unknown"
        return ReportedCall(
            key=f"call:{response}:{known}",
            fields={
                "call_id": response,
                "model": spent.model or self._find_model(),
                "usage": spent.usage,
                "cost_usd": spent.cost_usd,
                "latency_s": spent.latency_s,
                "source_time": whence.time,
            },
            first_answer_id=whence.key,
        )

    def _find_model(self) -> str | None:
        match self.state:
            case {"agent": {"llm": {"model": str(model)}}}:
                return model
            case _:
                return None


def _make_raw_entry(whence: EntryLocation, kind: str) -> RawEntry:
    return RawEntry(whence.key, kind, whence.line.text, whence.id, whence.number)


def _steps_outcome(steps: list[ImportStep]) -> str:
    match steps[-1] if steps else None:
        case SkippedEntry():
            return "skipped"
        case UnknownEntry():
            return "unknown"
        case _:
            return "imported"
