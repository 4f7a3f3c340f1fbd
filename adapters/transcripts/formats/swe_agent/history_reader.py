"""Converts the messages of SWE-agent's history."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..content.placeholders import Placeholder
from ..json_lines import SourceLine
from ..reading.chat_content import add_message_blocks, add_thoughts, read_contents, read_tool_calls
from ..reading.entry_blocks import EntryBlocks, EntryLocation
from ..reading.fields import MalformedError, get_field, json_name, require_field
from ..steps import ImportStep, RawEntry, RequestParameters, SourceCompaction, UnknownEntry
from ..summary_mark import find_marked_summary

FORMAT_NAME = "swe-agent-traj"
_SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""
DEVELOPER_AGENT = "developer"
USER_AGENT = "user"
"""Authors of messages in the user's role that are not observations, by tag."""
DEMONSTRATION_ENTRY = "demonstration"


@dataclass(slots=True)
class SweHistoryReader:
    line: SourceLine
    open_calls: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""
    last_model_message: int = 0
    has_messages: bool = False
    unkept_messages: set[int] = field(default_factory=set)
    """Messages that could not be kept even as raw notes."""

    def read(self, message: Any, number: int, key: str, raw: str) -> list[ImportStep]:
        if not isinstance(message, dict):
            raise MalformedError(f"expected an object, got {json_name(message)}")
        whence = EntryLocation(FORMAT_NAME, key, self.line, number)
        match require_field(message, "role", str):
            case "system":
                return list(self._read_system(message, whence, raw))
            case "assistant":
                return list(self._read_assistant(message, whence, raw))
            case "user":
                return list(self._read_user(message, whence, raw))
            case "tool":
                ids = require_field(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                return list(self._read_answer(message, ids[0], whence))
            case role:
                return [UnknownEntry(key, f"history/{role}", raw, number)]

    def _read_system(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        texts = [value for value, _ in read_contents(message) if isinstance(value, str)]
        yield RequestParameters(f"{whence.key}:asked", "\n\n".join(texts))
        yield RawEntry(whence.key, "history/system", raw, line=whence.number)

    def _read_assistant(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        add_message_blocks(pieces, Kind.ASSISTANT, message)
        action = get_field(message, "action", str)
        calls = list(read_tool_calls(message))
        for index, call in calls:
            at = ("tool_calls", index, "function", "arguments")
            function = call["function"]
            pieces.add(_make_call(call["id"], function["name"], function["arguments"]), at)
        if not calls and action and action.strip():
            # Older versions: the call is a range of the text, and its id is made of its place.
            at_call = Placeholder(("action",), "argument", "command", len(pieces.blocks))
            pieces.placeholders.append(at_call)
            arguments = self.line.to_json({"command": action})
            pieces.add(_make_call(f"call-{whence.number}", _SHELL_TOOL, arguments))
        self.open_calls = [
            block.tool_call_id for block in pieces.blocks if isinstance(block, ToolCall)
        ]
        self.last_model_message = whence.number
        yield from self._make_steps(pieces, message, whence, raw, f"message-{whence.number}")

    def _read_user(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        tags = get_field(message, "tags", list) or []
        found = _find_summary(message)
        if found and self.has_messages:
            yield SourceCompaction(
                key=f"{whence.key}:compacted",
                trigger=Trigger.THRESHOLD,
                summary=found,
                partial_reason="which blocks stayed is not said",
            )
            yield RawEntry(whence.key, "history/user", raw, line=whence.number)
            return
        if self.open_calls and USER_AGENT not in tags and DEVELOPER_AGENT not in tags and not found:
            yield from self._read_answer(message, self.open_calls[0], whence)
            return
        pieces = EntryBlocks()
        if found:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.mark_as_summary(found)
        elif message.get("is_demo") is True:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.name_blocks(DEMONSTRATION_ENTRY)
        else:
            # After the model's first message, unmarked user messages come from the program.
            by_person = USER_AGENT in tags or not (
                self.last_model_message or DEVELOPER_AGENT in tags
            )
            add_message_blocks(pieces, Kind.USER if by_person else Kind.DEVELOPER, message)
        yield from self._make_steps(pieces, message, whence, raw)

    def _read_answer(
        self, message: dict[str, Any], call: str, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        parts = read_contents(message)
        pieces.add_tool_result(call, parts)
        if call in self.open_calls:
            self.open_calls.remove(call)
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
            yield RawEntry(whence.key, f"history/{message['role']}", raw, line=whence.number)


def _make_call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=id, name=name, arguments=arguments)


def _find_summary(message: dict[str, Any]) -> str | None:
    match read_contents(message):
        case [(str(text), _)]:
            found = find_marked_summary(message, text)
            return found.text if found else None
        case _:
            return None
