"""Says blocks as response items that did not come as ones."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolCall, ToolResult
from .....projections.rendering import media
from .....projections.rendering.tool_calls import distinct_id, tool_name
from ..content.media_text import address_of
from ..outgoing import Outgoing, Said
from ..reading.fields import Item
from ..summary_mark import mark_of
from ..writing.as_text import marked_text
from .entries import PROVIDER
from .restored import own_item

LONGEST_ID = 64
LONGEST_NAME = 64

_HELD_BY_PAIRS = frozenset({"function_call", "custom_tool_call"})
_FUNCTION, _CUSTOM = "function_call_output", "custom_tool_call_output"


class Fresh:
    """Makes items of blocks, and says what a rollout cannot hold of them."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.taken: set[str] = set()
        """Ids of calls that were written."""
        self.ids: dict[str, str] = {}
        """Open calls of which another id was written."""
        self.answers: dict[str, tuple[str, bool]] = {}
        """The type of item that answers an open call, and whether the call was made here."""

    def came(self, call: ToolCall, item: Item) -> None:
        """A call is written as it came."""
        self.taken.add(call.tool_call_id)
        is_custom = item.get("type") == "custom_tool_call"
        self.answers[call.tool_call_id] = (_CUSTOM if is_custom else _FUNCTION, False)

    def answer_to(self, result: ToolResult) -> str | None:
        """The type that a result as it came has to have, where its call did not stay as it came."""
        kind, is_made_here = self.answers.pop(result.tool_call_id, (None, False))
        return kind if is_made_here else None

    def items(self, said: Sequence[Said]) -> Iterator[Item]:
        """The items of a message: one of what was told, one for each piece of a model's."""
        content: list[Item] = []
        role = ""
        for one in said:
            speaker = _speaker(one.block)
            if content and speaker != role:
                yield _message(role, content)
                content = []
            role = speaker
            if role:
                content += self._told(one.block)
                if (own := own_item(one.block)) is not None:
                    yield own
            elif (item := self._made(one)) is not None:
                yield item
        if content:
            yield _message(role, content)

    def _told(self, block: AnyBlock) -> Iterator[Item]:
        if not isinstance(block, Block) or own_item(block) is not None:
            return
        if block.text:
            yield {"type": "input_text", "text": marked_text(block), **mark_of(block)}
        elif block.native and not block.media:
            self.outgoing.lose("items that only another provider understands")
        if block.media:
            yield self._medium(block.media)

    def _medium(self, found: Media) -> Item:
        if found.type == "image":
            return {"type": "input_image", "image_url": address_of(found)}
        self.outgoing.lose("documents")  # at most their words stand there
        return {"type": "input_text", "text": media.words(found) or media.described(found)}

    def _made(self, said: Said) -> Item | None:
        block = said.block
        match block:
            case ToolCall():
                return self._call(said.position, block)
            case ToolResult():
                return self._result(block)
            case Block(kind=Kind.ARTIFACT):
                self.outgoing.lose("artifacts")
            case Block(kind=Kind.NOTE, origin=origin):
                is_raw = origin is not None and origin.entry is None
                what = "entries that only their own agent needs" if is_raw else "notes"
                self.outgoing.lose(what)
            case _:
                return self._written(block)
        return None

    def _written(self, block: Block) -> Item | None:
        """What a model wrote: words or thoughts."""
        own = own_item(block)
        if own is not None and own.get("type") not in _HELD_BY_PAIRS:
            return own
        if block.kind is Kind.THINKING:
            # A thought without its provider's proof would be refused by it.
            self.outgoing.lose("thoughts of models of other providers")
        elif block.text:
            return _message("assistant", [{"type": "output_text", "text": block.text}])
        elif block.native:
            self.outgoing.lose("items that only another provider understands")
        return None

    def _call(self, position: int, call: ToolCall) -> Item:
        id = distinct_id(call.tool_call_id, position, self.taken, LONGEST_ID)
        self.taken.add(id)
        if id != call.tool_call_id:
            self.ids[call.tool_call_id] = id
        own = own_item(call)
        if own is not None and own.get("type") == "custom_tool_call":
            self.answers[id] = (_CUSTOM, True)
            return {**own, "call_id": id}
        self.answers[id] = (_FUNCTION, True)
        name = tool_name(call.name, LONGEST_NAME)
        if name != call.name:
            self.outgoing.lose("names of tools as they were")
        return {
            "type": "function_call",
            "name": name,
            "arguments": call.arguments,
            "call_id": id,
        }

    def _result(self, result: ToolResult) -> Item:
        id = self.ids.pop(result.tool_call_id, result.tool_call_id)
        kind, _ = self.answers.pop(id, (_FUNCTION, True))
        if result.is_error:
            self.outgoing.lose("marks of tool results that are errors")
        output: Any = result.content
        if not isinstance(output, str):
            output = [part for one in output if (part := self._part(one)) is not None]
        return {"type": kind, "call_id": id, "output": output}

    def _part(self, part: Text | Media | NativePart) -> Item | None:
        match part:
            case Text(text=text):
                return {"type": "input_text", "text": text}
            case Media():
                return self._medium(part)
            case NativePart(native=native) if native.provider == PROVIDER:
                item = json.loads(native.item)
                return item if isinstance(item, dict) else None
            case _:
                self.outgoing.lose("parts of tool results that only another provider understands")
                return None


def _speaker(block: AnyBlock) -> str:
    """The role of what is told to the model; nothing for the model's own, and for what is not."""
    match block:
        case Block(kind=Kind.DEVELOPER, name="summary"):
            return "user"
        case Block(kind=Kind.DEVELOPER):
            return "developer"
        case Block(kind=Kind.USER | Kind.IMAGE | Kind.DOCUMENT):
            return "user"
        case _:
            return ""


def _message(role: str, content: list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}
