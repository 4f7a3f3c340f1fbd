"""Reads the messages of one session in the dialect of their provider."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import (
    ASSISTANT_KINDS,
    AnyBlock,
    Block,
    BlockKind,
    BlockMetadata,
    Native,
    ResultPart,
    ToolCall,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....projections.rendering import exchanges
from ..claude_code.entries import classify_user_text
from ..entry_steps import EntrySteps, digest_text
from ..fields import JsonDict, MalformedError, UnknownItemError, require_field, require_object
from ..json_lines import SourceLine
from ..steps import (
    ImportStep,
    ReportedCall,
    RequestParameters,
    SourceCompaction,
    SourceProblem,
)
from ..summary_mark import find_marked_summary


@dataclass(frozen=True, slots=True)
class ProviderCompaction:
    """A provider's replacement for everything before it."""

    summary: str | None
    partial_reason: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownPart:
    type: str
    item: Any


@dataclass(frozen=True, slots=True)
class MalformedPart:
    reason: str


MessagePart = AnyBlock | ProviderCompaction | UnknownPart | MalformedPart


def read_texts(owner: JsonDict, field: str) -> list[Any]:
    """Return the items of a content that is a text or a list of texts; none for null."""
    content = owner.get(field)
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return require_field(owner, field, list)


def read_content_parts(
    owner: JsonDict, field: str, read: Callable[[Any], MessagePart]
) -> Iterator[MessagePart]:
    """Yield the parts of a content, each read with `read` from its item."""
    for index, item in enumerate(read_texts(owner, field)):
        try:
            yield read(item)
        except UnknownItemError as unknown:
            yield UnknownPart(f"content/{unknown}", item)
        except MalformedError as error:
            place = f"[{index}]" if isinstance(owner[field], list) else ""
            yield MalformedPart(f"{field}{place}: {error}")


def make_text_block(item: JsonDict, kind: BlockKind) -> Block:
    """Return a text; one in the user's role may be the harness's."""
    words = require_field(item, "text", str)
    return Block(kind=classify_user_text({}, words) if kind is BlockKind.USER else kind, text=words)


def make_refusal(item: JsonDict) -> Block:
    return Block.assistant(require_field(item, "refusal", str), name="refusal")


def make_native_block(item: JsonDict, native: Native) -> Block:
    """Return audio, video or an uploaded file, which only the provider can use."""
    return Block(kind=BlockKind.DOCUMENT, name=require_field(item, "type", str), native=native)


def read_result(
    id: str, owner: JsonDict, field: str, read_part: Callable[[Any], ResultPart]
) -> ToolResult:
    """Return the result of a call, whose content is a text, or a list read with `read_part`."""
    content = owner.get(field)
    if content is None or isinstance(content, str):
        return ToolResult(tool_call_id=id, content=content or "")
    return ToolResult(tool_call_id=id, content=tuple(map(read_part, read_texts(owner, field))))


_CALL_NOTE_PREFIX = "[from the tool call "
"""The prefix of text before media that a tool's message could not hold."""
_KEPT_UNKNOWN = "the source does not say what it kept"


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    """The name of the format, the renderer and the provider."""
    message_lists: tuple[str, ...]
    read_parts: Callable[[JsonDict, SourceLine, int], Iterator[MessagePart]]
    settings: tuple[str, ...] = ()
    """The fields of a request's settings."""
    system_field: str | None = None
    """The field of the system prompt; None if it is a message."""
    tools_path: tuple[str, ...] = ("tools",)
    is_of_items: bool = False
    """Whether each piece of a model's answer is an item of its own."""
    read_call_fields: Callable[[JsonDict], JsonDict | None] | None = None
    """Returns the call fields of a message; None if it has none."""


