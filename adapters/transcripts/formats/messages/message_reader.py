"""Reads the messages of one session in the dialect of their provider."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.blocks import (
    ASSISTANT_KINDS,
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    Origin,
    ResultPart,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....projections.rendering import exchanges
from .. import media_text
from ..claude_code.content import UnknownItemError
from ..claude_code.entries import classify_user_text
from ..entry_steps import digest_text
from ..fields import JsonDict, MalformedError, json_name, require_field
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..media_text import MediaKind
from ..placeholders import JsonPath, Placeholder, PlaceholderForm, make_remainder
from ..steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReportedCall,
    RequestParameters,
    SourceCompaction,
    SourceProblem,
    UnknownEntry,
)
from ..summary_mark import find_marked_summary


@dataclass(frozen=True, slots=True)
class ReadBlock:
    block: AnyBlock
    placeholders: tuple[Placeholder, ...]


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
    item: Any


MessagePart = ReadBlock | ProviderCompaction | UnknownPart | MalformedPart


def read_texts(owner: JsonDict, field: str) -> Iterator[tuple[JsonPath, Any]]:
    """Yield the items of a content that is a text or a list, each with its path; none for null.

    A text is one item of type `text`; its path is that of the text itself.
    """
    content = owner.get(field)
    if content is None:
        return
    if isinstance(content, str):
        yield (field,), {"type": "text", "text": content}
        return
    for index, item in enumerate(require_field(owner, field, list)):
        yield (field, index), item


def read_content_parts(
    owner: JsonDict, field: str, read: Callable[[JsonPath, Any], MessagePart]
) -> Iterator[MessagePart]:
    """Yield the parts of a content, each read with `read` from its path and item."""
    for at, item in read_texts(owner, field):
        try:
            yield read(at, item)
        except UnknownItemError as unknown:
            yield UnknownPart(f"content/{unknown}", item)
        except MalformedError as error:
            place = f"[{at[-1]}]" if isinstance(at[-1], int) else ""
            yield MalformedPart(f"{field}{place}: {error}", item)


def hold(
    block: AnyBlock,
    at: JsonPath,
    form: PlaceholderForm | None = "text",
    part: str | None = None,
) -> ReadBlock:
    """Return a block with the path of what it holds; without a form, all of it stays there."""
    return ReadBlock(block, (Placeholder(at, form, part),) if form else ())


def make_text_part(at: JsonPath, item: JsonDict, kind: Kind) -> ReadBlock:
    """Return a text; one in the user's role may be the harness's."""
    words = require_field(item, "text", str)
    of = classify_user_text({}, words) if kind is Kind.USER else kind
    return hold(Block(kind=of, text=words), text_path(at))


def make_refusal_part(at: JsonPath, item: JsonDict) -> ReadBlock:
    refusal = Block.assistant(require_field(item, "refusal", str), name="refusal")
    return hold(refusal, (*at, "refusal"))


def make_native_part(at: JsonPath, item: JsonDict, native: Native) -> ReadBlock:
    """Return audio, video or an uploaded file, which only the provider can use."""
    name = require_field(item, "type", str)
    return hold(Block(kind=Kind.DOCUMENT, name=name, native=native), at, "native")


def read_result(
    id: str,
    owner: JsonDict,
    field: str,
    read_part: Callable[[JsonPath, Any], tuple[ResultPart, JsonPath, PlaceholderForm | None]],
) -> ReadBlock:
    """Return the result of a call, whose content is a text, or a list read with `read_part`."""
    content = owner.get(field)
    if content is None or isinstance(content, str):
        result = ToolResult(tool_call_id=id, content=content or "")
        return hold(result, (field,), "text" if content else None)
    parts: list[ResultPart] = []
    holes: list[Placeholder] = []
    for index, (at, item) in enumerate(read_texts(owner, field)):
        part, path, form = read_part(at, item)
        parts.append(part)
        holes += [Placeholder(path, form, index)] if form else []
    return ReadBlock(ToolResult(tool_call_id=id, content=tuple(parts)), tuple(holes))


def text_path(at: JsonPath) -> JsonPath:
    return (*at, "text") if isinstance(at[-1], int) else at


def read_media_url(
    url: str, what: MediaKind, name: str | None = None
) -> tuple[Media, PlaceholderForm | None]:
    """Return the media at a URL, and its encoding; None if the URL stays."""
    if not url.startswith("data:"):
        mime = "image/*" if what == "image" else "application/octet-stream"
        return Media(type=what, mime=mime, url=url, name=name), None
    held = media_text.split_data_url(url)
    if held is None:
        mime = url.removeprefix("data:").partition(",")[0].partition(";")[0]
        return Media(type=what, mime=mime or "text/plain", url=url, name=name), None
    mime, encoded = held
    data, is_exact = decode_media(encoded)
    return Media(type=what, mime=mime, data=data, name=name), "address" if is_exact else None


def decode_media(encoded: str) -> tuple[bytes, bool]:
    """Return the bytes, and whether encoding them gives the same text."""
    data = media_text.require_base64(encoded)
    return data, media_text.bytes_to_base64(data) == encoded


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
    read_call_fields: Callable[[str], JsonDict | None] | None = None
    """Returns the call fields of a message in JSON text; None if it has none."""


@dataclass
class MessageReader:
    """The state of a session at a message."""

    dialect: Dialect
    format: str
    line: SourceLine
    """The document with the messages, or the line of one."""
    is_on_a_line: bool
    has_system_prompt: bool = False
    """Whether the system prompt is known: only the first message can set it."""
    has_messages: bool = False
    first_answer_id: str | None = None
    """The model's current answer, if each piece is an item."""
    steps: list[ImportStep] = field(default_factory=list)

    def read(self, number: int, message: Any, offset: int) -> list[ImportStep]:
        self.steps = []
        try:
            outcome = self._read(number, message)
        except NestedTooDeeplyError as error:
            outcome = self._report_problem(number, str(error), "", None)
        self.steps.append(EntryEnd(outcome, offset))
        return self.steps

    def _read(self, number: int, message: Any) -> str:
        raw = self.line.to_json(message)
        key = f"{number}:{digest_text(raw)}"
        if not isinstance(message, dict):
            return self._report_problem(
                number, f"expected an object, got {json_name(message)}", key, raw
            )
        try:
            pieces = list(self.dialect.read_parts(message, self.line, number))
        except MalformedError as error:
            return self._report_problem(number, str(error), key, raw)
        is_first = number == 1 and not self.has_system_prompt
        if is_first and (prompt := find_system_prompt(message, pieces)):
            self.has_system_prompt = True
            asked = RequestParameters(f"{key}:asked", system_prompt=prompt)
            self.steps += [asked, self._make_raw_entry(key, raw, number)]
            return "imported"
        made = self._read_blocks(pieces, key, message)
        if made:
            self._append_blocks(message, number, key, made, raw)
        else:
            self.first_answer_id = None
        outcome = self._report_unread(number, key, raw, pieces, is_empty=not made)
        if not made and outcome == "imported":
            self.steps.append(self._make_raw_entry(key, raw, number))
        return outcome

    def _read_blocks(
        self, pieces: list[MessagePart], key: str, message: JsonDict
    ) -> list[ReadBlock]:
        """Return the blocks; compactions precede the other content of their message."""
        made: list[ReadBlock] = []
        for index, piece in enumerate(pieces):
            match piece:
                case ProviderCompaction(summary=summary, partial_reason=partial):
                    made += self._add_compaction(f"{key}:{index}", summary, partial)
                case ReadBlock(block=Block(kind=Kind.USER, text=text) as block, placeholders=holes):
                    if told := find_marked_summary(message, text):
                        made += self._add_compaction(f"{key}:{index}", told.text, _KEPT_UNKNOWN)
                    elif text.startswith(_CALL_NOTE_PREFIX) and text.endswith("]"):
                        words = block.model_copy(update={"kind": Kind.DEVELOPER})
                        made.append(ReadBlock(words, holes))
                    elif text != exchanges.OPENING_TEXT and _has_content(block):
                        made.append(piece)
                case ReadBlock(block=ToolResult(text=text) as block):
                    if text == exchanges.NO_OUTPUT_TEXT:
                        made.append(ReadBlock(block.model_copy(update={"content": ""}), ()))
                    elif not _is_missing_result_note(text):
                        made.append(piece)
                case ReadBlock(block=block) if _has_content(block):
                    made.append(piece)
        return made

    def _add_compaction(
        self, key: str, summary: str | None, partial: str | None
    ) -> list[ReadBlock]:
        """Add the compaction of what precedes; return the summary as a block if nothing does."""
        if self.has_messages:
            found = SourceCompaction(
                f"{key}:compacted", Trigger.THRESHOLD, summary, partial_reason=partial
            )
            self.steps.append(found)
            return []
        return [ReadBlock(Block.developer(summary, name="summary"), ())] if summary else []

    def _append_blocks(
        self, message: JsonDict, number: int, key: str, made: list[ReadBlock], raw: str
    ) -> None:
        holes = [
            replace(hole, block_index=index)
            for index, one in enumerate(made)
            for hole in one.placeholders
        ]
        rest: str | None = self.line.to_json(make_remainder(message, holes))
        shared = self._message_id(number, [one.block for one in made])
        if self.dialect.read_call_fields and (call := self.dialect.read_call_fields(raw)):
            self.steps.append(ReportedCall(f"{key}:call", call, first_answer_id=key))
        for index, one in enumerate(made):
            origin = Origin(format=self.format, entry=rest, line=number)
            message_id = None if isinstance(one.block, ToolResult) else shared
            block = one.block.model_copy(update={"origin": origin, "message_id": message_id})
            self.steps.append(Append(f"{key}:{index}", block, key))
            rest = None
        self.has_messages = True

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

    def _report_unread(
        self, number: int, key: str, raw: str, pieces: list[MessagePart], *, is_empty: bool
    ) -> str:
        """Report what could not be read. Keep it in the remainder of the message, or, without
        blocks, keep the whole message.
        """
        outcome = "imported"
        for index, piece in enumerate(pieces):
            whole = is_empty and outcome == "imported"
            if isinstance(piece, MalformedPart):
                if whole:
                    outcome = self._report_problem(number, piece.reason, key, raw)
                else:
                    name, text = f"{key}:{index}:refused", self.line.to_json(piece.item)
                    outcome = self._report_problem(number, piece.reason, name, text, is_part=True)
            elif isinstance(piece, UnknownPart):
                text = raw if whole else self.line.to_json(piece.item)
                if whole or not is_empty:
                    name = key if whole else f"{key}:{index}:unknown"
                    self.steps.append(UnknownEntry(name, piece.type, text, line=number))
                outcome = "unknown" if outcome == "imported" else outcome
        return outcome

    def _report_problem(
        self, number: int, reason: str, key: str, raw: str | None, *, is_part: bool = False
    ) -> str:
        where = (self.line.number, f"message {number}: {reason}")
        where = where if self.is_on_a_line else (number, reason)
        self.steps.append(SourceProblem(*where, key if raw else None, raw, is_part=is_part))
        return "error"

    def _make_raw_entry(self, key: str, raw: str, number: int) -> RawEntry:
        return RawEntry(key, "message", raw, line=number)


def find_system_prompt(message: JsonDict, pieces: list[MessagePart]) -> str | None:
    """Return the system prompt of a first message that has no other content."""
    said = [one.block.text for one in pieces if isinstance(one, ReadBlock)]
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
