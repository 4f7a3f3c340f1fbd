"""Reads the content of chat messages as SWE-agent and similar agents keep them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import BlockKind, ToolCall
from .content_items import read_content
from .entry_steps import (
    ContentPart,
    EntryBlocks,
    EntryLocation,
    digest_text,
    image_from_address,
    make_thinking_block,
)
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_object
from .json_lines import NestedTooDeeplyError, SourceLine
from .steps import EntryEnd, ImportStep, RawEntry, RequestParameters, SourceProblem, UnknownEntry

_CACHE_MARK = "cache_control"


def read_contents(message: JsonDict) -> list[ContentPart]:
    """Return the texts and images of a message."""
    return read_content(message.get("content"), _read_image)


def _read_image(item: Any) -> list[ContentPart] | None:
    match item:
        case {"type": "image_url", "image_url": {"url": str(address)}}:
            return [image_from_address(address) or address]
        case _:
            return None


def add_thoughts(pieces: EntryBlocks, message: JsonDict, line: SourceLine) -> None:
    """Add the model's thoughts."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        for item in signed:
            pieces.add(make_thinking_block(item, line))
    elif isinstance(thought := message.get("reasoning_content"), str):
        pieces.add_text(BlockKind.THINKING, thought)


def add_tool_calls(pieces: EntryBlocks, message: JsonDict) -> None:
    for index, call in enumerate(get_field(message, "tool_calls", list) or []):
        match call:
            case {"id": str(id), "function": {"name": str(name), "arguments": str(text)}} if id:
                pieces.add(ToolCall(tool_call_id=id, name=name, arguments=text))
            case _:
                raise MalformedError(f"tool_calls: call {index} has no id, name or arguments")


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
            key = None
            try:
                key = f"{number}:{digest_text(self.line.to_json(_drop_cache_marks(message)))}"
                steps = self.read(require_object(message), number, key)
            except (MalformedError, NestedTooDeeplyError) as error:
                raw = self.line.to_json_or_none(message)
                yield SourceProblem(number, f"{self.within}: {error}", key, raw)
                yield EntryEnd("error", self.line.end)
                continue
            yield from steps
            is_unknown = isinstance(steps[-1], UnknownEntry)
            yield EntryEnd("unknown" if is_unknown else "imported", self.line.end)

    @abstractmethod
    def read(self, message: JsonDict, number: int, key: str) -> list[ImportStep]:
        """Return the steps of one message."""

    def read_system(self, message: JsonDict, whence: EntryLocation) -> list[ImportStep]:
        texts = [part for part in read_contents(message) if isinstance(part, str)]
        asked = RequestParameters(f"{whence.key}:asked", "\n\n".join(texts))
        return [asked, self.keep_raw(message, whence)]

    def keep_raw(self, message: JsonDict, whence: EntryLocation) -> RawEntry:
        kind = f"{self.kind_prefix}{message['role']}"
        return RawEntry(whence.key, kind, self.line.to_json(message), line=whence.number)

    def keep_unknown(self, message: JsonDict, whence: EntryLocation) -> UnknownEntry:
        kind = f"{self.within}/{message['role']}"
        return UnknownEntry(whence.key, kind, self.line.to_json(message), whence.number)

    def append(
        self,
        pieces: EntryBlocks,
        message: JsonDict,
        whence: EntryLocation,
        message_id: str | None = None,
    ) -> list[ImportStep]:
        if not pieces.blocks:
            return [self.keep_raw(message, whence)]
        return list(pieces.make_appends(whence, message_id))

    def answer(
        self, message: JsonDict, call: str, whence: EntryLocation, *, is_error: bool = False
    ) -> list[ImportStep]:
        pieces = EntryBlocks()
        pieces.add_tool_result(call, read_contents(message), is_error=is_error)
        if call in self.open_calls:
            self.open_calls.remove(call)
        return list(pieces.make_appends(whence))


def make_trajectory_key(
    prefix: str, named: list[Any], messages: list[Any], document: SourceLine
) -> str:
    """Return a session's key from its names and first messages, since the file has no id."""
    began = list(named)
    for message in messages:
        began.append(_drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    told = document.to_json_or_none(began)
    return f"{prefix}-{digest_text(document.digest if told is None else told)}"


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
