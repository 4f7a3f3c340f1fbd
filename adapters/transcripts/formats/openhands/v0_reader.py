"""Reads sessions of older OpenHands versions: lists of actions and observations."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import BlockKind
from ..entry_steps import EntrySteps, digest_text, read_entry, refuse_line
from ..fields import JsonDict, find_text, get_field, json_name, require_field, require_object
from ..json_lines import SourceLine
from ..openhands import v0_content
from ..source import TranscriptSource
from ..steps import ImportStep, ReportedCall, RequestParameters, SessionStart
from .conversation import EventReader, RunningMetrics
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
        *("browse", "chat", "delegate", "download", "edit", "error", "mcp", "message", "read"),
        *("run", "run_ipython", "success", "task_tracking", "think", "user_rejected", "write"),
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

    def read(self, entry: EntrySteps) -> None:
        entry.key = f"{entry.number}:{digest_text(entry.raw)}"
        event = require_object(entry.value)
        id, entry.time = event.get("id"), get_field(event, "timestamp", str)
        entry.id = str(id) if type(id) is int else entry.key
        if "action" in event:
            self._read_action(entry, event, require_field(event, "action", str))
        else:
            self._read_observation(entry, event, require_field(event, "observation", str))

    def _read_action(self, entry: EntrySteps, event: JsonDict, action: str) -> None:
        by_user, is_tool = event.get("source") == "user", action in _TOOL_ACTIONS
        match action:
            case "system":
                args = require_field(event, "args", dict)
                tools = get_field(args, "tools", list, "args.")
                prompt = require_field(args, "content", str, "args.")
                entry.add(RequestParameters(f"{entry.key}:asked", prompt, tools))
            case "condensation":
                args = require_field(event, "args", dict)
                summary = get_field(args, "summary", str, "args.")
                self.condense(entry, f"action/{action}", self._find_forgotten(args), summary)
            case "message":
                v0_content.read_v0_message(entry, event)
                is_answer = event.get("source") == "agent"
                self.append(entry, f"event-{entry.id}" if is_answer else None)
                if is_answer and entry.blocks:
                    self._report_call(entry, event, None, None)
            case _ if event.get(METADATA_FIELD) or (is_tool and not by_user):
                self._read_call(entry, event)
            case _ if is_tool:
                v0_content.read_command(entry, event)
                self.append(entry)
            case _:
                if action == "condensation_request":
                    self.request_condensation(event)
                if action in _STATE_ACTIONS:
                    entry.skip()
                else:
                    entry.add_unknown(f"action/{action}")

    def _read_call(self, entry: EntrySteps, event: JsonDict) -> None:
        asked = v0_content.find_action_call(event, entry.id or entry.key)
        is_first = asked.response_id not in self.responses
        v0_content.read_v0_action(entry, asked, first=is_first)
        self.append(entry, asked.response_id or f"event-{entry.id}")
        self.open_calls.add(asked.call_id)
        self.calls[entry.id] = asked.call_id
        if is_first:
            if asked.response_id:
                self.responses.add(asked.response_id)
            self._report_call(entry, event, asked.response, asked.response_id)

    def _read_observation(self, entry: EntrySteps, event: JsonDict, observation: str) -> None:
        if (call := self._find_answered_call(event)) is not None:
            v0_content.read_answer(entry, event, call)
            self.append(entry)
            self.open_calls.discard(call)
            return
        if observation == "recall":
            v0_content.read_recall(entry, event)
        elif observation in _SHOWN_OBSERVATIONS:
            text = require_field(event, "content", str)
            entry.add_text(BlockKind.DEVELOPER, text, name=observation)
        elif observation not in _RAW_OBSERVATIONS:
            entry.add_unknown(f"observation/{observation}")
            return
        entry.answers = 1
        self.append(entry)

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
        self, entry: EntrySteps, event: JsonDict, response: JsonDict | None, id: str | None
    ) -> None:
        call = id or f"event-{entry.id}"
        if spent := self.metrics.read_call(event.get("llm_metrics"), response):
            fields = {"call_id": call, **spent, "source_time": entry.time}
            entry.add(ReportedCall(f"call:{call}", fields, entry.id))


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
    document = source.document or SourceLine(1, 0, problem="no JSON")
    if isinstance(document.value, list):
        yield SessionStart(_make_key("openhands", document.value), source.stem)
        yield from _read_events(document.value, document)
    else:
        yield from _read_line(document)


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
            yield from refuse_line(line, line.problem or f"expected a session, got {got}")


def _read_events(events: list[Any], document: SourceLine) -> Iterator[ImportStep]:
    reader = _V0EventReader()
    for number, event in enumerate(events, 1):
        yield from read_entry(EntrySteps(FORMAT_NAME, document, number, event), reader.read)


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
