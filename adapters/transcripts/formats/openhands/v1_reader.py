"""Reads a conversation of the OpenHands SDK: its state, then event by event."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .....domain.compaction_events import Trigger
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import refused
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Pieces, Whence
from ..source import Source
from ..steps import (
    Aside,
    Asked,
    Begin,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Skipped,
    Step,
    Unknown,
)
from . import v1_content
from .condensing import FORGOTTEN, View
from .folder import Folder, Member, folder_of
from .usage import Spent, spent_by_response

NAME = "openhands-v1"

_SAID: dict[str, Callable[[dict[str, Any], Line], Pieces]] = {
    "MessageEvent": v1_content.message,
    "ActionEvent": v1_content.action,
    "ObservationEvent": v1_content.observation,
    "UserRejectObservation": v1_content.rejection,
    "AgentErrorEvent": v1_content.error,
    "CondensationSummaryEvent": v1_content.summary,
}
_KEPT = frozenset(
    {
        *("ACPToolCallEvent", "AskUserEvent", "ConversationErrorEvent"),
        *("ConversationIterationLimitEvent", "ConversationStateUpdateEvent"),
        *("HookExecutionEvent", "InterruptEvent", "PauseEvent"),
        *("SecurityAnalyzerConfigurationEvent", "UserActionEvent", "WarningEvent"),
    }
)
"""Kinds that no model was sent, and that the agent needs to go on."""
_SKIPPED = {
    "LLMCompletionLogEvent": "a log of a request: its events say the same",
    "StreamingDeltaEvent": "pieces of a message that comes again whole",
    "TokenEvent": "token ids, for training",
}


def recognises(source: Source) -> bool:
    """Whether this is the folder of a conversation."""
    return folder_of(source) is not None


def read(source: Source) -> Iterator[Step]:
    """The conversation's state, then its events in the order of their numbers."""
    folder = folder_of(source)
    if folder is None:
        return
    states = list(folder.states())
    values = {member.name.rpartition("/")[2]: member.line.value for member in states}
    state = values.get("base_state.json") or values.get("meta.json")
    yield from _Conversation(folder, state if isinstance(state, dict) else {}).read(states)


