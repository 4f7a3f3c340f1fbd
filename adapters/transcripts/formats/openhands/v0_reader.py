"""Reads sessions of older OpenHands versions: lists of actions and observations."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from ..entry_steps import EntryBlocks, EntryLocation, digest_text, make_line_problem
from ..fields import JsonDict, MalformedError, get_field, json_name, require_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..placeholders import EarlierValue
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceProblem,
    UnknownEntry,
)
from . import v0_content
from .call_usage import CondensedView, RunningMetrics
from .v0_content import RESPONSE_PATH, ActionCall

FORMAT_NAME = "openhands-v0"

_STATE_ACTIONS = frozenset(
    {
        *("change_agent_state", "condensation_request", "loop_recovery", "null", "pause", "push"),
        *("recall", "resume", "send_pr", "start", "stop", "summarize"),
    }
)
"""Actions that no model was sent, and that record the agent's state."""
_TOOL_ACTIONS = frozenset(
    {
        *("browse", "browse_interactive", "call_tool_mcp", "delegate", "edit", "finish", "read"),
        *("reject", "run", "run_ipython", "search", "task_tracking", "think", "write"),
    }
)
_SHOWN_OBSERVATIONS = frozenset(
    {
        *("browse", "delegate", "download", "edit", "error", "mcp", "read", "run", "run_ipython"),
        *("success", "task_tracking", "think", "user_rejected", "write", "chat", "message"),
    }
)
"""Observations that the model sees, whether they answer a call or not."""
_RAW_OBSERVATIONS = frozenset(
    {"agent_state_changed", "condense", "loop_detection", "null", "server_ready"}
)


@dataclass(slots=True)
class EventSteps:
    steps: list[ImportStep]
    outcome: str = "imported"
    answers: int = 0


