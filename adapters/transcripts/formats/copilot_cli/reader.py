"""Tells the sessions of Copilot CLI, and reads one event by event."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .....domain.blocks import Block, ToolResult
from .....domain.compaction_events import Trigger
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import EntrySteps
from ..reading.fields import Item, MalformedError, take, take_optional, text_in
from ..source import Source
from ..steps import Append, Aside, Asked, Begin, Call, Compacted, Rewind, Step
from ..summary_mark import summary_of
from .content import Content, assistant_message, tool_result, usage_of, user_message
from .events import KEPT, SKIPPED, is_subagents

_PERSON = (None, "", "user")
"""Sources of user messages that a person wrote."""
_WHOLE = "which messages stayed in context is not told"


def recognises(source: Source) -> bool:
    """Whether this is a session of Copilot CLI."""
    return any(_is_event(value) for value in source.first)


def begin(source: Source) -> "Session":
    """The reader of a session's lines."""
    for value in source.first:
        match value:
            case {"type": "session.start", "data": {"sessionId": str(id)} as data} if id:
                return Session(id, text_in(data, "context", "cwd"))
            case _:
                pass
    # The file of a session is `events.jsonl` in a folder with the session's id.
    return Session(source.path.parent.name if source.stem == "events" else source.stem)


class Session:
    """A session while its lines are read."""

    def __init__(self, key: str, project: str | None = None) -> None:
        self.begin = Begin(key, project=project)
        self.has_begun = False
        self.has_said = False
        self.seen: dict[str, str | None] = {}
        """Ids of events, each with that of the event that was kept before it."""
        self.digests: dict[str, str] = {}
        """The digest of each event by its id."""
        self.kept: str | None = None
        """The last event that was kept."""
        self.skipped: dict[str, str | None] = {}
        """Events that were skipped, each with the last one kept before."""
        self.calls: dict[str, str] = {}
        """Tool calls without a result: the ids that the source and the session know them by."""
        self.arguments: dict[str, Any] = {}
        self.answers: dict[str, str] = {}
        """Calls of the model, each with the first event that it answered with."""
        self.system_prompt: str | None = None

    def read(self, line: Line) -> Iterable[Step]:
        entry = EntrySteps(line.number, line.end)
        if not self.has_begun:
            self.has_begun = True
            entry.say(self.begin)
        if line.problem:
            entry.refuse(line, line.problem)
            return entry.ended()
        try:
            self._event(entry, line)
        except MalformedError as error:
            entry.problem(str(error), _raw(line))
        except NestedTooDeeplyError as error:
            entry.problem(str(error), line.text)
        return entry.ended()

    def close(self, *, final: bool = False) -> Iterable[Step]:  # noqa: ARG002 - nothing waits
        return []

    def _event(self, entry: EntrySteps, line: Line) -> None:
        event = line.value
        if not isinstance(event, dict):
            raise MalformedError("expected an object")
        kind = take(event, "type", str)
        data = take(event, "data", dict)
        id = take_optional(event, "id", str) or line.digest
        if (known := self.digests.get(id)) is not None:
            if known != line.digest:
                raise MalformedError(f"id: another event has the id {id}")
            entry.skip(kind, "repeated id")
            return
        if reason := SKIPPED.get(kind):
            entry.skip(kind, reason)
            self.skipped[id] = self.kept
            self.digests[id] = line.digest
            return
        before = self.kept
        if is_subagents(event, data):
            self._keep(entry, line, kind, id)
        elif kind == "user.message":
            self._user(entry, line, data, id)
        elif kind == "assistant.message":
            self._assistant(entry, line, data, id)
        elif kind == "tool.execution_complete":
            self._result(entry, line, data, id)
        elif kind in KEPT:
            self._known(entry, line, kind, data, id)
        else:
            entry.unknown(kind, _raw(line), id)
        self.seen[id] = before
        self.digests[id] = line.digest
        self.kept = id

    def _content(self, line: Line, id: str) -> Content:
        event = line.value
        above = take_optional(event, "parentId", str)
        follows = self.skipped.get(above) if above in self.skipped else None
        return Content(event, line, id, take_optional(event, "timestamp", str), follows)

    def _append(self, entry: EntrySteps, line: Line, content: Content) -> None:
        if not content.blocks:
            self._keep(entry, line, line.value["type"], content.id)
            return
        self.has_said = True
        for index, block in enumerate(content.whole()):
            entry.say(Append(f"{content.id}:{index}", block, content.id))

    def _user(self, entry: EntrySteps, line: Line, data: Item, id: str) -> None:
        content = self._content(line, id)
        source = take_optional(data, "source", str, "data.")
        found = summary_of(data, data.get("content"))
        user_message(content, data, by_harness=source not in _PERSON or found is not None)
        if found and self.has_said:
            self._keep(entry, line, "user.message", id)
            entry.say(Compacted(f"{id}:compacted", Trigger.MANUAL, found.text))
            return
        if found and content.blocks:
            content.holes.clear()  # the mark stays in the rest of the event
            bare = {"name": "summary", "text": found.text}
            content.blocks[0] = content.blocks[0].model_copy(update=bare)
        self._append(entry, line, content)

    def _assistant(self, entry: EntrySteps, line: Line, data: Item, id: str) -> None:
        content = self._content(line, id)
        said = take_optional(data, "messageId", str, "data.") or id
        content.message_id = answer = take_optional(data, "apiCallId", str, "data.") or said
        self.calls |= assistant_message(content, data, self.calls)
        for request in data.get("toolRequests") or []:
            self.arguments[request["toolCallId"]] = request.get("arguments")
        first = self.answers.setdefault(answer, id)
        self._append(entry, line, content)
        if data.get("outputTokens") is not None:
            entry.say(self._call(data, answer, id, content.time, first))

    def _result(self, entry: EntrySteps, line: Line, data: Item, id: str) -> None:
        call = take(data, "toolCallId", str, "data.")
        if call not in self.calls:
            raise MalformedError(f"data.toolCallId: {call} answers no open call")
        content = self._content(line, id)
        tool_result(content, data, self.calls[call])
        assert isinstance(content.blocks[0], ToolResult)
        del self.calls[call]
        self._append(entry, line, content)

    def _known(self, entry: EntrySteps, line: Line, kind: str, data: Item, id: str) -> None:
        told: Item = line.value
        match kind, data:
            case "tool.execution_start", {"toolCallId": str(call), "arguments": arguments} if (
                call in self.arguments and self.arguments[call] == arguments
            ):
                # The request holds them: they come back from there.
                told = told | {"data": _without(data, "arguments")}
            case "system.message", {"content": str(text)}:
                if text == self.system_prompt:
                    told = told | {"data": _without(data, "content")}
                self.system_prompt = text
            case _:
                pass
        entry.say(Aside(id, kind, line.json(told), id, line.number))
        match kind, data:
            case "system.message", {"content": str(text)} if "content" in told["data"]:
                entry.say(Asked(f"{id}:asked", system_prompt=text))
            case "session.start", {"selectedModel": str(model)}:
                entry.say(Asked(f"{id}:asked", settings={"model": model}))
            case "session.model_change", {"newModel": str(model)}:
                entry.say(Asked(f"{id}:asked", settings={"model": model}))
            case "session.title_changed", {"title": str(title)}:
                self.begin = replace(self.begin, title=title)
                entry.say(self.begin)
            case "session.compaction_complete", {"success": True}:
                compacted = self._compacted(line, data, id)
                if self.has_said:
                    entry.say(compacted)
                elif compacted.summary:
                    block = Block.developer(compacted.summary, name="summary")
                    entry.say(Append(f"{id}:summary", block, id))
            case "session.snapshot_rewind", {"upToEventId": str(first)} if first in self.seen:
                entry.say(Rewind(f"{id}:rewind", to=self.seen[first]))
            case "assistant.usage", _:
                answer = take_optional(data, "apiCallId", str, "data.") or id
                time = take_optional(line.value, "timestamp", str)
                entry.say(self._call(data, answer, id, time, self.answers.get(answer)))
            case _:
                pass

    def _compacted(self, line: Line, data: Item, id: str) -> Compacted:
        before = take_optional(data, "preCompactionMessagesLength", int, "data.")
        removed = take_optional(data, "messagesRemoved", int, "data.")
        manual = data.get("trigger") == "manual"
        return Compacted(
            key=f"{id}:compacted",
            trigger=Trigger.MANUAL if manual else Trigger.THRESHOLD,
            summary=take_optional(data, "summaryContent", str, "data.") or None,
            pre_tokens=take_optional(data, "preCompactionTokens", int, "data."),
            post_tokens=take_optional(data, "postCompactionTokens", int, "data."),
            source_time=take_optional(line.value, "timestamp", str),
            partial=_WHOLE if before and removed and removed < before else None,
        )

    def _call(self, data: Item, answer: str, id: str, time: str | None, first: str | None) -> Call:
        return Call(
            key=f"{id}:call",
            fields={
                "call_id": answer,
                "model": take_optional(data, "model", str, "data."),
                "usage": usage_of(data),
                "source_time": time,
            },
            before=first,
        )

    def _keep(self, entry: EntrySteps, line: Line, kind: str, id: str) -> None:
        entry.say(Aside(id, kind, _raw(line), id, line.number))


def _raw(line: Line) -> str:
    """The event as it stands, but for what is no text: half a surrogate pair."""
    return line.json(line.value) if line.odd else line.text


def _without(data: Item, field: str) -> Item:
    return {name: value for name, value in data.items() if name != field}


def _is_event(value: Any) -> bool:
    match value:
        case {"type": str(kind), "data": dict(), "id": str(), "timestamp": _, "parentId": _}:
            return kind in KEPT or kind in SKIPPED or kind in _SAID
        case _:
            return False


_SAID = ("user.message", "assistant.message", "tool.execution_complete")
