"""Converts a response item to blocks: those of OpenAI Responses, and Codex's own."""

from collections.abc import Callable

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    ToolCall,
    ToolResult,
)
from ..content import base64_to_bytes
from ..fields import (
    JsonDict,
    MalformedError,
    UnknownItemError,
    drop_fields,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..json_lines import SourceLine
from ..messages.message_reader import MalformedPart, UnknownPart
from ..messages.openai_responses import read_response_parts
from .entries import CODEX_PROVIDER, PASSTHROUGH_FIELD, is_injected

SERVER_TOOL_TYPES = frozenset(
    {"web_search_call", "mcp_call", "code_interpreter_call", "file_search_call", "computer_call"}
)
"""Calls that the provider answers itself, in the same item."""
RESPONSE_ITEM_TYPES = SERVER_TOOL_TYPES | {
    *("message", "reasoning", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output", "local_shell_call"),
}
OPAQUE_ITEM_TYPES = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "additional_tools"}
)
"""Items that only the provider understands, and that no model wrote."""
RAW_ITEM_TYPES = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Items that no model is sent again."""

MODEL_KINDS = (BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL, BlockKind.ARTIFACT)


def find_call_id(blocks: list[AnyBlock]) -> str | None:
    """Return the id of the call that an item makes or answers."""
    first = blocks[0] if blocks else None
    return first.tool_call_id if isinstance(first, (ToolCall, ToolResult)) else None


def read_item(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    """Return the blocks of a response item, without origins. An item without any is skipped."""
    kind = require_field(item, "type", str)
    if PASSTHROUGH_FIELD in item:
        item = drop_fields(item, PASSTHROUGH_FIELD)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in OPAQUE_ITEM_TYPES:
        return [Block.developer("", name=kind, native=_make_native(item, line))]
    if kind in RAW_ITEM_TYPES:
        return []
    if kind in RESPONSE_ITEM_TYPES:
        return _read_response_item(item, line)
    raise UnknownItemError(f"response_item/{kind}")


def read_communication(item: JsonDict) -> list[AnyBlock]:
    """Read a message of another agent that has its own line."""
    text = require_field(item, "content", str)
    return [Block.developer(text, name=_find_author(item))] if text else []


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CODEX_PROVIDER, item=line.to_json(item))


def _read_response_item(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    for part in read_response_parts(item, line, line.number):
        match part:
            case Block(kind=BlockKind.USER | BlockKind.DEVELOPER, text=text):
                if text:
                    blocks.append(Block(kind=_classify_text(item["role"], text), text=text))
            case Block(kind=BlockKind.THINKING, text=""):
                if get_field(item, "encrypted_content", str):
                    blocks.append(part)
            case Block() | ToolCall() | ToolResult():
                blocks.append(part)
            case UnknownPart(type=kind):
                raise UnknownItemError(f"response_item/{item['type']}/{kind}")
            case MalformedPart(reason=reason):
                raise MalformedError(reason)
    if len(blocks) > 1 and item.get("role") != "assistant":
        # One message of several parts is never split.
        shared = {"message_id": f"line:{line.number}"}
        blocks = [block.model_copy(update=shared) for block in blocks]
    return blocks


def _classify_text(role: str, text: str) -> BlockKind:
    return BlockKind.USER if role == "user" and not is_injected(text) else BlockKind.DEVELOPER


def _read_generated_image(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    # The user looked at it; the surrounding text tells the model about it.
    data = base64_to_bytes(get_field(item, "result", str) or "")
    if not data:
        return _read_response_item(item, line)
    media = Media(type="image", mime="image/png", data=data)
    return [Block(kind=BlockKind.ARTIFACT, media=media, name=item["type"])]


def _read_agent_message(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    author = _find_author(item)
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    texts = [find_text(part, "text") for part in content]
    if None in texts:
        return [Block.developer("", name=author, native=_make_native(item, line))]
    return [Block.developer(text, name=author) for text in texts if text]


def _find_author(item: JsonDict) -> str:
    return get_field(item, "author", str) or "agent"


def _read_tool_search_call(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    id = get_field(item, "call_id", str)
    if not id:
        return _read_response_item(item, line)
    arguments = line.to_json(item.get("arguments"))
    return [ToolCall(tool_call_id=id, name="tool_search", arguments=arguments)]


def _read_tool_search_output(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    call = get_field(item, "call_id", str)
    if not call:
        return [Block.assistant("", name=item["type"], native=_make_native(item, line))]
    tools = line.to_json(require_field(item, "tools", list))
    return [ToolResult(tool_call_id=call, content=tools)]


_READERS: dict[str, Callable[[JsonDict, SourceLine], list[AnyBlock]]] = {
    "agent_message": _read_agent_message,
    "image_generation_call": _read_generated_image,
    "tool_search_call": _read_tool_search_call,
    "tool_search_output": _read_tool_search_output,
}
