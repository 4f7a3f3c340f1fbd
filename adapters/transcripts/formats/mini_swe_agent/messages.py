"""Converts the messages of a mini-SWE-agent trajectory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..json_lines import SourceLine
from ..openhands.call_usage import as_number, read_openhands_usage
from ..reading.chat_content import add_message_blocks, add_thoughts, read_contents, read_tool_calls
from ..reading.entry_blocks import EntryBlocks, EntryLocation
from ..reading.fields import MalformedError, get_field, json_name, require_field
from ..steps import (
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SourceCompaction,
    UnknownEntry,
)
from ..summary_mark import find_marked_summary
from .bash_messages import FENCED_COMMAND

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
