"""Reads and writes the content of chat messages as SWE-agent and similar agents keep them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import AnyBlock, Kind, Media, ToolCall, ToolResult
from ....domain.compaction_events import Trigger
from ....projections.rendering import summary_message
from .content_items import make_answer_items, make_content_items, read_content
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
from .media_text import make_media_address
from .outgoing import (
    EntryRestorer,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from .placeholders import JsonPath
from .steps import (
    EntryEnd,
    ImportStep,
    RawEntry,
    RequestParameters,
    SourceCompaction,
    SourceProblem,
    UnknownEntry,
)
from .summary_mark import SUMMARY_MARK, find_marked_summary

_CACHE_MARK = "cache_control"


def read_contents(message: JsonDict) -> list[ContentPart]:
    """Return the texts and images of a message, each with its path."""
    return read_content(message.get("content"), ("content",), _read_image)


def _read_image(item: Any, at: JsonPath) -> list[ContentPart] | None:
    match item:
        case {"type": "image_url", "image_url": {"url": str(address)}}:
            return [(image_from_address(address) or address, (*at, "image_url", "url"))]
        case _:
            return None


def drop_cache_marks(message: Any) -> Any:
    """Return the message without its prompt cache marks, which move as the history grows."""
    if not isinstance(message, dict):
        return message
    plain = drop_fields(message, _CACHE_MARK)
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            drop_fields(item, _CACHE_MARK) if isinstance(item, dict) else item for item in content
        ]
    return plain


def add_thoughts(
    pieces: EntryBlocks, message: JsonDict, line: SourceLine, at: JsonPath = ()
) -> None:
    """Add the model's thoughts; `at` is the path of the message."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        for index, item in enumerate(signed):
            pieces.add_native(make_thinking_block(item, line), (*at, "thinking_blocks", index))
    elif isinstance(thought := message.get("reasoning_content"), str):
        pieces.add_text(Kind.THINKING, thought, (*at, "reasoning_content"))


def add_tool_calls(pieces: EntryBlocks, message: JsonDict) -> None:
    for index, call in enumerate(get_field(message, "tool_calls", list) or []):
        match call:
            case {"id": str(id), "function": {"name": str(name), "arguments": str(text)}} if id:
                at = ("tool_calls", index, "function", "arguments")
                pieces.add(ToolCall(tool_call_id=id, name=name, arguments=text), at)
            case _:
                raise MalformedError(f"tool_calls: call {index} has no id, name or arguments")


@dataclass(slots=True)
class ChatReader:
    """The state of reading the messages of a trajectory; each format reads its own roles."""

    format: str
    line: SourceLine
    kind_prefix: str = ""
    """The prefix of the types of entries that are kept raw; the role follows."""
    open_calls: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""
    has_messages: bool = False

    def read_system(self, message: JsonDict, whence: EntryLocation, raw: str) -> list[ImportStep]:
        texts = [value for value, _ in read_contents(message) if isinstance(value, str)]
        asked = RequestParameters(f"{whence.key}:asked", "\n\n".join(texts))
        return [asked, self.keep_raw(message, whence, raw)]

    def keep_raw(self, message: JsonDict, whence: EntryLocation, raw: str) -> RawEntry:
        return RawEntry(whence.key, f"{self.kind_prefix}{message['role']}", raw, line=whence.number)

    def compact(
        self, summary: str, message: JsonDict, whence: EntryLocation, raw: str
    ) -> list[ImportStep]:
        compaction = SourceCompaction(
            key=f"{whence.key}:compacted",
            trigger=Trigger.THRESHOLD,
            summary=summary,
            source_time=whence.time,
            partial_reason="the source does not say which blocks stayed",
        )
        return [compaction, self.keep_raw(message, whence, raw)]

    def append(
        self,
        pieces: EntryBlocks,
        message: JsonDict,
        whence: EntryLocation,
        raw: str,
        message_id: str | None = None,
    ) -> list[ImportStep]:
        if not pieces.blocks:
            return [self.keep_raw(message, whence, raw)]
        self.has_messages = True
        return list(pieces.make_appends(whence, message, message_id))

    def answer(
        self, message: JsonDict, call: str, whence: EntryLocation, *, is_error: bool = False
    ) -> list[ImportStep]:
        pieces = EntryBlocks()
        pieces.add_tool_result(call, read_contents(message), is_error=is_error)
        if call in self.open_calls:
            self.open_calls.remove(call)
        return list(pieces.make_appends(whence, message))


