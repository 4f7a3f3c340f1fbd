"""Writes a session as an array of Gemini API contents."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, Media, NativePart, ToolCall, ToolResult
from ..content.filling import filled
from ..outgoing import Compacted, Entry, Message, Outgoing
from ..reading.fields import Item
from ..summary_mark import MARK, mark_of
from ..writing import json_out
from ..writing.as_text import user_text
from ..writing.own_entries import own_entries
from .parts import inline
from .said_as_user import summary_text

NAME = "gemini-history"
CHECKPOINT = "checkpoint"
"""The type of the note that holds what stands around the contents."""


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The session as one array, or as the checkpoint that it came from."""
    history = History(outgoing)
    history.put_all()
    if outgoing.system_prompt:
        outgoing.lose("system prompts")
    contents: Any = history.contents
    if history.around is not None:
        contents = history.around | {"history": contents}
    yield json_out.pretty(contents)


class History:
    """The contents of a session on its way out."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.contents: list[Item] = []
        self.around: Item | None = None
        self.names: dict[str, str] = {}
        """Tool calls, each with its tool's name."""

    def put_all(self) -> None:
        """The log: contents as they came, and what cutbank added."""
        for one in own_entries(self.outgoing, NAME):
            if isinstance(one, Entry):
                self._put(one)
            else:
                self._make(one)

    def _put(self, entry: Entry) -> None:
        block = entry.said[0].block
        for said in entry.said:
            if isinstance(said.block, ToolCall):
                self.names[said.block.tool_call_id] = said.block.name
        if entry.rest is not None:
            if not all(said.retracted for said in entry.said):
                self.contents.append(filled(entry.rest, [said.block for said in entry.said]))
        elif isinstance(block, Block) and block.name == CHECKPOINT:
            self.around = json.loads(entry.raw or "{}")
        elif isinstance(block, Block) and (block.name or "").startswith("content/"):
            self.contents.append(json.loads(entry.raw or "{}"))

    def _make(self, message: Message | Compacted) -> None:
        """Messages of another source as contents."""
        if isinstance(message, Compacted):
            if text := summary_text(self.outgoing, message):
                self.contents.append({"role": "user", "parts": [{"text": text, **MARK}]})
        elif isinstance(message.said[0].block, ToolResult):
            self._answer(message)
        elif message.role == "assistant":
            if made := [part for block in message.blocks for part in self._made(block)]:
                self.contents.append({"role": "model", "parts": made})
        else:
            self.contents.append({"role": "user", "parts": self._prompt(message)})

    def _prompt(self, message: Message) -> list[Item]:
        parts: list[Item] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                parts.append(inline(block.media))
                continue
            parts.append({"text": user_text(block), **mark_of(block)})
        return parts

    def _made(self, block: Any) -> Iterator[Item]:
        match block:
            case ToolCall(tool_call_id=id, name=name):
                self.names[id] = name
                arguments = block.parsed()
                if "_raw" in arguments:
                    self.outgoing.lose("tool arguments that are no JSON object")
                yield {"functionCall": {"id": id, "name": name, "args": arguments}}
            case Block(kind=Kind.THINKING, text=text, native=native):
                if native:
                    self.outgoing.lose("a provider's own reasoning items")
                if text:
                    yield {"text": text, "thought": True}
            case Block(text=text) if text:
                yield {"text": text}
            case _:
                self.outgoing.lose("a provider's own items")

    def _answer(self, message: Message) -> None:
        """Responses to the calls of one content stand together in the next."""
        parts: list[Item] = []
        for said in message.said:
            result = said.block
            assert isinstance(result, ToolResult)
            id = result.tool_call_id
            response: Item = {
                "id": id,
                "name": self.names.get(id, "unknown"),
                "response": {"error" if result.is_error else "output": result.text},
            }
            more = () if isinstance(result.content, str) else result.content
            if any(isinstance(part, NativePart) for part in more):
                self.outgoing.lose("parts of tool results in a provider's own form")
            if media := [inline(part) for part in more if isinstance(part, Media)]:
                response["parts"] = media
            parts.append({"functionResponse": response})
        match self.contents[-1:]:
            case [{"role": "user", "parts": [{"functionResponse": _}, *_]} as before]:
                before["parts"] += parts
            case _:
                self.contents.append({"role": "user", "parts": parts})
