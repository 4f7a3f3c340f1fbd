"""Writes a session as an array of Gemini API contents."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, Media, NativePart, ToolCall, ToolResult
from ..content.fill_entry import fill_entry
from ..outgoing import OutgoingCompaction, OutgoingEntry, OutgoingMessage, OutgoingSession
from ..reading.fields import JsonDict
from ..summary_mark import SUMMARY_MARK, make_summary_mark
from ..writing import json_bytes
from ..writing.marked_text import make_user_text
from ..writing.own_entries import group_own_entries
from .parts import make_inline_part
from .summary_text import make_summary_text

FORMAT_NAME = "gemini-history"
CHECKPOINT_ENTRY = "checkpoint"
"""The type of the note that holds the rest of the checkpoint."""


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the session as one array, or as its original checkpoint."""
    history = GeminiContents(outgoing)
    history.put_all()
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    contents: Any = history.contents
    if history.around is not None:
        contents = history.around | {"history": contents}
    yield json_bytes.encode_document(contents)


class GeminiContents:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.contents: list[JsonDict] = []
        self.around: JsonDict | None = None
        self.names: dict[str, str] = {}
        """The tool name of each tool call."""

    def put_all(self) -> None:
        """Add the log: own contents unchanged, and what cutbank added."""
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                self._restore(one)
            else:
                self._add_message(one)

    def _restore(self, entry: OutgoingEntry) -> None:
        block = entry.outgoing_blocks[0].block
        for said in entry.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                self.names[said.block.tool_call_id] = said.block.name
        if entry.remainder is not None:
            if not all(said.is_retracted for said in entry.outgoing_blocks):
                self.contents.append(
                    fill_entry(entry.remainder, [said.block for said in entry.outgoing_blocks])
                )
        elif isinstance(block, Block) and block.name == CHECKPOINT_ENTRY:
            self.around = json.loads(entry.raw or "{}")
        elif isinstance(block, Block) and (block.name or "").startswith("content/"):
            self.contents.append(json.loads(entry.raw or "{}"))

    def _add_message(self, message: OutgoingMessage | OutgoingCompaction) -> None:
        if isinstance(message, OutgoingCompaction):
            if text := make_summary_text(self.outgoing, message):
                self.contents.append({"role": "user", "parts": [{"text": text, **SUMMARY_MARK}]})
        elif isinstance(message.outgoing_blocks[0].block, ToolResult):
            self._add_answer(message)
        elif message.role == "assistant":
            if made := [part for block in message.blocks for part in self._make_parts(block)]:
                self.contents.append({"role": "model", "parts": made})
        else:
            self.contents.append({"role": "user", "parts": self._make_prompt(message)})

    def _make_prompt(self, message: OutgoingMessage) -> list[JsonDict]:
        parts: list[JsonDict] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                parts.append(make_inline_part(block.media))
                continue
            parts.append({"text": make_user_text(block), **make_summary_mark(block)})
        return parts

    def _make_parts(self, block: Any) -> Iterator[JsonDict]:
        match block:
            case ToolCall(tool_call_id=id, name=name):
                self.names[id] = name
                arguments = block.parse_arguments()
                if "_raw" in arguments:
                    self.outgoing.count_loss("tool arguments that are no JSON object")
                yield {"functionCall": {"id": id, "name": name, "args": arguments}}
            case Block(kind=Kind.THINKING, text=text, native=native):
                if native:
                    self.outgoing.count_loss("a provider's own reasoning items")
                if text:
                    yield {"text": text, "thought": True}
            case Block(text=text) if text:
                yield {"text": text}
            case _:
                self.outgoing.count_loss("a provider's own items")

    def _add_answer(self, message: OutgoingMessage) -> None:
        """Group the responses to the calls of one content in the next content."""
        parts: list[JsonDict] = []
        for said in message.outgoing_blocks:
            result = said.block
            assert isinstance(result, ToolResult)
            id = result.tool_call_id
            response: JsonDict = {
                "id": id,
                "name": self.names.get(id, "unknown"),
                "response": {"error" if result.is_error else "output": result.text},
            }
            more = () if isinstance(result.content, str) else result.content
            if any(isinstance(part, NativePart) for part in more):
                self.outgoing.count_loss("parts of tool results in a provider's own form")
            if media := [make_inline_part(part) for part in more if isinstance(part, Media)]:
                response["parts"] = media
            parts.append({"functionResponse": response})
        match self.contents[-1:]:
            case [{"role": "user", "parts": [{"functionResponse": _}, *_]} as before]:
                before["parts"] += parts
            case _:
                self.contents.append({"role": "user", "parts": parts})
