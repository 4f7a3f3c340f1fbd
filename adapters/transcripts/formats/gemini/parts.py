"""What the parts of a Gemini API content become: texts, calls, responses and bytes."""

from dataclasses import dataclass

from .....domain.blocks import Kind, Media, Text
from ..content import media_text
from ..content.holes import At, Hole
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional

_NOT_TYPED = (
    "<system-reminder>",
    "<session_context>",
    "<state_snapshot>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)
"""How text begins that has the user's role and that no person typed."""
_GO_ON = "System: Please continue."
_SNAPSHOT = "<state_snapshot>"


def kind_of_user_text(text: str) -> Kind:
    """Whether a person said it."""
    by_harness = text == _GO_ON or text.lstrip().startswith(_NOT_TYPED)
    return Kind.DEVELOPER if by_harness else Kind.USER


def is_snapshot(text: str) -> bool:
    """Whether it is the summary that Gemini CLI puts in the place of a history."""
    return text.lstrip().startswith(_SNAPSHOT)


def media_of(part: Item) -> Media | None:
    """The bytes of a part, or where they are; None where it holds none."""
    match part:
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            raw = media_text.bytes_of(data)
            if raw is None:
                raise MalformedError("inlineData.data: not base64")
            return Media(type=media_text.what_of(mime), mime=mime, data=raw)
        case {"fileData": {"fileUri": str(uri)}}:
            mime = part["fileData"].get("mimeType")
            known = mime if isinstance(mime, str) else "application/octet-stream"
            return Media(type=media_text.what_of(known), mime=known, url=uri)
        case _:
            return None


def media_holes(
    item: Item, media: Media, at: At, part: int | None = None, block: int = 0
) -> list[Hole]:
    """The place of the bytes in a part, where they give the same text again."""
    if media.data and media_text.is_spelt_so(media, item["inlineData"]["data"]):
        return [Hole((*at, "inlineData", "data"), "base64", part, block)]
    return []


@dataclass(frozen=True, slots=True)
class Answer:
    """What a functionResponse says."""

    parts: list[Text | Media]
    holes: list[Hole]
    is_error: bool


def answer_of(response: Item, at: At, line: Line, first: int = 0, block: int = 0) -> Answer:
    """The answer that stands `at` there; in the block its parts are those from `first` on."""
    said = take(response, "response", dict, "functionResponse.")
    match said:
        case {"output": str(text)} if len(said) == 1:
            holes = [Hole((*at, "response", "output"), "text", first, block)]
        case {"error": str(text)} if len(said) == 1:
            holes = [Hole((*at, "response", "error"), "text", first, block)]
        case _:
            text = line.json(said)
            holes = [Hole((*at, "response"), "json", first, block)]
    parts: list[Text | Media] = [Text(text=text)]
    more = take_optional(response, "parts", list, "functionResponse.") or []
    for index, part in enumerate(more):
        media = media_of(part) if isinstance(part, dict) else None
        if media:
            place = (*at, "parts", index)
            holes += media_holes(part, media, place, first + len(parts), block)
            parts.append(media)
    return Answer(parts, holes, is_error="error" in said)


def content_of(parts: list[Text | Media]) -> str | tuple[Text | Media, ...]:
    """A tool result's content: plain text where it is no more than that."""
    match parts:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case _:
            return tuple(parts)


def inline(media: Media) -> Item:
    """Bytes as a part."""
    if media.url:
        return {"fileData": {"mimeType": media.mime, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.mime, "data": media_text.base64_of(media.data)}}
