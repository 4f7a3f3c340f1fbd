"""Defines what a turn is made of: blocks, tool calls and tool results, as they were recorded."""

import json
from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict, Unpack

from pydantic import Field, JsonValue, field_serializer, field_validator

from .event import StoredBytes, StoredValue


class BlockKind(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    IMAGE = "image"
    DOCUMENT = "document"
    ARTIFACT = "artifact"
    NOTE = "note"
    DEVELOPER = "developer"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


UNSENT_KINDS = frozenset({BlockKind.ARTIFACT, BlockKind.NOTE})
"""Kinds that are kept for people and programs; a model never sees them."""

PROMPT_KINDS = frozenset({BlockKind.USER, BlockKind.IMAGE, BlockKind.DOCUMENT})

ASSISTANT_KINDS = frozenset({BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL})


class Native(StoredValue):
    """A provider's own item, which must go back to that provider byte for byte or not at all."""

    provider: str
    """The wire format: `anthropic`, `openai-responses`, ..."""
    item: str
    """The item as JSON text, exactly as it was received."""


class Origin(StoredValue):
    """The place in a source from which a block was imported."""

    format: str
    id: str | None = None
    time: str | None = None
    entry: str | None = None
    """The rest of the source's entry as JSON text, as imports kept it before they kept sources."""
    line: int | None = None
    """The number of its line in the source, or of its entry if the source has no lines."""
    follows: str | None = None
    """The source's id of the entry before it, as imports stored it before they kept sources."""
    refused: str | None = None
    """Why the entry could not be interpreted and is kept raw."""
    segment: str | None = None
    """The digest, in hex, of the segment of kept source text that holds its line."""
    span: tuple[int, int] | None = None
    """The first byte of the line in the segment, and the byte after its last one."""


class Text(StoredValue):
    type: Literal["text"] = "text"
    text: str


class Media(StoredValue):
    """An image or a document: bytes, or an address that the provider can read."""

    type: Literal["image", "document"]
    mime: str
    data: StoredBytes = b""
    url: str | None = None
    name: str | None = None

    @field_serializer("data", when_used="json")
    def _as_base64(self, data: bytes) -> str:
        return b64encode(data).decode("ascii")


class NativePart(StoredValue):
    type: Literal["native"] = "native"
    native: Native


ResultPart = Text | Media | NativePart


class BlockMetadata(StoredValue):
    """The fields that every piece of a turn has."""

    message_id: str | None = None
    """The pieces of one provider message share it and are never separated."""
    native: Native | None = None
    origin: Origin | None = None


class Block(BlockMetadata):
    kind: BlockKind
    text: str = ""
    media: Media | None = None
    """The content of an image, document or artifact."""
    name: str | None = None
    """Its author, path or title."""

    @field_validator("kind")
    @classmethod
    def _not_a_tool_kind(cls, kind: BlockKind) -> BlockKind:
        if kind in {BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT}:
            raise ValueError(f"a {kind} is a ToolCall or a ToolResult, not a Block")
        return kind

    @classmethod
    def user(cls, text: str, **fields: Unpack["BlockFields"]) -> Self:
        return cls(kind=BlockKind.USER, text=text, **fields)

    @classmethod
    def assistant(cls, text: str, **fields: Unpack["BlockFields"]) -> Self:
        return cls(kind=BlockKind.ASSISTANT, text=text, **fields)

    @classmethod
    def thinking(
        cls, text: str, *, signature: str | None = None, **fields: Unpack["BlockFields"]
    ) -> Self:
        """Make a block of a model's thinking.

        `signature` is Anthropic's: with it, views send the thinking back word for word. Another
        provider's own item goes into `native`. Without either, no provider accepts the thinking
        again.
        """
        if signature is not None:
            if fields.get("native") is not None:
                raise ValueError("thinking takes a signature or a native item, not both")
            item = {"type": "thinking", "thinking": text, "signature": signature}
            native = Native(provider="anthropic", item=json.dumps(item, ensure_ascii=False))
            fields = {**fields, "native": native}
        return cls(kind=BlockKind.THINKING, text=text, **fields)

    @classmethod
    def image(
        cls,
        source: bytes | str,
        *,
        mime: str | None = None,
        text: str = "",
        **fields: Unpack["BlockFields"],
    ) -> Self:
        """Make an image of a prompt from its bytes, or from a URL that the provider can read.

        `mime` is detected for PNG, JPEG, GIF and WebP bytes; give it for others.
        """
        media = _make_media("image", source, mime, fields.get("name"))
        return cls(kind=BlockKind.IMAGE, text=text, media=media, **fields)

    @classmethod
    def document(
        cls,
        source: bytes | str,
        *,
        mime: str | None = None,
        text: str = "",
        **fields: Unpack["BlockFields"],
    ) -> Self:
        """Make a file of a prompt from its bytes, or from a URL that the provider can read.

        `mime` is detected for PDF bytes; give it for others.
        """
        media = _make_media("document", source, mime, fields.get("name"))
        return cls(kind=BlockKind.DOCUMENT, text=text, media=media, **fields)

    @classmethod
    def developer(cls, text: str, **fields: Unpack["BlockFields"]) -> Self:
        """Make a block of instructions or reminders that neither the user nor the model wrote."""
        return cls(kind=BlockKind.DEVELOPER, text=text, **fields)

    @classmethod
    def note(cls, text: str, **fields: Unpack["BlockFields"]) -> Self:
        """Make a block that stays in the log and is never sent to a model."""
        return cls(kind=BlockKind.NOTE, text=text, **fields)


class BlockFields(TypedDict, total=False):
    name: str | None
    message_id: str | None
    native: Native | None
    origin: Origin | None


_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
    (b"%PDF-", "application/pdf"),
)


