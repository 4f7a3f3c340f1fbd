"""Reads sessions of older OpenHands versions: lists of actions and observations."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import BlockKind
from ..entry_steps import EntryLocation, digest_text, make_line_problem
from ..fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    json_name,
    require_field,
    require_object,
)
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..source import TranscriptSource
from ..steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceProblem,
)
from . import v0_content
from .call_usage import RunningMetrics
from .event_reader import EventReader, find_outcome
from .v0_content import METADATA_FIELD

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


class _V0EventReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self.open_calls: set[str] = set()
        self.calls: dict[str | None, str] = {}
        """The calls, by the ids of their events."""
        self.responses: set[str] = set()
        """The ids of the model's answers so far."""
        self.metrics = RunningMetrics()

    def read(self, event: JsonDict, line: SourceLine, key: str) -> Iterator[ImportStep]:
        id, time = event.get("id"), get_field(event, "timestamp", str)
        name = str(id) if type(id) is int else key
        whence = EntryLocation(FORMAT_NAME, key, line, line.number, name, time)
        if "action" in event:
            yield from self._read_action(event, require_field(event, "action", str), whence)
        else:
            kind = require_field(event, "observation", str)
            yield from self._read_observation(event, kind, whence)

    def _read_action(
        self, event: JsonDict, action: str, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        kind, by_user = f"action/{action}", event.get("source") == "user"
        is_tool = action in _TOOL_ACTIONS
        match action:
            case "system":
                args = require_field(event, "args", dict)
                tools = get_field(args, "tools", list, "args.")
                prompt = require_field(args, "content", str, "args.")
                yield RequestParameters(f"{whence.key}:asked", prompt, tools)
                yield self.keep_raw(whence, kind)
            case "condensation":
                args = require_field(event, "args", dict)
                summary = get_field(args, "summary", str, "args.")
                yield from self.condense(whence, kind, self._find_forgotten(args), summary)
            case "message":
                pieces = v0_content.read_v0_message(event)
                is_answer = event.get("source") == "agent"
                message_id = f"event-{whence.id}" if is_answer else None
                yield from self.append(pieces, whence, kind, message_id)
                if is_answer and pieces.blocks:
                    yield from self._report_call(event, None, None, whence)
            case _ if event.get(METADATA_FIELD) or (is_tool and not by_user):
                yield from self._read_call(event, kind, whence)
            case _ if is_tool:
                yield from self.append(v0_content.read_command(event), whence, kind)
            case _ if action in _STATE_ACTIONS:
                if action == "condensation_request":
                    self.request_condensation(event)
                yield self.keep_raw(whence, kind)
            case _:
                yield self.keep_unknown(whence, kind)

    def _read_call(self, event: JsonDict, kind: str, whence: EntryLocation) -> Iterator[ImportStep]:
        asked = v0_content.find_action_call(event, whence.id or whence.key)
        is_first = asked.response_id not in self.responses
        pieces = v0_content.read_v0_action(event, asked, whence.line, first=is_first)
        yield from self.append(pieces, whence, kind, asked.response_id or f"event-{whence.id}")
        self.open_calls.add(asked.call_id)
        self.calls[whence.id] = asked.call_id
        if is_first:
            if asked.response_id:
                self.responses.add(asked.response_id)
            yield from self._report_call(event, asked.response, asked.response_id, whence)

    def _read_observation(
        self, event: JsonDict, observation: str, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        kind = f"observation/{observation}"
        call = self._find_answered_call(event)
        if call is not None:
            yield from self.append(v0_content.read_answer(event, call), whence, kind)
            self.open_calls.discard(call)
        elif observation in _RAW_OBSERVATIONS:
            yield self.keep_raw(whence, kind)
        elif observation == "recall":
            yield from self.append(v0_content.read_recall(event), whence, kind)
        elif observation in _SHOWN_OBSERVATIONS:
            yield from self.append(v0_content.read_notice(event), whence, kind)
        else:
            yield self.keep_unknown(whence, kind)

    def _find_answered_call(self, event: JsonDict) -> str | None:
        named = find_text(event, METADATA_FIELD, "tool_call_id")
        caused = self.calls.get(str(event.get("cause")))
        return next((call for call in (named, caused) if call in self.open_calls), None)

    def _find_forgotten(self, args: JsonDict) -> list[str]:
        """Return the ids of the events in a condensation's list, or in its range."""
        ids = get_field(args, "forgotten_event_ids", list, "args.")
        if ids is not None:
            return [str(id) for id in ids if type(id) is int]
        first = get_field(args, "forgotten_events_start_id", int, "args.")
        last = get_field(args, "forgotten_events_end_id", int, "args.")
        if first is None or last is None:
            return []
        return [id for id in self.shown if id.isdecimal() and first <= int(id) <= last]

    def _report_call(
        self, event: JsonDict, response: JsonDict | None, id: str | None, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        call = id or f"event-{whence.id}"
        if spent := self.metrics.read_call(event.get("llm_metrics"), response):
            fields = {"call_id": call, **spent, "source_time": whence.time}
            yield ReportedCall(f"call:{call}", fields, whence.id)


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a file with a session per line, or one session's list of events."""
    if source.is_folder:
        return False
    if isinstance(source.first_line, dict):
        return any(_is_session(value) for value in source.first_values)
    events = source.document.value if source.document else None
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
        yield SessionStart(_make_key("openhands", events), source.stem)
        yield from _read_events(events, document)


def _make_key(name: str, events: list[Any]) -> str:
    match events:
        case [{"id": id, "timestamp": time, **more}, *_]:
            told = f"{id}\n{time}\n{more.get('message')}"
        case _:
            told = ""
    return f"{name}-{digest_text(told)}"


def _read_line(line: SourceLine) -> Iterator[ImportStep]:
    match line.value:
        case {"history": list(events)} if not line.problem:
            name = find_text(line.value, "instance_id") or "openhands"
            yield SessionStart(_make_key(name, events), name)
            yield from _read_events(events, line)
        case other:
            got = "no history" if isinstance(other, dict) else json_name(other)
            yield make_line_problem(line, line.problem or f"expected a session, got {got}")
            yield EntryEnd("error", line.end)


def _read_events(events: list[Any], document: SourceLine) -> Iterator[ImportStep]:
    reader = _V0EventReader()
    for number, event in enumerate(events, 1):
        key = raw = None
        answers = 0
        try:
            raw = document.to_json(event)
            key = f"{number}:{digest_text(raw)}"
            odd = document.has_odd_numbers
            line = SourceLine(number, document.end, raw.encode(), event, has_odd_numbers=odd)
            steps = list(reader.read(require_object(event), line, key))
            outcome = find_outcome(steps)
            answers = int("action" not in event and _is_unasked(steps[-1]))
        except (MalformedError, NestedTooDeeplyError) as error:
            steps, outcome = [SourceProblem(number, str(error), key, raw)], "error"
        yield from steps
        yield EntryEnd(outcome, document.end, answers)


def _is_unasked(step: ImportStep) -> bool:
    """Return whether an observation with this last step answers no call."""
    is_answer = isinstance(step, Append) and step.block.kind is BlockKind.TOOL_RESULT
    return isinstance(step, Append | RawEntry) and not is_answer


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
