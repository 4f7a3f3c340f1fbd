"""Reads the chat messages of trajectories of SWE-agent and similar agents."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import BlockKind, ToolCall
from .content import ContentPart, image_from_address, make_thinking_block, read_content
from .entry_steps import EntrySteps, digest_text, read_entry
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_object
from .json_lines import NestedTooDeeplyError, SourceLine
from .steps import ImportStep, RequestParameters

_CACHE_MARK = "cache_control"
SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""


def read_contents(message: JsonDict) -> list[ContentPart]:
    """Return the texts and images of a message."""
    return read_content(message.get("content"), _read_image)


def _read_image(item: Any) -> list[ContentPart] | None:
    match item:
        case {"type": "image_url", "image_url": {"url": str(address)}}:
            return [image_from_address(address) or address]
        case _:
            return None


def add_thoughts(entry: EntrySteps, message: JsonDict) -> None:
    """Add the model's thoughts."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        entry.blocks += [make_thinking_block(item, entry.line) for item in signed]
    elif isinstance(thought := message.get("reasoning_content"), str):
        entry.add_text(BlockKind.THINKING, thought)


@dataclass(slots=True)
class ChatReader(ABC):
    """The state of reading the messages of a trajectory; each format reads its own roles."""

    format: str
    line: SourceLine
    within: str
    """The field that holds the messages."""
    kind_prefix: str = ""
    """The prefix of the types of entries that are kept raw; the role follows."""
    open_calls: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""

    def read_all(self, messages: list[Any]) -> Iterator[ImportStep]:
        """Yield the steps of each message."""
        for number, message in enumerate(messages, 1):
            yield from read_entry(EntrySteps(self.format, self.line, number, message), self._read)

    def _read(self, entry: EntrySteps) -> None:
        try:
            plain = entry.line.to_json(_drop_cache_marks(entry.value))
            entry.key = entry.refused_key = f"{entry.number}:{digest_text(plain)}"
            message = require_object(entry.value)
            self.read(entry, message, require_field(message, "role", str))
        except MalformedError as error:
            raise MalformedError(f"{self.within}: {error}") from error

    @abstractmethod
    def read(self, entry: EntrySteps, message: JsonDict, role: str) -> None:
        """Read one message."""

    def read_system(self, entry: EntrySteps, message: JsonDict) -> None:
        texts = [part for part in read_contents(message) if isinstance(part, str)]
        entry.add(RequestParameters(f"{entry.key}:asked", "\n\n".join(texts)))
        self.keep(entry, message)

    def keep(self, entry: EntrySteps, message: JsonDict) -> None:
        entry.keep(f"{self.kind_prefix}{message['role']}")

    def keep_unknown(self, entry: EntrySteps, message: JsonDict) -> None:
        entry.keep(f"{self.within}/{message['role']}", is_unknown=True)

    def append(self, entry: EntrySteps, message: JsonDict, message_id: str | None = None) -> bool:
        return entry.append(f"{self.kind_prefix}{message['role']}", message_id)

    def add_calls(self, entry: EntrySteps, message: JsonDict, command: str | None) -> None:
        """Add the calls of a model's message, or else the command in its text."""
        for index, call in enumerate(get_field(message, "tool_calls", list) or []):
            match call:
                case {"id": str(id), "function": {"name": str(name), "arguments": str(text)}} if id:
                    entry.blocks.append(ToolCall(tool_call_id=id, name=name, arguments=text))
                case _:
                    raise MalformedError(f"tool_calls: call {index} has no id, name or arguments")
        if command is not None and not message.get("tool_calls"):
            # It has no id but its place.
            arguments = self.line.to_json({"command": command})
            call_id = f"call-{entry.number}"
            entry.blocks.append(
                ToolCall(tool_call_id=call_id, name=SHELL_TOOL, arguments=arguments)
            )
        self.open_calls = [one.tool_call_id for one in entry.blocks if isinstance(one, ToolCall)]

    def answer(
        self, entry: EntrySteps, message: JsonDict, call: str, *, is_error: bool = False
    ) -> None:
        entry.add_tool_result(call, read_contents(message), is_error=is_error)
        if call in self.open_calls:
            self.open_calls.remove(call)
        self.append(entry, message)


def make_trajectory_key(
    prefix: str, named: list[Any], messages: list[Any], document: SourceLine
) -> str:
    """Return a session's key from its names and first messages, since the file has no id."""
    began = list(named)
    for message in messages:
        began.append(_drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{prefix}-{digest_text(told)}"


def _drop_cache_marks(message: Any) -> Any:
    """Return the message without its prompt cache marks, which move as the history grows."""
    if not isinstance(message, dict):
        return message
    plain = drop_fields(message, _CACHE_MARK)
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            drop_fields(item, _CACHE_MARK) if isinstance(item, dict) else item for item in content
        ]
    return plain
