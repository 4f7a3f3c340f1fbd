"""What each event of OpenHands before its SDK becomes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from ..content.holes import Same
from ..json_lines import Line
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Pieces, Whence
from ..steps import Aside, Asked, Call, Compacted, Step, Unknown
from . import v0_content
from .condensing import FORGOTTEN, View
from .metrics import Metrics
from .v0_content import RESPONSE, Asking

NAME = "openhands-v0"

_STATES = frozenset(
    {
        *("change_agent_state", "condensation_request", "loop_recovery", "null", "pause", "push"),
        *("recall", "resume", "send_pr", "start", "stop", "summarize"),
    }
)
"""Actions that no model was sent, and that say what the agent did."""
_TOOLS = frozenset(
    {
        *("browse", "browse_interactive", "call_tool_mcp", "delegate", "edit", "finish", "read"),
        *("reject", "run", "run_ipython", "search", "task_tracking", "think", "write"),
    }
)
_SEEN = frozenset(
    {
        *("browse", "delegate", "download", "edit", "error", "mcp", "read", "run", "run_ipython"),
        *("success", "task_tracking", "think", "user_rejected", "write", "chat", "message"),
    }
)
"""Observations that the model is told of, called for or not."""
_NOTED = frozenset(
    {"agent_state_changed", "condense", "loop_detection", "null", "server_ready"},
)


@dataclass(slots=True)
class Read:
    """What an event became."""

    steps: list[Step]
    outcome: str = "imported"
    answers: int = 0


@dataclass(slots=True)
class Events:
    """What is known of a session at some event of it."""

    line: Line
    view: View = field(default_factory=View)
    open: set[str] = field(default_factory=set)
    calls: dict[Any, str] = field(default_factory=dict)
    """Each action's call, by the event's id."""
    responses: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Answers of the model that were told: where, and what they said."""
    metrics: Metrics = field(default_factory=Metrics)

    def read(self, event: Any, number: int, key: str, raw: str) -> Read:
        """What one event says."""
        if not isinstance(event, dict):
            raise MalformedError(f"expected an object, got {json_name(event)}")
        id = event.get("id")
        name = str(id) if type(id) is int else key
        time = take_optional(event, "timestamp", str)
        whence = Whence(NAME, key, self.line, number, name, time)
        if "action" in event:
            kind = take(event, "action", str)
            return Read(*self._ended(self._action(event, kind, whence, raw)))
        kind = take(event, "observation", str)
        return self._observation(event, kind, whence, raw)

    def _ended(self, steps: Iterator[Step]) -> tuple[list[Step], str]:
        done = list(steps)
        unknown = any(isinstance(step, Unknown) for step in done)
        return done, "unknown" if unknown else "imported"

    def _action(self, event: dict[str, Any], kind: str, whence: Whence, raw: str) -> Iterator[Step]:
        if kind == "system":
            args = take(event, "args", dict)
            tools = take_optional(args, "tools", list, "args.")
            prompt = take(args, "content", str, "args.")
            yield Asked(f"{whence.key}:asked", prompt, tools)
            yield _aside(whence, "action/system", raw)
        elif kind == "condensation":
            yield from self._condensation(event, whence, raw)
        elif kind == "message":
            yield from self._message(event, whence, raw)
        elif kind in _STATES and not event.get(v0_content.METADATA):
            if kind == "condensation_request":
                person = event.get("source") == "user"
                self.view.requested = Trigger.MANUAL if person else Trigger.OVERFLOW
            yield _aside(whence, f"action/{kind}", raw)
        elif event.get(v0_content.METADATA) or (kind in _TOOLS and event.get("source") != "user"):
            yield from self._call(event, whence)
        elif kind in _TOOLS:
            yield from self._blocks(v0_content.command(event), event, whence, raw)
        else:
            yield Unknown(whence.key, f"action/{kind}", raw, whence.number, whence.id)

    def _call(self, event: dict[str, Any], whence: Whence) -> Iterator[Step]:
        asked = v0_content.asking(event, whence.id or whence.key)
        told = self.responses.get(asked.response_id or "")
        pieces = v0_content.action(event, asked, self.line, first=told is None)
        said = self._same(asked, told, whence, pieces)
        yield from pieces.appends(whence, event, asked.response_id or f"event-{whence.id}")
        self._show(event, whence)
        self.open.add(asked.call)
        self.calls[whence.id] = asked.call
        if told is None:
            if asked.response_id:
                self.responses[asked.response_id] = whence.number, said
            yield from self._spent(event, asked.response, asked.response_id, whence)

    def _same(
        self, asked: Asking, told: tuple[int, str] | None, whence: Whence, pieces: Pieces
    ) -> str:
        """Refer to the answer where it was told before: each of its calls, and each of their
        results, tells it again."""
        del whence
        said = self.line.json(asked.response) if asked.response and asked.response_id else ""
        if told and told[1] == said:
            pieces.same.append(Same(RESPONSE, told[0], RESPONSE))
        return said

    def _message(self, event: dict[str, Any], whence: Whence, raw: str) -> Iterator[Step]:
        pieces = v0_content.message(event)
        by_model = event.get("source") == "agent"
        message_id = f"event-{whence.id}" if by_model else None
        yield from self._blocks(pieces, event, whence, raw, message_id)
        if by_model and pieces.blocks:
            yield from self._spent(event, None, None, whence)

    def _observation(self, event: dict[str, Any], kind: str, whence: Whence, raw: str) -> Read:
        call = self._answered(event)
        if call is not None:
            pieces = v0_content.answer(event, call)
            asked = v0_content.asking({"action": kind, **event}, call)
            told = self.responses.get(asked.response_id or "")
            self._same(asked, told, whence, pieces)
            steps: list[Step] = list(pieces.appends(whence, event))
            self.open.discard(call)
            self._show(event, whence)
            return Read(steps)
        if kind in _NOTED:
            return Read([_aside(whence, f"observation/{kind}", raw)], answers=1)
        if kind == "recall":
            return Read([*self._blocks(v0_content.recall(event), event, whence, raw)], answers=1)
        if kind in _SEEN:
            return Read([*self._blocks(v0_content.told(event), event, whence, raw)], answers=1)
        unknown = Unknown(whence.key, f"observation/{kind}", raw, whence.number, whence.id)
        return Read([unknown], "unknown")

    def _answered(self, event: dict[str, Any]) -> str | None:
        metadata = event.get(v0_content.METADATA)
        named = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
        if isinstance(named, str) and named in self.open:
            return named
        caused = self.calls.get(str(event.get("cause")))
        return caused if caused in self.open else None

    def _blocks(
        self,
        pieces: Pieces,
        event: dict[str, Any],
        whence: Whence,
        raw: str,
        message_id: str | None = None,
    ) -> Iterator[Step]:
        if pieces.blocks:
            yield from pieces.appends(whence, event, message_id)
            self._show(event, whence)
        else:
            said = "action" if "action" in event else "observation"
            yield _aside(whence, f"{said}/{event[said]}", raw)

    def _show(self, event: dict[str, Any], whence: Whence) -> None:
        id, name = event.get("id"), whence.id or whence.key
        self.view.show(id if type(id) is int else name, name)

    def _condensation(self, event: dict[str, Any], whence: Whence, raw: str) -> Iterator[Step]:
        args = take(event, "args", dict)
        summary = take_optional(args, "summary", str, "args.")
        said = bool(self.view.shown)
        forgot = self.view.forget(self._forgotten(args))
        if said and (forgot or summary):
            kept = self.view.kept()
            partial = None if kept is not None else "which blocks stayed is not listed"
            yield self._compacted(whence, summary or FORGOTTEN, kept or (), partial)
        elif summary:
            pieces = Pieces()
            pieces.summary(summary, ("args", "summary"))
            yield from pieces.appends(whence, event)
            return
        yield _aside(whence, "action/condensation", raw)

    def _forgotten(self, args: dict[str, Any]) -> list[Any]:
        ids = take_optional(args, "forgotten_event_ids", list, "args.")
        if ids is not None:
            return [id for id in ids if type(id) is int]
        first = take_optional(args, "forgotten_events_start_id", int, "args.")
        last = take_optional(args, "forgotten_events_end_id", int, "args.")
        if first is None or last is None:
            return []
        return [id for id in self.view.shown if isinstance(id, int) and first <= id <= last]

    def _compacted(
        self, whence: Whence, summary: str, kept: tuple[str, ...], partial: str | None
    ) -> Compacted:
        return Compacted(
            key=f"{whence.key}:compacted",
            trigger=self.view.trigger(),
            summary=summary,
            kept=kept,
            source_time=whence.time,
            partial=partial,
        )

    def _spent(
        self,
        event: dict[str, Any],
        response: dict[str, Any] | None,
        id: str | None,
        whence: Whence,
    ) -> Iterator[Step]:
        spent = self.metrics.spent(event.get("llm_metrics"), response)
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
        yield Call(f"call:{call}", fields, whence.id)


def _aside(whence: Whence, kind: str, raw: str) -> Aside:
    return Aside(whence.key, kind, raw, whence.id, whence.number)
