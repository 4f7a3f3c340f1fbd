"""Reads a mini-SWE-agent trajectory: one object, or in older versions a bare list."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..chat_content import (
    add_message_blocks,
    add_thoughts,
    drop_cache_marks,
    read_contents,
    read_tool_calls,
)
from ..entry_steps import EntryBlocks, EntryLocation, digest_text
from ..fields import MalformedError, get_field, json_name, require_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..openhands.call_usage import as_number, read_openhands_usage
from ..source import TranscriptSource
from ..steps import (
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceCompaction,
    SourceProblem,
    UnknownEntry,
)
from ..summary_mark import find_marked_summary

FENCED_COMMAND = re.compile(
    r"^```(?:mswea_bash_command|bash)\s*\n(.*?)\n?^```", re.DOTALL | re.MULTILINE
)
_ROLES = frozenset({"system", "user", "assistant"})


def has_bash_messages(messages: list[Any]) -> bool:
    """Return whether only system, user and model speak, and the model starts with a command."""
    for message in messages:
        match message:
            case {"role": str(role), "content": str(), **more} if role in _ROLES and not more:
                pass
            case _:
                return False
    first = next((one["content"] for one in messages if one["role"] == "assistant"), "")
    return bool(messages) and messages[0]["role"] == "system" and bool(FENCED_COMMAND.search(first))


FORMAT_NAME = "mini-swe-agent"
_SHELL_TOOL = "bash"
"""The only tool of this agent."""
AUTHOR_FIELD = "by"
"""The field of `extra` that names the author in a user's role, written by cutbank."""


