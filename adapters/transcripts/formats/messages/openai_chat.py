"""OpenAI Chat Completions messages, as many other servers take and write them too."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    NativePart,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from ..claude_code.entries import kind_of_user_text
from ..content.holes import At, Hole
from ..format import Format
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from . import media_read
from .conversation import Asking, Dialect
from .pieces import Made, Piece, Unheard, Wrong, at_text, texts, type_of
from .reader import reader
from .telling import CHAT, recogniser
from .writer import writer

_THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers put what a model thought, as text."""


def pieces(message: Item, line: Line, number: int) -> Iterator[Piece]:
    """What a message holds, in the order in which it was said."""
    match take(message, "role", str):
        case "system" | "developer":
            yield from _content(message, line, Kind.DEVELOPER)
        case "user":
            yield from _content(message, line, Kind.USER)
        case "assistant":
            yield from _assistant(message, line, number)
        case "tool":
            yield _result(message, take(message, "tool_call_id", str), line)
        case "function":
            yield _result(message, _function_id(take(message, "name", str)), line)
        case unheard:
            yield Unheard(f"role/{unheard}", message)


def _assistant(message: Item, line: Line, number: int) -> Iterator[Piece]:
    for field in _THOUGHTS:
        if isinstance(thought := message.get(field), str) and thought:
            yield Made(Block.thinking(thought), (Hole((field,), "text"),))
    yield from _content(message, line, Kind.ASSISTANT)
    if refusal := take_optional(message, "refusal", str):
        yield Made(Block.assistant(refusal, name="refusal"), (Hole(("refusal",), "text"),))
    if isinstance(audio := message.get("audio"), dict):
        spoken = _native(audio, line)
        yield Made(Block.assistant("", name="audio", native=spoken), (Hole(("audio",), "native"),))
    for index, item in enumerate(take_optional(message, "tool_calls", list) or []):
        try:
            yield _call(item, index, number, line)
        except MalformedError as error:
            yield Wrong(f"tool_calls[{index}]: {error}", item)
    if function := take_optional(message, "function_call", dict):
        at: At = ("function_call",)
        yield _called(_function_id(take(function, "name", str)), function, at, line)


def _call(item: Any, index: int, number: int, line: Line) -> Piece:
    if not isinstance(item, dict):
        raise MalformedError("expected an object")
    id = take_optional(item, "id", str) or f"call-{number}-{index}"
    at: At = ("tool_calls", index)
    if custom := take_optional(item, "custom", dict):
        asked = line.json({"input": take(custom, "input", str)})
        call = ToolCall(tool_call_id=id, name=take(custom, "name", str), arguments=asked)
        return Made(call, (Hole((*at, "custom", "input"), "argument", "input"),))
    return _called(id, take(item, "function", dict), (*at, "function"), line)


def _called(id: str, function: Item, at: At, line: Line) -> Made:
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers send what the text would say
        call = ToolCall(
            tool_call_id=id, name=take(function, "name", str), arguments=line.json(arguments)
        )
        return Made(call, (Hole((*at, "arguments"), "json"),))
    call = ToolCall(
        tool_call_id=id,
        name=take(function, "name", str),
        arguments=take(function, "arguments", str),
    )
    return Made(call, (Hole((*at, "arguments"), "text"),))


def _function_id(name: str) -> str:
    """Calls of the older kind have no id: the next message of that function answers them."""
    return f"function-{name}"


def _result(message: Item, id: str, line: Line) -> Piece:
    if not id:
        raise MalformedError("tool_call_id: expected an id, but it is empty")
    content = message.get("content")
    if content is None or isinstance(content, str):
        holes = (Hole(("content",), "text"),) if content else ()
        return Made(ToolResult(tool_call_id=id, content=content or ""), holes)
    parts: list[Part] = []
    holes_of: list[Hole] = []
    for at, item in texts(message, "content"):
        if type_of(item) == "text":
            parts.append(Text(text=take(item, "text", str)))
            holes_of.append(Hole((*at, "text"), "text", len(parts) - 1))
        else:
            parts.append(NativePart(native=_native(item, line)))
            holes_of.append(Hole(at, "native", len(parts) - 1))
    return Made(ToolResult(tool_call_id=id, content=tuple(parts)), tuple(holes_of))


def _content(message: Item, line: Line, kind: Kind) -> Iterator[Piece]:
    for at, item in texts(message, "content"):
        try:
            yield _part(at, item, line, kind)
        except MalformedError as error:
            place = f"[{at[-1]}]" if isinstance(at[-1], int) else ""
            yield Wrong(f"content{place}: {error}", item)


def _part(at: At, item: Any, line: Line, kind: Kind) -> Piece:
    match type_of(item):
        case "text":
            words = take(item, "text", str)
            of = kind_of_user_text({}, words) if kind is Kind.USER else kind
            return Made(Block(kind=of, text=words), (Hole(at_text(at), "text"),))
        case "refusal":
            refusal = Block.assistant(take(item, "refusal", str), name="refusal")
            return Made(refusal, (Hole((*at, "refusal"), "text"),))
        case "image_url":
            return _image(at, take(item, "image_url", dict))
        case "input_audio" | "video_url":
            return _only_here(at, item, line)
        case "file":
            return _file(at, item, line)
        case unheard:
            return Unheard(f"content/{unheard}", item)


def _image(at: At, image: Item) -> Made:
    found, form = media_read.from_url(take(image, "url", str), "image")
    holes = (Hole((*at, "image_url", "url"), form),) if form else ()
    return Made(Block(kind=Kind.IMAGE, media=found), holes)


def _file(at: At, item: Item, line: Line) -> Made:
    file = take(item, "file", dict)
    data = take_optional(file, "file_data", str)
    if data is None or not data.startswith("data:"):
        return _only_here(at, item, line)
    name = take_optional(file, "filename", str)
    found, form = media_read.from_url(data, "document", name)
    holes = (Hole((*at, "file", "file_data"), form),) if form else ()
    return Made(_document(found), holes)


def _document(found: Media) -> AnyBlock:
    return Block(kind=Kind.DOCUMENT, media=found, name=found.name)


def _only_here(at: At, item: Item, line: Line) -> Made:
    """Sound, film, and what was uploaded before: only the provider can do anything with it."""
    block = Block(kind=Kind.DOCUMENT, name=take(item, "type", str), native=_native(item, line))
    return Made(block, (Hole(at, "native"),))


def _native(item: Any, line: Line) -> Native:
    return Native(provider=CHAT, item=line.json(item))


ASKING = Asking(
    system=None,
    settings=frozenset(
        (
            *("audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens"),
            *("max_tokens", "metadata", "modalities", "model", "n", "parallel_tool_calls"),
            *("prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort"),
            *("response_format", "safety_identifier", "seed", "service_tier", "stop", "store"),
            *("stream", "stream_options", "temperature", "tool_choice", "top_logprobs", "top_p"),
            *("user", "verbosity", "web_search_options"),
        )
    ),
)
DIALECT = Dialect(CHAT, ("messages",), pieces, ASKING)

FORMAT = Format(
    name=CHAT,
    what="messages of OpenAI Chat Completions",
    recognises=recogniser(CHAT),
    read=reader(DIALECT),
    write=writer(DIALECT),
    suffix=".json",
)
