"""OpenAI Responses items: messages, reasoning, calls and outputs, each an item of its own."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import (
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
from ..content.holes import At, Form, Hole
from ..format import Format
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from . import media_read
from .conversation import Asking, Dialect
from .pieces import Compaction, Made, Piece, Unheard, Wrong, at_text, texts, type_of
from .reader import reader
from .telling import RESPONSES, recogniser
from .writer import writer

_ASKED = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""Calls of the provider's own tools that somebody else runs, and where they say what to do."""
_ALL: At = ()


def pieces(message: Item, line: Line, number: int) -> Iterator[Piece]:
    """What an item holds."""
    match message.get("type", "message"):
        case "message":
            yield from _message(message, line)
        case "function_call":
            yield _call(message, number)
        case "custom_tool_call":
            yield _custom_call(message, line, number)
        case str(kind) if kind in _ASKED:
            yield _own_call(message, kind, line, number)
        case str(kind) if kind.endswith("_call_output"):
            yield _result(message, line)
        case "reasoning":
            yield _reasoning(message, line)
        case "compaction" | "compaction_summary" | "context_compaction":
            yield Compaction(None, "the summary is encrypted")
        case str(kind) if kind.endswith("_call") or kind.startswith("mcp_"):
            # The provider ran the tool itself: call and result are one item.
            ran = Block.assistant("", name=kind, native=_native(message, line))
            yield Made(ran, (Hole(_ALL, "native"),))
        case unheard:
            yield Unheard(str(unheard), message)


def _message(message: Item, line: Line) -> Iterator[Piece]:
    role = take(message, "role", str)
    kinds = {"user": Kind.USER, "assistant": Kind.ASSISTANT}
    if role not in {"user", "assistant", "system", "developer"}:
        yield Unheard(f"role/{role}", message)
        return
    for at, item in texts(message, "content"):
        try:
            yield _part(at, item, line, kinds.get(role, Kind.DEVELOPER))
        except MalformedError as error:
            place = f"[{at[-1]}]" if isinstance(at[-1], int) else ""
            yield Wrong(f"content{place}: {error}", item)


def _part(at: At, item: Any, line: Line, kind: Kind) -> Piece:
    match type_of(item):
        case "input_text" | "output_text" | "text":
            words = take(item, "text", str)
            of = kind_of_user_text({}, words) if kind is Kind.USER else kind
            return Made(Block(kind=of, text=words), (Hole(at_text(at), "text"),))
        case "refusal":
            refusal = Block.assistant(take(item, "refusal", str), name="refusal")
            return Made(refusal, (Hole((*at, "refusal"), "text"),))
        case "input_image" | "input_file" as what:
            if found := _medium(item):
                media, field, form = found
                holes = (Hole((*at, field), form),) if form else ()
                of = Kind.IMAGE if what == "input_image" else Kind.DOCUMENT
                return Made(Block(kind=of, media=media, name=media.name), holes)
            return _only_here(at, item, line)
        case "input_audio" | "computer_screenshot":
            return _only_here(at, item, line)
        case unheard:
            return Unheard(f"content/{unheard}", item)


def _medium(item: Item) -> tuple[Media, str, Form | None] | None:
    """None where only the provider can find the bytes: a file that was uploaded to it."""
    name = take_optional(item, "filename", str)
    for field in ("image_url", "file_data", "file_url"):
        if address := take_optional(item, field, str):
            if field == "file_data" and not address.startswith("data:"):
                return None
            what: media_read.What = "image" if field == "image_url" else "document"
            media, form = media_read.from_url(address, what, name)
            return media, field, form
    return None


def _only_here(at: At, item: Item, line: Line) -> Made:
    name = take(item, "type", str)
    block = Block(kind=Kind.DOCUMENT, name=name, native=_native(item, line))
    return Made(block, (Hole(at, "native"),))


def _call(message: Item, number: int) -> Made:
    call = ToolCall(
        tool_call_id=take_optional(message, "call_id", str) or f"call-{number}",
        name=take(message, "name", str),
        arguments=take(message, "arguments", str),
    )
    return Made(call, (Hole(("arguments",), "text"),))


def _custom_call(message: Item, line: Line, number: int) -> Made:
    """A call with one text, which need be no JSON."""
    call = ToolCall(
        tool_call_id=take_optional(message, "call_id", str) or f"call-{number}",
        name=take(message, "name", str),
        arguments=line.json({"input": take(message, "input", str)}),
        native=_native(message, line),
    )
    return Made(call, (Hole(_ALL, "native"),))


def _own_call(message: Item, kind: str, line: Line, number: int) -> Made:
    asked = message.get(_ASKED[kind], message.get("actions"))
    call = ToolCall(
        tool_call_id=take_optional(message, "call_id", str) or f"call-{number}",
        name=kind.removesuffix("_call"),
        arguments=line.json(asked if isinstance(asked, dict) else {"actions": asked}),
        native=_native(message, line),
    )
    return Made(call, (Hole(_ALL, "native"),))


def _result(message: Item, line: Line) -> Made:
    id = take(message, "call_id", str)
    if not id:
        raise MalformedError("call_id: expected an id, but it is empty")
    output = message.get("output")
    if isinstance(output, str):
        holes = (Hole(("output",), "text"),) if output else ()
        return Made(ToolResult(tool_call_id=id, content=output), holes)
    if not isinstance(output, list):
        result = ToolResult(tool_call_id=id, content="", native=_native(message, line))
        return Made(result, (Hole(_ALL, "native"),))
    parts: list[Part] = []
    filled: list[Hole] = []
    for at, item in texts(message, "output"):
        part, hole = _output_part(at, item, len(parts), line)
        parts.append(part)
        filled += [hole] if hole else []
    return Made(ToolResult(tool_call_id=id, content=tuple(parts)), tuple(filled))


def _output_part(at: At, item: Any, index: int, line: Line) -> tuple[Part, Hole | None]:
    match type_of(item):
        case "input_text" | "output_text" | "text":
            return Text(text=take(item, "text", str)), Hole((*at, "text"), "text", index)
        case "input_image" | "input_file" if found := _medium(item):
            media, field, form = found
            return media, Hole((*at, field), form, index) if form else None
        case _:
            return NativePart(native=_native(item, line)), Hole(at, "native", index)


def _reasoning(message: Item, line: Line) -> Made:
    said = [
        item["text"]
        for field in ("summary", "content")
        for item in take_optional(message, field, list) or []
        if isinstance(item, dict) and isinstance(item.get("text"), str)
    ]
    thought = Block.thinking("\n\n".join(said), native=_native(message, line))
    return Made(thought, (Hole(_ALL, "native"),))


def _native(item: Any, line: Line) -> Native:
    return Native(provider=RESPONSES, item=line.json(item))


ASKING = Asking(
    system="instructions",
    settings=frozenset(
        (
            *("background", "context_management", "include", "max_output_tokens", "metadata"),
            *("max_tool_calls", "model", "parallel_tool_calls", "prompt", "prompt_cache_key"),
            *("reasoning", "safety_identifier", "service_tier", "store", "stream"),
            *("temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation", "user"),
        )
    ),
)
DIALECT = Dialect(RESPONSES, ("input", "output"), pieces, ASKING, is_of_items=True)

FORMAT = Format(
    name=RESPONSES,
    what="items of OpenAI Responses",
    recognises=recogniser(RESPONSES),
    read=reader(DIALECT),
    write=writer(DIALECT),
    suffix=".json",
)