@dataclass(slots=True)
class MiniSweMessageReader:
    line: SourceLine
    model: str | None = None
    open_calls: list[str] = field(default_factory=list)
    has_messages: bool = False

    def read(self, message: Any, number: int, key: str, raw: str) -> list[ImportStep]:
        if not isinstance(message, dict):
            raise MalformedError(f"expected an object, got {json_name(message)}")
        extra = get_field(message, "extra", dict) or {}
        time = as_number(extra.get("timestamp"))
        told = self.line.to_json(extra["timestamp"]) if time is not None else None
        whence = EntryLocation(FORMAT_NAME, key, self.line, number, None, told)
        match require_field(message, "role", str):
            case "system":
                texts = [value for value, _ in read_contents(message) if isinstance(value, str)]
                asked = RequestParameters(f"{key}:asked", "\n\n".join(texts))
                return [asked, RawEntry(key, "system", raw, line=number)]
            case "assistant":
                return list(self._read_assistant(message, extra, whence, raw))
            case "user":
                return list(self._read_user(message, extra, whence, raw))
            case "tool":
                call = require_field(message, "tool_call_id", str)
                if not call:
                    raise MalformedError("tool_call_id: expected an id, but it is empty")
                return list(self._read_answer(message, call, extra, whence))
            case "exit":
                return [RawEntry(key, "exit", raw, line=number)]
            case role:
                return [UnknownEntry(key, f"messages/{role}", raw, number)]

    def _read_assistant(
        self, message: dict[str, Any], extra: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        add_message_blocks(pieces, Kind.ASSISTANT, message)
        for index, call in read_tool_calls(message):
            at = ("tool_calls", index, "function", "arguments")
            function = call["function"]
            pieces.add(_make_call(call["id"], function["name"], function["arguments"]), at)
        self._find_commands(pieces, message, whence)
        self.open_calls = [
            block.tool_call_id for block in pieces.blocks if isinstance(block, ToolCall)
        ]
        response = extra.get("response")
        told = response if isinstance(response, dict) else {}
        id = told.get("id")
        call_id = id if isinstance(id, str) and id else f"message-{whence.number}"
        yield from self._make_steps(pieces, message, whence, raw, call_id)
        if pieces.blocks and (told or extra.get("cost") is not None):
            yield self._report_call(told, extra, call_id, whence)

    def _find_commands(
        self, pieces: EntryBlocks, message: dict[str, Any], whence: EntryLocation
    ) -> None:
        """Add the command in the text, if the message calls no tool."""
        if any(isinstance(block, ToolCall) for block in pieces.blocks):
            return
        # Older versions have only the text, newer ones also the actions that they found in it.
        match message:
            case {"extra": {"actions": [_, *_]}}:
                pass
            case _ if message.keys() > {"role", "content"}:
                return
            case _:
                pass
        found = [
            match[1]
            for block in pieces.blocks
            for match in FENCED_COMMAND.finditer(block.text or "")
        ]
        # The agent runs a command only if there is exactly one.
        if len(found) == 1:
            arguments = self.line.to_json({"command": found[0]})
            pieces.add(_make_call(f"call-{whence.number}", _SHELL_TOOL, arguments))

    def _read_user(
        self, message: dict[str, Any], extra: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        by = extra.get(AUTHOR_FIELD)
        found = _find_summary(message)
        if found and self.has_messages:
            yield SourceCompaction(
                key=f"{whence.key}:compacted",
                trigger=Trigger.THRESHOLD,
                summary=found,
                source_time=whence.time,
                partial_reason="which blocks stayed is not said",
            )
            yield RawEntry(whence.key, "user", raw, line=whence.number)
            return
        if (
            self.open_calls
            and by is None
            and not found
            and self._is_output(self.open_calls[0], extra)
        ):
            yield from self._read_answer(message, self.open_calls[0], extra, whence)
            return
        pieces = EntryBlocks()
        if found:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.mark_as_summary(found)
        else:
            by_program = by == "developer" or isinstance(extra.get("interrupt_type"), str)
            add_message_blocks(pieces, Kind.DEVELOPER if by_program else Kind.USER, message)
        yield from self._make_steps(pieces, message, whence, raw)

    def _is_output(self, call: str, extra: dict[str, Any]) -> bool:
        # Only a user's message answers a call that was found in the text.
        return call.startswith("call-") and not isinstance(extra.get("interrupt_type"), str)

    def _read_answer(
        self, message: dict[str, Any], call: str, extra: dict[str, Any], whence: EntryLocation
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        pieces.add_tool_result(
            call, read_contents(message), is_error=bool(extra.get("exception_info"))
        )
        if call in self.open_calls:
            self.open_calls.remove(call)
        self.has_messages = True
        yield from pieces.make_appends(whence, message)

    def _make_steps(
        self,
        pieces: EntryBlocks,
        message: dict[str, Any],
        whence: EntryLocation,
        raw: str,
        message_id: str | None = None,
    ) -> Iterator[ImportStep]:
        if pieces.blocks:
            self.has_messages = True
            yield from pieces.make_appends(whence, message, message_id)
        else:
            yield RawEntry(whence.key, str(message["role"]), raw, line=whence.number)

    def _report_call(
        self, response: dict[str, Any], extra: dict[str, Any], call_id: str, whence: EntryLocation
    ) -> ReportedCall:
        model, choices = response.get("model"), response.get("choices")
        match choices:
            case [{"finish_reason": str(reason)}, *_]:
                stop: str | None = reason
            case _:
                stop = None
        fields = {
            "call_id": call_id,
            "model": model if isinstance(model, str) else self.model,
            "usage": read_openhands_usage(response.get("usage")),
            "cost_usd": as_number(extra.get("cost")),
            "stop_reason": stop,
            "source_time": whence.time,
        }
        return ReportedCall(f"call:{whence.key}", fields, whence.key)


def _make_call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=id, name=name, arguments=arguments)


def _find_summary(message: dict[str, Any]) -> str | None:
    match read_contents(message):
        case [(str(text), _)]:
            found = find_marked_summary(message, text)
            return found.text if found else None
        case _:
            return None


__all__ = ["FORMAT_NAME", "MINI_SWE_AGENT_ENTRY", "read", "recognizes"]

MINI_SWE_AGENT_ENTRY = "trajectory"


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a trajectory: it says so, or is a list of messages with commands."""
    if source.is_folder or not _is_candidate(source):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory_format": str(name), "messages": list()}:
            return name.startswith(FORMAT_NAME)
        case {"info": {"mini_version": _} | {"config": _}, "messages": list()}:
            return True
        case list(messages):
            return has_bash_messages(messages)
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the messages one by one, then the fields around them."""
    document = source.document
    match document.value if document else None:
        case {"messages": list(messages)} if document:
            rest = {name: one for name, one in document.value.items() if name != "messages"}
            yield from _read_trajectory(messages, rest, source, document)
        case list(messages) if document:
            yield from _read_trajectory(messages, None, source, document)
        case _:
            problem = document.problem if document else None
            yield SourceProblem(1, problem or "expected an object with messages")
            yield EntryEnd("error", document.end if document else 0)


def _read_trajectory(
    messages: list[Any], rest: dict[str, Any] | None, source: TranscriptSource, document: SourceLine
) -> Iterator[ImportStep]:
    around = rest or {}
    named = around.get("instance_id")
    title = named if isinstance(named, str) and named else source.stem
    yield SessionStart(_make_key(named, messages, document), title)
    reader = MiniSweMessageReader(document, model=_find_model(around))
    for number, message in enumerate(messages, 1):
        key = None
        raw = None
        try:
            raw = document.to_json(message)
            key = f"{number}:{digest_text(document.to_json(drop_cache_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            yield SourceProblem(number, f"messages: {error}", key, raw)
            yield EntryEnd("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, UnknownEntry) for step in steps)
        yield EntryEnd("unknown" if unknown else "imported", document.end)
    if rest is not None:
        yield from _read_remainder(rest, document)


def _read_remainder(rest: dict[str, Any], document: SourceLine) -> Iterator[ImportStep]:
    try:
        raw = document.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(1, str(error))
        yield EntryEnd("error", document.end)
        return
    yield RawEntry(f"around:{digest_text(raw)}", MINI_SWE_AGENT_ENTRY, raw)
    yield EntryEnd("imported", document.end)


def _make_key(named: Any, messages: list[Any], document: SourceLine) -> str:
    """Return a session's key from its first messages, since the file has no id of the run."""
    began: list[Any] = [named]
    for message in messages:
        began.append(drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{FORMAT_NAME}-{digest_text(told)}"


def _find_model(around: dict[str, Any]) -> str | None:
    match around:
        case {"info": {"config": {"model": {"model_name": str(model)}}}}:
            return model
        case _:
            return None


def _is_candidate(source: TranscriptSource) -> bool:
    first = source.first_line
    return not isinstance(first, dict) or "messages" in first