class _Conversation:
    """What is known of a conversation at some event of it."""

    def __init__(self, folder: Folder, state: dict[str, Any]) -> None:
        self.folder = folder
        self.state = state
        self.spent = spent_by_response(state)
        self.view = View()
        self.seen: set[str] = set()
        self.called: set[str] = set()
        self.number = -1

    def read(self, states: list[Member]) -> Iterator[Step]:
        id, title = self.state.get("id"), self.state.get("title")
        key = id if isinstance(id, str) and id else self.folder.source.stem
        yield Begin(key, title if isinstance(title, str) else None)
        if model := self._model():
            yield Asked(f"settings:{model}", settings={"model": model})
        for member in states:
            yield from self._state(member)
        for member in self.folder.events():
            yield from self._member(member)
        for member in self.folder.strangers():
            name = member.name.rpartition("/")[2]
            reason = f"events/{name}: no event has such a name"
            yield replace(refused(member.line, reason), line=0, is_part=True)
            yield EntryRead("error", self.folder.read)

    def _state(self, member: Member) -> Iterator[Step]:
        name = member.name.rpartition("/")[2]
        if member.line.problem:
            yield replace(refused(member.line, f"{name}: {member.line.problem}"), line=0)
            yield EntryRead("error", self.folder.read)
            return
        yield Aside(f"{name}:{member.line.digest}", name, member.line.text)
        yield EntryRead("imported", self.folder.read)

    def _member(self, member: Member) -> Iterator[Step]:
        line, number = member.line, member.number
        if line.problem:
            self.number = max(self.number, number)
            yield replace(refused(line, line.problem), line=number)
            yield EntryRead("error", self.folder.read)
            return
        try:
            yield from self._numbered(number)
            steps = list(self._event(line, number))
        except (MalformedError, NestedTooDeeplyError) as error:
            yield Problem(number, str(error), f"{number}:{line.digest}", line.text)
            yield EntryRead("error", self.folder.read)
            return
        yield from steps
        yield EntryRead(_outcome(steps), self.folder.read)

    def _numbered(self, number: int) -> Iterator[Step]:
        before, self.number = self.number, max(self.number, number)
        if number == before:
            raise MalformedError(f"another event has the number {number}")
        if number > before + 1:
            missing = f"event {before + 1}" + (f" to {number - 1}" if number > before + 2 else "")
            yield Problem(number, f"{missing}: not there")

    def _event(self, line: Line, number: int) -> Iterator[Step]:
        event = line.value
        if not isinstance(event, dict):
            raise MalformedError(f"expected an object, got {json_name(event)}")
        kind, id = take(event, "kind", str), v1_content.named(event, "id")
        if id in self.seen:
            raise MalformedError(f"id: another event has the id {id}")
        whence = Whence(NAME, id, line, number, id, take_optional(event, "timestamp", str))
        if kind == "SystemPromptEvent":
            steps = self._system(event, whence)
        elif kind == "Condensation":
            steps = self._condensation(event, whence)
        elif kind == "CondensationRequest":
            steps = self._request(event, whence)
        elif kind in _SAID:
            steps = self._said(event, kind, whence)
        elif kind in _KEPT:
            steps = iter([_aside(whence, kind)])
        elif reason := _SKIPPED.get(kind):
            steps = iter([Skipped(kind, reason)])
        else:
            steps = iter([Unknown(id, kind, line.text, number, id)])
        yield from list(steps)
        self.seen.add(id)

    def _said(self, event: dict[str, Any], kind: str, whence: Whence) -> Iterator[Step]:
        if self.view.shown and (found := v1_content.exported_summary(event)):
            self.view.shown.clear()
            yield self._compacted(whence, found.text, (), "which blocks stayed is not said")
            yield _aside(whence, kind)
            return
        pieces = _SAID[kind](event, whence.line)
        if not pieces.blocks:
            yield _aside(whence, kind)
            return
        if found := v1_content.exported_summary(event):
            pieces.call_summary(found.text)
        response = take_optional(event, "llm_response_id", str) or None
        yield from pieces.appends(whence, event, response)
        self.view.show(whence.id, whence.key)
        if response and response not in self.called:
            self.called.add(response)
            yield self._call(response, whence)

    def _system(self, event: dict[str, Any], whence: Whence) -> Iterator[Step]:
        prompt = take(event, "system_prompt", dict)
        texts = [take(prompt, "text", str, "system_prompt.")]
        if context := take_optional(event, "dynamic_context", dict):
            texts.append(take(context, "text", str, "dynamic_context."))
        tools = take_optional(event, "tools", list)
        yield Asked(f"{whence.key}:asked", "\n\n".join(texts), tools)
        yield _aside(whence, "SystemPromptEvent")

    def _request(self, event: dict[str, Any], whence: Whence) -> Iterator[Step]:
        by_person = event.get("reason") == "manual" or event.get("source") == "user"
        self.view.requested = Trigger.MANUAL if by_person else Trigger.OVERFLOW
        yield _aside(whence, "CondensationRequest")

    def _condensation(self, event: dict[str, Any], whence: Whence) -> Iterator[Step]:
        ids = take_optional(event, "forgotten_event_ids", list) or []
        summary = take_optional(event, "summary", str)
        said = bool(self.view.shown)
        forgot = self.view.forget([id for id in ids if isinstance(id, str)])
        if said and (forgot or summary):
            kept = self.view.kept()
            partial = None if kept is not None else "which blocks stayed is not listed"
            yield self._compacted(whence, summary or FORGOTTEN, kept or (), partial)
        elif summary:
            yield from v1_content.summary(event, whence.line).appends(whence, event)
            return
        yield _aside(whence, "Condensation")

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

    def _call(self, response: str, whence: Whence) -> Call:
        spent = self.spent.get(response, Spent())
        known = spent.usage.output or 0 if spent.usage else "unknown"
        return Call(
            key=f"call:{response}:{known}",
            fields={
                "call_id": response,
                "model": spent.model or self._model(),
                "usage": spent.usage,
                "cost_usd": spent.cost_usd,
                "latency_s": spent.latency_s,
                "source_time": whence.time,
            },
            before=whence.key,
        )

    def _model(self) -> str | None:
        match self.state:
            case {"agent": {"llm": {"model": str(model)}}}:
                return model
            case _:
                return None


def _aside(whence: Whence, kind: str) -> Aside:
    return Aside(whence.key, kind, whence.line.text, whence.id, whence.number)


def _outcome(steps: list[Step]) -> str:
    match steps[-1] if steps else None:
        case Skipped():
            return "skipped"
        case Unknown():
            return "unknown"
        case _:
            return "imported"