def _make_media(
    kind: Literal["image", "document"], source: bytes | str, mime: str | None, name: str | None
) -> Media:
    if isinstance(source, str):
        any_mime = "image/*" if kind == "image" else "application/octet-stream"
        return Media(type=kind, mime=mime or any_mime, url=source, name=name)
    mime = mime or next((of for start, of in _SIGNATURES if source.startswith(start)), None)
    if mime is None:
        raise ValueError(
            f"the bytes of this {kind} do not tell its type: give mime=, e.g. mime='text/plain'"
        )
    return Media(type=kind, mime=mime, data=source, name=name)


class ToolCall(BlockMetadata):
    """A request to a tool. `arguments` is JSON text, kept as the model wrote it."""

    kind: ClassVar[BlockKind] = BlockKind.TOOL_CALL

    tool_call_id: str = Field(min_length=1)
    name: str
    arguments: str = "{}"

    if TYPE_CHECKING:
        # What the validator below accepts: arguments as text, or as the object that the text
        # encodes.
        def __init__(
            self,
            *,
            tool_call_id: str,
            name: str,
            arguments: str | Mapping[str, Any] = "{}",
            message_id: str | None = None,
            native: Native | None = None,
            origin: Origin | None = None,
        ) -> None: ...

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_json_text(cls, arguments: Any) -> Any:
        # Keep text: a parsed tree could not hold NaN, duplicate keys or a provider's own spelling.
        return (
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        )

    @property
    def text(self) -> str:
        return self.arguments

    def parse_arguments(self) -> dict[str, JsonValue]:
        """Return the arguments as an object; text that is not a JSON object is under `_raw`."""
        try:
            tree = json.loads(self.arguments)
        except ValueError:
            return {"_raw": self.arguments}
        return tree if isinstance(tree, dict) else {"_raw": self.arguments}


class ToolResult(BlockMetadata):
    """The answer to a tool call, linked by `tool_call_id`."""

    kind: ClassVar[BlockKind] = BlockKind.TOOL_RESULT

    tool_call_id: str = Field(min_length=1)
    content: str | tuple[ResultPart, ...] = ""
    """Plain text, or parts in the order in which the tool gave them."""
    is_error: bool = False

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def media(self) -> tuple[Media, ...]:
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, Media))


AnyBlock = Block | ToolCall | ToolResult
