"""Converts the items of a pi message to blocks."""

from collections.abc import Callable
from typing import Any, TypeVar

from .....domain.blocks import AnyBlock, Block, BlockKind, Media, ToolCall, ToolResult
from ..content import ContentPart, image_from_data, make_result_content
from ..fields import JsonDict, MalformedError, get_field, require_field, require_type
from ..json_lines import SourceLine
from .entries import read_native

BRANCH_LEAD = "What follows sums up a branch that the conversation came back from:"
SUMMARY_LEAD = "What follows sums up the conversation so far:"
_T = TypeVar("_T")


class EntryContent:
    """The blocks of an entry, and what of it could not be read."""

    def __init__(self, entry: JsonDict, *, is_message: bool) -> None:
        self.owner = require_field(entry, "message", dict) if is_message else entry
        """The object with the content: the entry itself, or the message in it."""
        self.within = "message." if is_message else ""
        self.blocks: list[AnyBlock] = []
        self.problems: list[tuple[str, Any]] = []

    def read(self, role: str, user_kind: BlockKind, line: SourceLine, source_id: str) -> None:
        """Read a message of a known role; `user_kind` is the kind of a user's texts."""
        match role:
            case "user":
                self.blocks = self._read_items(lambda item, _: _read_input(item, user_kind))
            case "developer" | "custom" | "hookMessage":
                is_named = role != "developer"
                name = get_field(self.owner, "customType", str) if is_named else None
                self.blocks = self._read_items(
                    lambda item, _: _read_input(item, BlockKind.DEVELOPER, name)
                )
            case "assistant":
                api = self.owner.get("api")
                self.blocks = self._read_items(
                    lambda item, index: _read_output(item, api, line, f"{source_id}:{index}")
                )
            case "toolResult":
                self.blocks = [self._read_result()]
            case "bashExecution":
                self.blocks = [self._read_execution("command", "Ran")]
            case "pythonExecution":
                self.blocks = [self._read_execution("code", "Ran Python")]
            case "branchSummary":
                self.blocks = self._read_summary("branch_summary", BRANCH_LEAD)
            case "compactionSummary":
                self.blocks = self._read_summary("summary", SUMMARY_LEAD)

    def _require(self, field: str) -> str:
        return require_field(self.owner, field, str, self.within)

    def _read_items(self, read: Callable[[Any, int], _T]) -> list[_T]:
        """Read each item of the content."""
        content = self.owner.get("content")
        if isinstance(content, str):
            return [read({"type": "text", "text": content}, 0)] if content else []
        found: list[_T] = []
        for index, item in enumerate(require_field(self.owner, "content", list, self.within)):
            try:
                found.append(read(item, index))
            except MalformedError as error:
                self.problems.append((f"{self.within}content[{index}]: {error}", item))
        return found

    def _read_result(self) -> ToolResult:
        """Read a tool's answer, which is one block."""
        call = self._require("toolCallId")
        if not call:
            raise MalformedError("message.toolCallId: expected an id, but it is empty")
        is_error = get_field(self.owner, "isError", bool, self.within) or False
        parts = self._read_items(lambda item, _: _read_part(item))
        return ToolResult(tool_call_id=call, content=make_result_content(parts), is_error=is_error)

    def _read_execution(self, field: str, how: str) -> Block:
        """Read a command that the user ran, and its output."""
        message = self.owner
        ran, output = self._require(field), self._require("output")
        text = f"{how} `{ran}`\n" + (f"```\n{output}\n```" if output else "(no output)")
        code = get_field(message, "exitCode", int, self.within)
        if message.get("cancelled") is True:
            text += "\n\n(cancelled)"
        elif code:
            text += f"\n\nIt ended with exit code {code}."
        if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
            text += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
        return Block.developer(text, name=field)

    def _read_summary(self, name: str, lead: str) -> list[AnyBlock]:
        """Read a summary of other messages."""
        summary = self._require("summary")
        text = f"{lead}\n\n<summary>\n{summary}\n</summary>"
        return [Block.developer(text, name=name)] if summary else []


def _read_input(item: Any, kind: BlockKind, name: str | None = None) -> Block:
    part = _read_part(item)
    if isinstance(part, Media):
        return Block(kind=BlockKind.IMAGE, media=part, name=name)
    if item["type"] == "image":
        return Block.developer(part, name="image")
    return Block(kind=kind, text=part, name=name)


def _read_part(item: Any) -> ContentPart:
    match require_type(item):
        case "text":
            return require_field(item, "text", str)
        case "image":
            data, mime = require_field(item, "data", str), require_field(item, "mimeType", str)
            if data.startswith("blob:"):
                return f"[an image that is kept outside the session: {data}]"
            if media := image_from_data(data, mime):
                return media
            raise MalformedError("data: expected base64")
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _read_output(item: Any, api: Any, line: SourceLine, place: str) -> AnyBlock:
    match require_type(item):
        case "text":
            return Block.assistant(require_field(item, "text", str))
        case "thinking":
            native, thought = read_native(item, api, line)
            return Block.thinking(thought, native=native)
        case "toolCall":
            return ToolCall(
                tool_call_id=get_field(item, "id", str) or place,
                name=require_field(item, "name", str),
                arguments=line.to_json(require_field(item, "arguments", dict)),
            )
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")