@dataclass
class MessageReader:
    """The state of a session at a message."""

    dialect: Dialect
    format: str
    line: SourceLine
    """The document with the messages, or the line of one."""
    is_on_a_line: bool = False
    has_system_prompt: bool = False
    """Whether the system prompt is known: only the first message can set it."""
    has_messages: bool = False
    first_answer_id: str | None = None
    """The model's current answer, if each piece is an item."""

    def read_all(self, messages: list[Any]) -> Iterator[ImportStep]:
        """Yield the steps of all messages."""
        for number, message in enumerate(messages, 1):
            entry = EntrySteps(self.format, self.line, number, message)
            try:
                self._read(entry)
            except MalformedError as error:
                self._report_problem(entry, str(error))
            yield from entry.finish()

    def _read(self, entry: EntrySteps) -> None:
        entry.key = f"{entry.number}:{digest_text(entry.raw)}"
        message = require_object(entry.value)
        pieces = list(self.dialect.read_parts(message, self.line, entry.number))
        is_first = entry.number == 1 and not self.has_system_prompt
        if is_first and (prompt := find_system_prompt(message, pieces)):
            self.has_system_prompt = True
            entry.add(RequestParameters(f"{entry.key}:asked", system_prompt=prompt))
            return
        for piece in pieces:
            if isinstance(piece, MalformedPart):
                self._report_problem(entry, piece.reason)
            elif isinstance(piece, UnknownPart):
                entry.add_unknown(piece.type)
        self._read_blocks(entry, pieces, message)
        if entry.blocks:
            shared = self._message_id(entry.number, entry.blocks)
            if self.dialect.read_call_fields and (call := self.dialect.read_call_fields(message)):
                entry.add(ReportedCall(f"{entry.key}:call", call, first_answer_id=entry.key))
            entry.append(shared)
            self.has_messages = True
        else:
            self.first_answer_id = None
            if any(isinstance(step, SourceCompaction) for step in entry.steps):
                entry.mark_compaction("message")
            elif not entry.steps:
                entry.skip()

    def _read_blocks(self, entry: EntrySteps, pieces: list[MessagePart], message: JsonDict) -> None:
        """Add the blocks; compactions precede the other content of their message."""
        for index, piece in enumerate(pieces):
            match piece:
                case ProviderCompaction(summary=summary, partial_reason=partial):
                    self._add_compaction(entry, index, summary, partial)
                case Block(kind=BlockKind.USER, text=text):
                    if told := find_marked_summary(message, text):
                        self._add_compaction(entry, index, told.text, _KEPT_UNKNOWN)
                    elif text.startswith(_CALL_NOTE_PREFIX) and text.endswith("]"):
                        developer = {"kind": BlockKind.DEVELOPER}
                        entry.blocks.append(piece.model_copy(update=developer))
                    elif text != exchanges.OPENING_TEXT and _has_content(piece):
                        entry.blocks.append(piece)
                case ToolResult(text=text):
                    if text == exchanges.NO_OUTPUT_TEXT:
                        entry.blocks.append(piece.model_copy(update={"content": ""}))
                    elif not _is_missing_result_note(text):
                        entry.blocks.append(piece)
                case Block() | ToolCall() if _has_content(piece):
                    entry.blocks.append(piece)

    def _add_compaction(
        self, entry: EntrySteps, index: int, summary: str | None, partial: str | None
    ) -> None:
        """Add the compaction of what precedes; the summary is a block if nothing does."""
        if self.has_messages:
            key = f"{entry.key}:{index}:compacted"
            entry.add(SourceCompaction(key, Trigger.THRESHOLD, summary, partial_reason=partial))
        else:
            entry.add_summary(summary or "")

    def _message_id(self, number: int, blocks: list[AnyBlock]) -> str | None:
        results = [block for block in blocks if isinstance(block, ToolResult)]
        if results and blocks[0].kind not in ASSISTANT_KINDS:
            self.first_answer_id = None
            return None
        if not self.dialect.is_of_items:
            return f"message-{number}"
        if blocks[0].kind not in ASSISTANT_KINDS:
            self.first_answer_id = None
            return f"message-{number}" if len(blocks) > 1 else None
        self.first_answer_id = self.first_answer_id or f"answer-{number}"
        return self.first_answer_id

    def _report_problem(self, entry: EntrySteps, reason: str) -> None:
        if self.is_on_a_line:
            entry.add(SourceProblem(self.line.number, f"message {entry.number}: {reason}"))
        else:
            entry.add_problem(reason)


def find_system_prompt(message: JsonDict, pieces: list[MessagePart]) -> str | None:
    """Return the system prompt of a first message that has no other content."""
    said = [one.text for one in pieces if isinstance(one, BlockMetadata)]
    role = message.get("role", message.get("source"))
    if message.get("extra") == {"role": "developer"}:
        return None  # cutbank's form for harness messages where a format has no role for them
    is_prompt = role == "system" and len(said) == len(pieces)
    return "\n".join(said) or None if is_prompt else None


def _is_missing_result_note(text: str) -> bool:
    """Return whether a view wrote it in place of a missing result."""
    was_abandoned = text.startswith("[abandoned: ") and text.endswith("]")
    return was_abandoned or text == exchanges.NO_RESULT_TEXT


def _has_content(block: AnyBlock) -> bool:
    return bool(block.text or block.native or not isinstance(block, Block) or block.media)