def read_chat_messages(
    messages: list[Any],
    document: SourceLine,
    read: Callable[[JsonDict, int, str, str], list[ImportStep]],
    within: str,
    unkept: set[int] | None = None,
) -> Iterator[ImportStep]:
    """Yield the steps of each message, read with `read` from its number, key and JSON text.

    `unkept` gets the numbers of messages that could not be kept even as raw notes.
    """
    for number, message in enumerate(messages, 1):
        key = raw = None
        try:
            raw = document.to_json(message)
            key = f"{number}:{digest_text(document.to_json(drop_cache_marks(message)))}"
            steps = read(require_object(message), number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            if raw is None and unkept is not None:
                unkept.add(number)
            yield SourceProblem(number, f"{within}: {error}", key, raw)
            yield EntryEnd("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, UnknownEntry) for step in steps)
        yield EntryEnd("unknown" if unknown else "imported", document.end)


def read_surrounding(
    rest: JsonDict, document: SourceLine, kind: str, name: str = "around"
) -> Iterator[ImportStep]:
    """Yield the fields around the messages as one raw entry; its key begins with `name`."""
    try:
        raw = document.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(document.number, str(error))
        yield EntryEnd("error", document.end)
        return
    yield RawEntry(f"{name}:{digest_text(raw)}", kind, raw)
    yield EntryEnd("imported", document.end)


def make_trajectory_key(
    prefix: str, named: list[Any], messages: list[Any], document: SourceLine
) -> str:
    """Return a session's key from its names and first messages, since the file has no id."""
    began = list(named)
    for message in messages:
        began.append(drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{prefix}-{digest_text(told)}"


def find_chat_summary(message: JsonDict) -> str | None:
    """Return the summary of a message that has only a marked one."""
    match read_contents(message):
        case [(str(text), _)]:
            found = find_marked_summary(message, text)
            return found.text if found else None
        case _:
            return None


def make_chat_content(
    blocks: Sequence[AnyBlock], outgoing: OutgoingSession
) -> str | list[JsonDict]:
    """Return a message's content for blocks: a string if they are only text."""
    return _simplify_content(make_content_items(blocks, outgoing, _make_image))


def make_answer_content(result: ToolResult, outgoing: OutgoingSession) -> str | list[JsonDict]:
    if isinstance(result.content, str):
        return result.content
    return _simplify_content(make_answer_items(result, outgoing, _make_image))


def make_thought_fields(blocks: Sequence[AnyBlock], outgoing: OutgoingSession) -> JsonDict:
    """Return the model's thoughts as fields of its message."""
    signed, plain = split_thoughts(blocks, outgoing)
    if signed and plain:
        outgoing.count_loss("thoughts without a signature next to signed ones", len(plain))
    if signed:
        return {"thinking_blocks": signed}
    return {"reasoning_content": "\n\n".join(plain)} if plain else {}


def split_thoughts(
    blocks: Sequence[AnyBlock], outgoing: OutgoingSession
) -> tuple[list[JsonDict], list[str]]:
    """Return the thoughts that Anthropic signed, and the texts of the others."""
    signed: list[JsonDict] = []
    plain: list[str] = []
    for block in blocks:
        if block.kind is not Kind.THINKING:
            continue
        if block.native and block.native.provider == "anthropic":
            signed.append(json.loads(block.native.item))
        elif block.native:
            outgoing.count_loss("items that only their provider understands")
        elif block.text:
            plain.append(block.text)
    return signed, plain


def make_call_items(blocks: Sequence[AnyBlock]) -> list[JsonDict]:
    return [
        {
            "id": call.tool_call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in blocks
        if isinstance(call, ToolCall)
    ]


def make_shell_command(call: ToolCall) -> str:
    """Return the call as a shell command, for people who read the trajectory."""
    command = call.parse_arguments().get("command")
    return command if isinstance(command, str) else f"{call.name} {call.arguments}"


def _make_image(media: Media) -> JsonDict:
    return {"type": "image_url", "image_url": {"url": make_media_address(media)}}


def _simplify_content(items: list[JsonDict]) -> str | list[JsonDict]:
    if not items:
        return ""
    alone = len(items) == 1 and items[0].keys() == {"type", "text"}
    return str(items[0]["text"]) if alone else items


class TrajectoryWriter(ABC):
    """The messages of a trajectory that is written; each format has its own form of a message."""

    def __init__(self, outgoing: OutgoingSession, own: str, around_type: str) -> None:
        self.outgoing = outgoing
        self.own = own
        self.around_type = around_type
        self.restorer = EntryRestorer()
        self.around: JsonDict | None = None
        """The source's fields around its messages; None if it had none."""
        self.messages: list[Any] = []
        self.has_own_messages = self.has_new_messages = False
        self._is_prompted = False

    @abstractmethod
    def make_message(self, role: str, content: str | list[JsonDict]) -> JsonDict:
        """Return a message of `system`, `user` or `developer`."""

    @abstractmethod
    def add_message(self, message: OutgoingMessage) -> None:
        """Add a message of cutbank or of another source."""

    def fill(self) -> None:
        for part in group_own_entries(self.outgoing, self.own, with_refused=True):
            if isinstance(part, OutgoingEntry):
                self.restore_entry(part)
                continue
            self.has_new_messages = True
            self._add_prompt()
            match part:
                case OutgoingMessage():
                    self.add_message(part)
                case OutgoingCompaction(summary=None):
                    self.outgoing.count_loss("compactions without a summary")
                case OutgoingCompaction(summary=summary):
                    assert summary, "the other case"
                    text = summary_message.wrap_summary(summary.text, summary.covers)
                    self.messages.append(self.make_message("developer", text) | SUMMARY_MARK)
        self._add_prompt()

    def restore_entry(self, entry: OutgoingEntry) -> None:
        """Restore a message of the source, or the fields around its messages."""
        if entry.remainder is None and read_entry_type(entry) == self.around_type:
            self.around = json.loads(entry.raw or "{}")
            return
        message = self.restorer.restore(entry)
        if message is not None:
            self.has_own_messages = True
            self._is_prompted |= isinstance(message, dict) and message.get("role") == "system"
            self.messages.append(message)

    def _add_prompt(self) -> None:
        prompt = self.outgoing.system_prompt
        if not self._is_prompted and prompt is not None:
            self.messages.append(self.make_message("system", prompt))
        self._is_prompted = True