@dataclass(slots=True)
class V0EventReader:
    line: SourceLine
    view: CondensedView = field(default_factory=CondensedView)
    open_calls: set[str] = field(default_factory=set)
    calls: dict[Any, str] = field(default_factory=dict)
    responses: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The model's answers so far: their entries and texts."""
    metrics: RunningMetrics = field(default_factory=RunningMetrics)

    def read(self, event: Any, number: int, key: str, raw: str) -> EventSteps:
        if not isinstance(event, dict):
            raise MalformedError(f"expected an object, got {json_name(event)}")
        id = event.get("id")
        name = str(id) if type(id) is int else key
        time = get_field(event, "timestamp", str)
        whence = EntryLocation(FORMAT_NAME, key, self.line, number, name, time)
        if "action" in event:
            kind = require_field(event, "action", str)
            steps = list(self._read_action(event, kind, whence, raw))
            unknown = any(isinstance(step, UnknownEntry) for step in steps)
            return EventSteps(steps, "unknown" if unknown else "imported")
        kind = require_field(event, "observation", str)
        return self._read_observation(event, kind, whence, raw)

    def _read_action(
        self, event: JsonDict, kind: str, whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        if kind == "system":
            args = require_field(event, "args", dict)
            tools = get_field(args, "tools", list, "args.")
            prompt = require_field(args, "content", str, "args.")
            yield RequestParameters(f"{whence.key}:asked", prompt, tools)
            yield _make_raw_entry(whence, "action/system", raw)
        elif kind == "condensation":
            yield from self._read_condensation(event, whence, raw)
        elif kind == "message":
            yield from self._read_message(event, whence, raw)
        elif kind in _STATE_ACTIONS and not event.get(v0_content.METADATA_FIELD):
            if kind == "condensation_request":
                person = event.get("source") == "user"
                self.view.requested_trigger = Trigger.MANUAL if person else Trigger.OVERFLOW
            yield _make_raw_entry(whence, f"action/{kind}", raw)
        elif event.get(v0_content.METADATA_FIELD) or (
            kind in _TOOL_ACTIONS and event.get("source") != "user"
        ):
            yield from self._read_call(event, whence)
        elif kind in _TOOL_ACTIONS:
            yield from self._make_steps(v0_content.read_command(event), event, whence, raw)
        else:
            yield UnknownEntry(whence.key, f"action/{kind}", raw, whence.number, whence.id)

    def _read_call(self, event: JsonDict, whence: EntryLocation) -> Iterator[ImportStep]:
        asked = v0_content.find_action_call(event, whence.id or whence.key)
        told = self.responses.get(asked.response_id or "")
        pieces = v0_content.read_v0_action(event, asked, self.line, first=told is None)
        said = self._refer_to_earlier(asked, told, pieces)
        yield from pieces.make_appends(whence, event, asked.response_id or f"event-{whence.id}")
        self._show_event(event, whence)
        self.open_calls.add(asked.call_id)
        self.calls[whence.id] = asked.call_id
        if told is None:
            if asked.response_id:
                self.responses[asked.response_id] = whence.number, said
            yield from self._report_call(event, asked.response, asked.response_id, whence)

    def _refer_to_earlier(
        self, asked: ActionCall, told: tuple[int, str] | None, pieces: EntryBlocks
    ) -> str:
        """Replace a repeated answer by a reference: each of its calls and results repeats it."""
        said = self.line.to_json(asked.response) if asked.response and asked.response_id else ""
        if told and told[1] == said:
            pieces.earlier_values.append(EarlierValue(RESPONSE_PATH, told[0], RESPONSE_PATH))
        return said

    def _read_message(
        self, event: JsonDict, whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        pieces = v0_content.read_v0_message(event)
        by_model = event.get("source") == "agent"
        message_id = f"event-{whence.id}" if by_model else None
        yield from self._make_steps(pieces, event, whence, raw, message_id)
        if by_model and pieces.blocks:
            yield from self._report_call(event, None, None, whence)

    def _read_observation(
        self, event: JsonDict, kind: str, whence: EntryLocation, raw: str
    ) -> EventSteps:
        call = self._find_answered_call(event)
        if call is not None:
            pieces = v0_content.read_answer(event, call)
            asked = v0_content.find_action_call({"action": kind, **event}, call)
            told = self.responses.get(asked.response_id or "")
            self._refer_to_earlier(asked, told, pieces)
            steps: list[ImportStep] = list(pieces.make_appends(whence, event))
            self.open_calls.discard(call)
            self._show_event(event, whence)
            return EventSteps(steps)
        if kind in _RAW_OBSERVATIONS:
            return EventSteps([_make_raw_entry(whence, f"observation/{kind}", raw)], answers=1)
        if kind == "recall" or kind in _SHOWN_OBSERVATIONS:
            read = v0_content.read_recall if kind == "recall" else v0_content.read_notice
            return EventSteps([*self._make_steps(read(event), event, whence, raw)], answers=1)
        unknown = UnknownEntry(whence.key, f"observation/{kind}", raw, whence.number, whence.id)
        return EventSteps([unknown], "unknown")

    def _find_answered_call(self, event: JsonDict) -> str | None:
        metadata = event.get(v0_content.METADATA_FIELD)
        named = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
        if isinstance(named, str) and named in self.open_calls:
            return named
        caused = self.calls.get(str(event.get("cause")))
        return caused if caused in self.open_calls else None

    def _make_steps(
        self,
        pieces: EntryBlocks,
        event: JsonDict,
        whence: EntryLocation,
        raw: str,
        message_id: str | None = None,
    ) -> Iterator[ImportStep]:
        if pieces.blocks:
            yield from pieces.make_appends(whence, event, message_id)
            self._show_event(event, whence)
        else:
            said = "action" if "action" in event else "observation"
            yield _make_raw_entry(whence, f"{said}/{event[said]}", raw)

    def _show_event(self, event: JsonDict, whence: EntryLocation) -> None:
        id, name = event.get("id"), whence.id or whence.key
        self.view.show(id if type(id) is int else name, name)

    def _read_condensation(
        self, event: JsonDict, whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        args = require_field(event, "args", dict)
        summary = get_field(args, "summary", str, "args.")
        compaction = self.view.condense(whence, self._forgotten_ids(args), summary)
        if compaction is not None:
            yield compaction
        elif summary:
            pieces = EntryBlocks()
            pieces.add_summary(summary, ("args", "summary"))
            yield from pieces.make_appends(whence, event)
            return
        yield _make_raw_entry(whence, "action/condensation", raw)

    def _forgotten_ids(self, args: JsonDict) -> list[Any]:
        ids = get_field(args, "forgotten_event_ids", list, "args.")
        if ids is not None:
            return [id for id in ids if type(id) is int]
        first = get_field(args, "forgotten_events_start_id", int, "args.")
        last = get_field(args, "forgotten_events_end_id", int, "args.")
        if first is None or last is None:
            return []
        return [id for id in self.view.names if isinstance(id, int) and first <= id <= last]

    def _report_call(
        self, event: JsonDict, response: JsonDict | None, id: str | None, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        spent = self.metrics.take_call(event.get("llm_metrics"), response)
        if spent is None:
            return
        call = id or f"event-{whence.id}"
        fields = {
            "call_id": call,
            "model": spent.model,
            "usage": spent.usage,
            "cost_usd": spent.cost_usd,
            "source_time": whence.time,
        }
        yield ReportedCall(f"call:{call}", fields, whence.id)


def _make_raw_entry(whence: EntryLocation, kind: str, raw: str) -> RawEntry:
    return RawEntry(whence.key, kind, raw, whence.id, whence.number)


__all__ = ["FORMAT_NAME", "LINE_ENTRY", "read", "recognizes"]

LINE_ENTRY = "line"
"""The type of the entry around the events, if a line is a session."""


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a file with a session per line, or one session's list of events."""
    if source.is_folder:
        return False
    if isinstance(source.first_line, dict):
        return any(_is_session(value) for value in source.first_values)
    document = source.document
    events = document.value if document else None
    if isinstance(events, dict):
        return _is_session(events)
    return isinstance(events, list) and any(map(_is_event, events[:8]))


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    if isinstance(source.first_line, dict):
        for line in source.read_lines():
            yield from _read_line(line)
        return
    document = source.document
    if document is None or document.problem:
        yield SourceProblem(1, document.problem or "no JSON" if document else "no JSON")
        yield EntryEnd("error", document.end if document else 0)
    elif isinstance(document.value, dict):
        yield from _read_line(document)
    else:
        events = list(document.value)
        yield SessionStart(make_v0_key("openhands", events), source.stem)
        yield from _read_events(events, document)


def make_v0_key(name: str, events: list[Any]) -> str:
    match events:
        case [{"id": id, "timestamp": time, **more}, *_]:
            told = f"{id}\n{time}\n{more.get('message')}"
        case _:
            told = ""
    return f"{name}-{digest_text(told)}"


def _read_line(line: SourceLine) -> Iterator[ImportStep]:
    if line.problem:
        yield make_line_problem(line, line.problem)
        yield EntryEnd("error", line.end)
        return
    match line.value:
        case {"history": list(events), **rest}:
            pass
        case other:
            got = "no history" if isinstance(other, dict) else json_name(other)
            yield make_line_problem(line, f"expected a session, got {got}")
            yield EntryEnd("error", line.end)
            return
    name = rest.get("instance_id")
    known = name if isinstance(name, str) and name else "openhands"
    yield SessionStart(make_v0_key(known, events), known)
    try:
        raw = line.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(line.number, str(error))
        yield EntryEnd("error", line.end)
    else:
        yield RawEntry(f"line:{digest_text(raw)}", LINE_ENTRY, raw)
        yield EntryEnd("imported", line.end)
    yield from _read_events(events, line)


def _read_events(events: list[Any], line: SourceLine) -> Iterator[ImportStep]:
    reader = V0EventReader(line)
    for number, event in enumerate(events, 1):
        raw: str | None = None
        try:
            raw = line.to_json(event)
            read = reader.read(event, number, f"{number}:{digest_text(raw)}", raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            key = f"{number}:{digest_text(raw)}" if raw else None
            yield SourceProblem(number, str(error), key, raw)
            read = EventSteps([], "error")
        yield from read.steps
        yield EntryEnd(read.outcome, line.end, read.answers)


def _is_session(value: Any) -> bool:
    match value:
        case {"history": list(events), "instance_id": _}:
            return not events or any(map(_is_event, events[:8]))
        case _:
            return False


def _is_event(value: Any) -> bool:
    match value:
        case {"id": int(), "timestamp": str(), "source": _, "action": str(), "args": dict()}:
            return True
        case {"id": int(), "timestamp": str(), "source": _, "observation": str(), "content": _}:
            return True
        case _:
            return False
