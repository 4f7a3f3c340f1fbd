"""Reads the parts of a Gemini API content: texts, calls, responses and bytes."""

from typing import Any, NamedTuple

from .....domain.blocks import BlockKind, Media
from ..content import ContentPart, media_kind_of, require_base64
from ..fields import JsonDict, MalformedError, get_field, require_field
from ..json_lines import SourceLine

_HARNESS_PREFIXES = (
    "<system-reminder>",
    "<session_context>",
    "<state_snapshot>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
)
"""Prefixes of text in the user's role that the user did not type."""
_CONTINUE_PROMPT = "System: Please continue."
_SNAPSHOT = "<state_snapshot>"


def classify_gemini_text(text: str) -> BlockKind:
    by_harness = text == _CONTINUE_PROMPT or text.lstrip().startswith(_HARNESS_PREFIXES)
    return BlockKind.DEVELOPER if by_harness else BlockKind.USER


def is_snapshot(text: str) -> bool:
    """Return whether it is Gemini CLI's summary of a compressed history."""
    return text.lstrip().startswith(_SNAPSHOT)


def read_media_part(part: Any) -> Media | None:
    """Return the media of a part; None if it has none."""
    match part:
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            raw = require_base64(data, "inlineData.data: ")
            return Media(type=media_kind_of(mime), mime=mime, data=raw)
        case {"fileData": {"fileUri": str(uri)} as file}:
            mime = file.get("mimeType")
            known = mime if isinstance(mime, str) else "application/octet-stream"
            return Media(type=media_kind_of(known), mime=known, url=uri)
        case _:
            return None


def require_media_part(part: JsonDict, within: str = "") -> Media:
    media = read_media_part(part)
    if media is None:
        raise MalformedError(f"{within}expected a mimeType and data, or a fileUri")
    return media


class FunctionResponse(NamedTuple):
    parts: list[ContentPart]
    is_error: bool


def read_function_response(response: JsonDict, line: SourceLine) -> FunctionResponse:
    said = require_field(response, "response", dict, "functionResponse.")
    match said:
        case {"output": str(text)} | {"error": str(text)} if len(said) == 1:
            pass
        case _:
            text = line.to_json(said)
    more = get_field(response, "parts", list, "functionResponse.") or []
    media = [one for part in more if (one := read_media_part(part))]
    return FunctionResponse([text, *media], "error" in said)
