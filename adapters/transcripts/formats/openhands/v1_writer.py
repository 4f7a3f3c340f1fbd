"""Writes a session as the folder of an OpenHands conversation."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from .....domain.blocks import ToolCall
from ..outgoing import Compacted, Entry, Message, Outgoing
from ..writing.own_entries import Restorer, name_of, own_entries
from . import v1_events
from .folder import STATES
from .usage import report_of
from .v1_reader import NAME

Event = dict[str, Any]


def write_folder(outgoing: Outgoing) -> Iterator[tuple[str, bytes]]:
    """The events, a file each, and the conversation's state at last."""
    conversation = _Conversation(outgoing)
    for number, event in enumerate(conversation.events()):
        id = str(event.get("id") or uuid5(NAMESPACE_OID, f"{outgoing.key}:{number}"))
        # A name has no other characters: whatever the source's id is, the folder stays readable.
        named = id if _is_plain(id) else str(uuid5(NAMESPACE_OID, id))
        yield f"events/event-{number:05d}-{named}.json", _bytes(event)
    states = conversation.states or {"base_state.json": conversation.state()}
    for name, state in states.items():
        yield name, _bytes(state)


class _Conversation:
    """What was written of a conversation so far."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.states: dict[str, Any] = {}
        self.made = v1_events.Made(outgoing)
        self.restorer = Restorer()
        self.shown: dict[str, tuple[int, ...]] = {}
        """The events in view, each with the positions of its blocks."""
        self.prompted = False
        """Whether the system prompt was written."""
        self.usages: list[dict[str, Any]] = []

    def events(self) -> Iterator[Event]:
        for part in own_entries(self.outgoing, NAME, with_refused=True):
            match part:
                case Entry():
                    yield from self._own(part)
                case Compacted():
                    yield from self._prompt()
                    yield self._condensation(part)
                case Message():
                    yield from self._prompt()
                    for event, positions in self.made.message(part):
                        self.shown[event["id"]] = positions
                        yield event
                    self._spent(part)
        yield from self._prompt()

    def state(self) -> dict[str, Any]:
        """The state of a conversation that OpenHands never had."""
        model = self.outgoing.model or "unknown"
        return {
            "id": str(_uuid(self.outgoing.key)),
            "agent": {
                "kind": "Agent",
                "llm": {"model": model, "usage_id": "agent"},
                "tools": [],
            },
            "workspace": {"kind": "LocalWorkspace", "working_dir": "workspace/project"},
            "max_iterations": 500,
            "stuck_detection": True,
            "execution_status": "idle",
            "confirmation_policy": {"kind": "NeverConfirm"},
            "stats": {"usage_to_metrics": {"agent": self._metrics(model)}},
        } | ({"title": self.outgoing.title} if self.outgoing.title else {})

    def _own(self, entry: Entry) -> Iterator[Event]:
        if entry.rest is not None:
            event = self.restorer.restore(entry)
        elif name_of(entry) in STATES:
            self.states[name_of(entry) or ""] = json.loads(entry.raw or "null")
            return
        else:
            event = json.loads(entry.raw or "null")
        if not isinstance(event, dict):
            return
        self.prompted |= event.get("kind") == "SystemPromptEvent"
        id = str(event.get("id"))
        for said in entry.said:
            if isinstance(said.block, ToolCall):
                self.made.actions[said.block.tool_call_id] = id, said.block.name
        if entry.rest is not None:
            self.shown[id] = tuple(said.position for said in entry.said)
        for forgotten in event.get("forgotten_event_ids") or []:
            self.shown.pop(str(forgotten), None)
        yield event

    def _prompt(self) -> Iterator[Event]:
        outgoing = self.outgoing
        if not self.prompted and (outgoing.system_prompt is not None or outgoing.tools):
            yield self.made.system(outgoing.system_prompt or "", list(outgoing.tools))
        self.prompted = True

    def _condensation(self, part: Compacted) -> Event:
        boundary = part.boundary
        gone = [
            id
            for id, positions in self.shown.items()
            if not any(position in boundary.kept for position in positions)
        ]
        for id in gone:
            del self.shown[id]
        if boundary.trims or boundary.replacements:
            count = len(boundary.trims) + len(boundary.replacements)
            self.outgoing.lose("blocks that are shown shortened", count)
        return self.made.condensation(part, gone)

    def _spent(self, message: Message) -> None:
        call = message.call
        if call and call.usage:
            report = {"model": call.model or "", "response_id": call.call_id}
            self.usages.append(report | report_of(call.usage) | {"cost": call.cost_usd or 0.0})

    def _metrics(self, model: str) -> dict[str, Any]:
        costs = [{"model": one["model"], "cost": one.pop("cost")} for one in self.usages]
        return {
            "model_name": model,
            "accumulated_cost": sum(one["cost"] for one in costs),
            "costs": costs,
            "response_latencies": [],
            "token_usages": self.usages,
        }


def _uuid(key: str) -> UUID:
    try:
        return UUID(key)
    except ValueError:
        return uuid5(NAMESPACE_OID, key)


def _is_plain(id: str) -> bool:
    return len(id) >= 8 and set(id) <= set("0123456789abcdefABCDEF-")


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
