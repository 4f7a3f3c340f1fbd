"""Reads Gemini API histories: arrays of contents, bare or in a checkpoint."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....domain.blocks import Block, BlockKind, Media, ToolCall
from .content import ContentPart, media_from_base64, media_kind_of
from .entry_steps import EntrySteps, digest_text, read_entry
from .fields import JsonDict, MalformedError, get_field, require_field, require_object
from .format import make_document_format
from .json_lines import NestedTooDeeplyError, SourceLine
from .steps import ImportStep, SessionStart

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
            return media_from_base64(data, mime, "inlineData.data: ")
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


FORMAT_NAME = "gemini-history"
_ROLES = ("user", "model", "function")
_NATIVE_PARTS = ("executableCode", "codeExecutionResult")


def _is_history(value: Any) -> bool:
    match value.get("history") if isinstance(value, dict) else value:
        case [{"role": _, "parts": list()}, *_] as contents:
            return any(_is_content(content) for content in contents)
        case _:
            return False


def _is_content(content: Any) -> bool:
    match content:
        case {"role": "user" | "model", "parts": [dict(), *_]}:
            return True
        case _:
            return False


def _read_history(line: SourceLine, _stem: str) -> Iterator[ImportStep]:
    value = line.value
    contents = value["history"] if isinstance(value, dict) else value
    yield SessionStart(_make_key(contents, line))
    reader = _ContentReader(line)
    for number, content in enumerate(contents, 1):
        yield from read_entry(EntrySteps(FORMAT_NAME, line, number, content), reader.read)


class _ContentReader:
    """The state of reading a history. Calls are paired by id, or else by name."""

    def __init__(self, line: SourceLine) -> None:
        self.line = line
        self.open: dict[str, list[str]] = {}
        """Calls without a response: their session ids, oldest first."""
        self.taken: set[str] = set()

    def read(self, entry: EntrySteps) -> None:
        content = require_object(entry.value)
        role = require_field(content, "role", str)
        if role not in _ROLES:
            raise MalformedError(f"role: {role!r} is not known")
        parts = require_field(content, "parts", list)
        entry.id = entry.key = f"{entry.number}:{digest_text(entry.raw)}"
        for index, part in enumerate(parts):
            try:
                self._read_part(entry, require_object(part), role, f"{entry.number}-{index}")
            except MalformedError as error:
                entry.add_problem(f"parts[{index}]: {error}")
        entry.append(entry.id if role == "model" else None)

    def _read_part(self, entry: EntrySteps, part: JsonDict, role: str, place: str) -> None:
        """Add the block of a part, if it has one."""
        match part:
            case {"functionCall": call}:
                self._read_call(entry, require_object(call, "functionCall: "), place)
            case {"functionResponse": response}:
                told = require_object(response, "functionResponse: ")
                self._read_response(entry, told, place)
            case {"text": _}:
                _read_text(entry, part, role)
            case {"inlineData": _} | {"fileData": _} if role == "user":
                media = require_media_part(part)
                entry.blocks.append(Block(kind=BlockKind(media.type), media=media))
            case _ if any(name in part for name in _NATIVE_PARTS):
                entry.blocks.append(Block.note(self.line.to_json(part), name="code"))
            case {"thoughtSignature": _} if len(part) == 1:
                pass
            case _:
                entry.add_unknown("part/" + "+".join(sorted(part)))

    def _read_call(self, entry: EntrySteps, call: JsonDict, place: str) -> None:
        name = require_field(call, "name", str, "functionCall.")
        told = get_field(call, "id", str, "functionCall.") or None
        arguments = get_field(call, "args", dict, "functionCall.") or {}
        known = told if told and told not in self.taken else f"{told or 'call'}-{place}"
        self.taken.add(known)
        self.open.setdefault(told or f"name:{name}", []).append(known)
        text = self.line.to_json(arguments)
        entry.blocks.append(ToolCall(tool_call_id=known, name=name, arguments=text))

    def _read_response(self, entry: EntrySteps, response: JsonDict, place: str) -> None:
        told = get_field(response, "id", str, "functionResponse.") or None
        name = require_field(response, "name", str, "functionResponse.")
        answer = read_function_response(response, self.line)
        waiting = self.open.get(told or f"name:{name}")
        # A response without a call is refused later, and kept as a note.
        known = waiting.pop(0) if waiting else told or f"response-{place}"
        entry.add_tool_result(known, answer.parts, is_error=answer.is_error)


def _read_text(entry: EntrySteps, part: JsonDict, role: str) -> None:
    text = require_field(part, "text", str)
    if role == "model":
        is_thought = part.get("thought") is True
        entry.add_text(BlockKind.THINKING if is_thought else BlockKind.ASSISTANT, text)
    elif is_snapshot(text):
        entry.add_summary(text)
    else:
        entry.add_text(classify_gemini_text(text), text)


def _make_key(contents: list[Any], line: SourceLine) -> str:
    """Return a key from the start of a history, which has no id, up to the model's first text.

    A checkpoint saved later under another name thus continues the same session.
    """
    begins: list[Any] = []
    for content in contents:
        begins.append(content)
        if isinstance(content, dict) and content.get("role") == "model":
            break
    try:
        return f"gemini-{digest_text(line.to_json(begins))}"
    except NestedTooDeeplyError:
        return f"gemini-{line.digest.removeprefix('line:')}"


FORMAT = make_document_format(
    FORMAT_NAME, "histories of the Gemini API", _is_history, _read_history
)
