"""What the events of an OpenHands conversation say, piece by piece."""

from typing import Any

from .....domain.blocks import Block, Kind, Native, ToolCall
from .....projections.rendering.summary_message import SummaryMessage
from ..content.holes import At, Hole
from ..json_lines import Line
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Picture, Pieces, picture_in, picture_of, thinking_block
from ..summary_mark import summary_of

Part = tuple[str | Picture, At]
"""A text or an image, and where it stands."""

_TEXTS = ("output", "content", "message", "text", "error", "rejection_reason")
"""Fields of an observation that say it in words, in the order in which they are read."""


def message(event: dict[str, Any], line: Line) -> Pieces:
    """A message of a person, of the model, or of the program."""
    said = take(event, "llm_message", dict)
    role = take(said, "role", str, "llm_message.")
    pieces = Pieces()
    if role == "assistant":
        _thoughts(said, line, ("llm_message",), pieces)
        kind = Kind.ASSISTANT
    elif role == "user" and event.get("source") == "user":
        kind = Kind.USER
    else:
        kind = Kind.DEVELOPER  # the program's own words, in whatever role
    _content(said.get("content"), ("llm_message", "content"), kind, pieces)
    _content(event.get("extended_content"), ("extended_content",), Kind.DEVELOPER, pieces)
    return pieces


def action(event: dict[str, Any], line: Line) -> Pieces:
    """What the model thought, said and asked of a tool."""
    pieces = Pieces()
    _thoughts(event, line, (), pieces)
    _content(event.get("thought"), ("thought",), Kind.ASSISTANT, pieces)
    call = take(event, "tool_call", dict)
    function, at = call, ("tool_call", "arguments")
    if isinstance(call.get("function"), dict):
        function, at = call["function"], ("tool_call", "function", "arguments")  # type: ignore[assignment]
    made = ToolCall(
        tool_call_id=named(event, "tool_call_id"),
        name=take(event, "tool_name", str),
        arguments=take(function, "arguments", str, "tool_call."),
    )
    pieces.add(made, at)
    return pieces


def observation(event: dict[str, Any], line: Line) -> Pieces:
    """A tool's answer."""
    del line
    said = take(event, "observation", dict)
    pieces = Pieces()
    parts: list[Part] = []
    about = said.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    # What the shell printed is shown between these two.
    _part(metadata, "prefix", ("observation", "metadata"), parts)
    for field in _TEXTS:
        _part(said, field, ("observation",), parts)
    _part(metadata, "suffix", ("observation", "metadata"), parts)
    _screenshot(said, parts)
    _part(event, "extended_content", (), parts)
    failed = said.get("error") or said.get("is_error")
    pieces.result(named(event, "tool_call_id"), parts, is_error=bool(failed))
    return pieces


def rejection(event: dict[str, Any], line: Line) -> Pieces:
    """A person, or a hook, did not let the tool run."""
    del line
    pieces = Pieces()
    reason = take_optional(event, "rejection_reason", str) or ""
    parts: list[Part] = [(reason, ("rejection_reason",))] if reason else []
    pieces.result(named(event, "tool_call_id"), parts, is_error=True)
    return pieces


def error(event: dict[str, Any], line: Line) -> Pieces:
    """The call could not be made."""
    del line
    pieces = Pieces()
    text = take(event, "error", str)
    pieces.result(named(event, "tool_call_id"), [(text, ("error",))], is_error=True)
    return pieces


def summary(event: dict[str, Any], line: Line) -> Pieces:
    """A summary that stands where nothing was said before."""
    del line
    pieces = Pieces()
    pieces.summary(take(event, "summary", str), ("summary",))
    return pieces


def named(event: dict[str, Any], field: str) -> str:
    """An id, which must not be empty."""
    if found := take(event, field, str):
        return found
    raise MalformedError(f"{field}: expected an id, but it is empty")


def exported_summary(event: dict[str, Any]) -> SummaryMessage | None:
    """The summary that the event says, where cutbank wrote it."""
    match event:
        case {"llm_message": {"role": "user", "content": [{"type": "text", "text": str(text)}]}}:
            return summary_of(event, text)
        case _:
            return None


def _thoughts(owner: dict[str, Any], line: Line, at: At, pieces: Pieces) -> None:
    signed = take_optional(owner, "thinking_blocks", list) or []
    plain = take_optional(owner, "reasoning_content", str) or ""
    if not any(isinstance(item, dict) and item.get("thinking") == plain for item in signed):
        pieces.text(Kind.THINKING, plain, (*at, "reasoning_content"))
    for index, item in enumerate(signed):
        if not isinstance(item, dict):
            raise MalformedError(f"thinking_blocks: expected an object, got {json_name(item)}")
        pieces.signed(thinking_block(item, line), (*at, "thinking_blocks", index))
    if item := take_optional(owner, "responses_reasoning_item", dict):
        secret = (*at, "responses_reasoning_item", "encrypted_content")
        if item.get("encrypted_content"):
            hole = Hole(secret, "native", "encrypted_content", len(pieces.blocks))
            pieces.holes.append(hole)
        pieces.add(_reasoning(item, line))


def _reasoning(item: dict[str, Any], line: Line) -> Block:
    told = take_optional(item, "summary", list, "responses_reasoning_item.") or []
    summary = [text for text in told if isinstance(text, str)]
    wire = {
        "type": "reasoning",
        "id": item.get("id"),
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "encrypted_content": item.get("encrypted_content"),
    }
    native = Native(provider="openai-responses", item=line.json(wire))
    return Block.thinking("\n\n".join(summary), native=native)


def _content(content: Any, at: At, kind: Kind, pieces: Pieces) -> None:
    """Texts and images, each a block."""
    for value, place in _items(content, at):
        if isinstance(value, str):
            pieces.text(kind, value, place)
        else:
            pieces.picture(value, place)


def _part(owner: dict[str, Any], field: str, at: At, parts: list[Part]) -> None:
    if isinstance(owner.get(field), str | list):
        parts += _items(owner[field], (*at, field))


def _items(content: Any, at: At) -> list[Part]:
    """Texts, and images with their addresses, each with its place."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [(content, at)]
    if not isinstance(content, list):
        raise MalformedError(f"{at[-1]}: expected a list, got {json_name(content)}")
    found: list[Part] = []
    for index, item in enumerate(content):
        match item:
            case {"type": "text", "text": str(text)}:
                if text:
                    found.append((text, (*at, index, "text")))
            case {"type": "image", "image_urls": list(addresses)}:
                for number, address in enumerate(addresses):
                    if not isinstance(address, str):
                        got = json_name(address)
                        raise MalformedError(f"image_urls: expected an address, got {got}")
                    place = (*at, index, "image_urls", number)
                    found.append((picture_of(address) or address, place))
            case _:
                raise MalformedError(f"{at[-1]}: expected texts and images")
    return found


def _screenshot(said: dict[str, Any], parts: list[Part]) -> None:
    data = said.get("screenshot_data")
    if isinstance(data, str) and data and (picture := picture_in(data, "image/png")):
        parts.append((picture, ("observation", "screenshot_data")))
