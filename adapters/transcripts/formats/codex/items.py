"""What a response item becomes: blocks, and the rest of the item that no block holds."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .....domain.blocks import Block, Kind
from ..json_lines import Line
from ..reading.fields import Item, an_object, take, take_optional
from . import calls
from .entries import is_injected
from .pictures import decoded, generated, picture
from .read import Piece, Read, native, without

TEXTS = frozenset({"input_text", "output_text", "text"})
SERVED = frozenset(
    {"web_search_call", "image_generation_call", "mcp_call", "code_interpreter_call"}
    | {"file_search_call", "computer_call"}
)
"""Calls that the provider answers itself, in the same item."""
UNSAID = frozenset({"compaction", "compaction_summary", "context_compaction", "additional_tools"})
"""Items that only the provider understands, and that no model wrote."""
RAW = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Items that are kept as they are: no model is sent them again."""


class UnheardError(ValueError):
    """An item, or a part of one, of a type that this reader does not know."""


def read_item(item: Item, line: Line) -> Read:
    """What is in a response item. Without pieces it is to be kept as it is."""
    kind = take(item, "type", str)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in SERVED:
        said = partial(Block.assistant, "", name=kind)
        return native(item, line, said, by_model=True, served=True)
    if kind in UNSAID:
        return native(item, line, partial(Block.developer, "", name=kind))
    if kind in RAW:
        return Read(item)
    raise UnheardError(kind)


def _message(item: Item, line: Line) -> Read:
    role = take(item, "role", str)
    content = take(item, "content", list)
    rests: list[Any] = []
    pieces: list[Piece] = []
    for part in content:
        piece = _piece(part, role)
        if piece is not None:
            pieces.append(piece)
            part = {name: part[name] for name in part if name not in ("text", "image_url")}  # noqa: PLW2901 - what is left of it
        rests.append(part)
    if len(pieces) > 1 and role != "assistant":
        # One message of several parts is never parted.
        pieces = [partial(piece, message_id=f"line:{line.number}") for piece in pieces]
    return Read({**item, "content": rests}, pieces, by_model=role == "assistant")


def _piece(part: Any, role: str) -> Piece | None:
    part = an_object(part, "content: ")
    kind = take(part, "type", str, "content: ")
    if kind in TEXTS:
        text = take(part, "text", str, "content: ")
        return partial(Block, kind=_kind(role, text), text=text) if text else None
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return partial(Block, kind=Kind.IMAGE, media=picture(url))
    raise UnheardError(f"message/{kind}")


def _kind(role: str, text: str) -> Kind:
    if role == "assistant":
        return Kind.ASSISTANT
    return Kind.USER if role == "user" and not is_injected(text) else Kind.DEVELOPER


def _reasoning(item: Item, line: Line) -> Read:
    texts = _texts(item, "summary") or _texts(item, "content")
    if not texts and not take_optional(item, "encrypted_content", str):
        return Read(item)
    return native(item, line, partial(Block.thinking, "\n\n".join(texts)), by_model=True)


def _texts(item: Item, field: str) -> list[str]:
    parts = take_optional(item, field, list) or []
    return [take(an_object(part, f"{field}: "), "text", str, f"{field}: ") for part in parts]


def _image(item: Item, line: Line) -> Read:
    # The person looked at it; what the model knows of it stands around it.
    found = decoded(take_optional(item, "result", str) or "")
    if not found:
        said = partial(Block.assistant, "", name="image_generation_call")
        return native(item, line, said, by_model=True, served=True)
    piece = partial(Block, kind=Kind.ARTIFACT, media=generated(found), name="image_generation_call")
    return Read(without(item, "result"), [piece], by_model=True, served=True)


def _agent_message(item: Item, line: Line) -> Read:
    author = take_optional(item, "author", str) or "agent"
    content = [an_object(part, "content: ") for part in take(item, "content", list)]
    if all(_is_text(part) for part in content):
        pieces = [partial(Block.developer, part["text"], name=author) for part in content]
        return Read({**item, "content": [without(part, "text") for part in content]}, pieces)
    return native(item, line, partial(Block.developer, "", name=author))


def _is_text(part: Item) -> bool:
    match part:
        case {"type": str(kind), "text": str()}:
            return kind in TEXTS
        case _:
            return False


def read_communication(item: Item) -> Read:
    """What another agent said to this one, where it is a line of its own."""
    text = take(item, "content", str)
    author = take_optional(item, "author", str) or "agent"
    if not text:
        return Read(item)
    return Read(without(item, "content"), [partial(Block.developer, text, name=author)])


_READERS: dict[str, Callable[[Item, Line], Read]] = {
    "agent_message": _agent_message,
    "custom_tool_call": calls.custom_tool_call,
    "custom_tool_call_output": calls.output,
    "function_call": calls.function_call,
    "function_call_output": calls.output,
    "image_generation_call": _image,
    "local_shell_call": calls.local_shell_call,
    "message": _message,
    "reasoning": _reasoning,
    "tool_search_call": calls.tool_search_call,
    "tool_search_output": calls.tool_search_output,
}
