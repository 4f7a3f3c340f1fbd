"""Converts the parts of a Gemini API content: texts, calls, responses and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from .....projections.rendering import summary_message
from .. import media_text
from ..fields import JsonDict, MalformedError, get_field, require_field
from ..json_lines import SourceLine
from ..outgoing import OutgoingCompaction, OutgoingSession
from ..placeholders import JsonPath, Placeholder
from ..summary_mark import make_summary_mark, make_user_text

_HARNESS_PREFIXES = (
    "<system-reminder>",
    "<session_context>",
    "<state_snapshot>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)
"""Prefixes of text in the user's role that the user did not type."""
_CONTINUE_PROMPT = "System: Please continue."
_SNAPSHOT = "<state_snapshot>"


def classify_gemini_text(text: str) -> Kind:
    by_harness = text == _CONTINUE_PROMPT or text.lstrip().startswith(_HARNESS_PREFIXES)
    return Kind.DEVELOPER if by_harness else Kind.USER


def is_snapshot(text: str) -> bool:
    """Return whether it is Gemini CLI's summary of a compressed history."""
    return text.lstrip().startswith(_SNAPSHOT)


def read_media_part(part: JsonDict) -> Media | None:
    """Return the media of a part; None if it has none."""
    match part:
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            raw = media_text.require_base64(data, "inlineData.data: ")
            return Media(type=media_text.media_kind_of(mime), mime=mime, data=raw)
        case {"fileData": {"fileUri": str(uri)}}:
            mime = part["fileData"].get("mimeType")
            known = mime if isinstance(mime, str) else "application/octet-stream"
            return Media(type=media_text.media_kind_of(known), mime=known, url=uri)
        case _:
            return None


def require_media_part(part: JsonDict, within: str = "") -> Media:
    media = read_media_part(part)
    if media is None:
        raise MalformedError(f"{within}expected a mimeType and data, or a fileUri")
    return media


def make_media_placeholders(
    item: JsonDict, media: Media, at: JsonPath, part: int | None = None, block: int = 0
) -> list[Placeholder]:
    """Return the place of the bytes in a part, if encoding them gives the same text."""
    if media.data and media_text.is_base64_of(media, item["inlineData"]["data"]):
        return [Placeholder((*at, "inlineData", "data"), "base64", part, block)]
    return []


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    parts: list[Text | Media]
    holes: list[Placeholder]
    is_error: bool


def read_function_response(
    response: JsonDict, at: JsonPath, line: SourceLine, first: int = 0, block: int = 0
) -> FunctionResponse:
    """Read the response at a path; its first part has the index `first` in the block."""
    said = require_field(response, "response", dict, "functionResponse.")
    match said:
        case {"output": str(text)} if len(said) == 1:
            holes = [Placeholder((*at, "response", "output"), "text", first, block)]
        case {"error": str(text)} if len(said) == 1:
            holes = [Placeholder((*at, "response", "error"), "text", first, block)]
        case _:
            text = line.to_json(said)
            holes = [Placeholder((*at, "response"), "json", first, block)]
    parts: list[Text | Media] = [Text(text=text)]
    more = get_field(response, "parts", list, "functionResponse.") or []
    for index, part in enumerate(more):
        media = read_media_part(part) if isinstance(part, dict) else None
        if media:
            place = (*at, "parts", index)
            holes += make_media_placeholders(part, media, place, first + len(parts), block)
            parts.append(media)
    return FunctionResponse(parts, holes, is_error="error" in said)


def make_result_content(parts: list[Text | Media]) -> str | tuple[Text | Media, ...]:
    """Return a tool result's content: a string if it has only text."""
    match parts:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case _:
            return tuple(parts)


def make_inline_part(media: Media) -> JsonDict:
    if media.url:
        return {"fileData": {"mimeType": media.mime, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.mime, "data": media_text.bytes_to_base64(media.data)}}


def make_summary_text(outgoing: OutgoingSession, compacted: OutgoingCompaction) -> str | None:
    """Return the summary in its mark, by which the reader recognizes it; None without a summary."""
    if compacted.summary is None:
        outgoing.count_loss("compactions without a summary")
        return None
    if compacted.boundary.kept and not outgoing.is_view:
        outgoing.count_loss("what compactions kept word for word")
    summary, hidden = compacted.summary, compacted.boundary.hidden
    return summary_message.wrap_summary(summary.text, summary.covers, hidden)


def make_user_part(block: AnyBlock) -> JsonDict:
    if isinstance(block, Block) and block.media:
        return make_inline_part(block.media)
    return {"text": make_user_text(block), **make_summary_mark(block)}


def make_call_arguments(call: ToolCall, outgoing: OutgoingSession) -> JsonDict:
    arguments = call.parse_arguments()
    if "_raw" in arguments:
        outgoing.count_loss("tool arguments that are not a JSON object")
    return arguments


def make_response(
    result: ToolResult, id: object, name: object, outgoing: OutgoingSession
) -> tuple[JsonDict, list[JsonDict]]:
    """Return the response of a tool, and its media."""
    said = {"error" if result.is_error else "output": result.text}
    parts = () if isinstance(result.content, str) else result.content
    if count := sum(isinstance(part, NativePart) for part in parts):
        outgoing.count_loss("parts of tool results in a provider's own form", count)
    media = [make_inline_part(part) for part in parts if isinstance(part, Media)]
    return {"id": id, "name": name, "response": said}, media


def make_spoken_texts(
    blocks: Sequence[AnyBlock], outgoing: OutgoingSession
) -> list[tuple[str, bool]]:
    """Return the texts of the model, each with whether it is a thought."""
    found: list[tuple[str, bool]] = []
    for block in blocks:
        is_thought = block.kind is Kind.THINKING
        if is_thought and block.native:
            outgoing.count_loss("a provider's own reasoning items")
        if block.text:
            found.append((block.text, is_thought))
        elif not is_thought:
            outgoing.count_loss("a provider's own items")
    return found
