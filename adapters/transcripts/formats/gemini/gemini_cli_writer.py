"""Writes a session as Gemini CLI records it."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, ToolCall, ToolResult
from .....domain.session_events import Usage
from .. import json_lines
from ..fields import JsonDict
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    group_own_entries,
    make_session_uuid,
    to_iso,
)
from ..placeholders import fill_entry
from ..summary_mark import SUMMARY_MARK
from .parts import make_inline_part, make_summary_text, make_user_part

FORMAT_NAME = "gemini-cli"
GEMINI_SESSION_ENTRY = "session"
"""The type of the note that holds the document without its messages."""
GEMINI_MESSAGE_PREFIX = "message/"
"""The type prefix of a note that holds the remainder of a message."""


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    recording = GeminiDocument(outgoing)
    recording.put_all()
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    yield json_lines.encode_document(recording.build())


class GeminiDocument:
    """A document that is being built. Of entries with one id, it holds the last version."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.header: JsonDict | None = None
        self.messages: dict[str, JsonDict] = {}
        self.calls: dict[str, JsonDict] = {}
        """Tool calls by their ids in the session."""
        self.pieces: dict[str, list[tuple[JsonDict, AnyBlock]]] = {}
        """The blocks of each message from this format."""
        self.last = to_iso(outgoing.opened_at)

    def build(self) -> JsonDict:
        header = self.header or {
            "sessionId": make_session_uuid(self.outgoing.key),
            "projectHash": sha256(b"/").hexdigest(),
            "startTime": to_iso(self.outgoing.opened_at),
            "lastUpdated": self.last,
            **({"summary": self.outgoing.title} if self.outgoing.title else {}),
        }
        return header | {"messages": list(self.messages.values())}

    def put_all(self) -> None:
        """Add the log: own messages unchanged, and what cutbank added."""
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                self._restore(one)
            else:
                self._add_message(one)

    def _restore(self, entry: OutgoingEntry) -> None:
        said = entry.outgoing_blocks[0]
        block, origin = said.block, said.block.origin
        assert origin, "an entry has an origin"
        if entry.remainder is not None:
            for_good = any(not one.is_retracted for one in entry.outgoing_blocks)
            if for_good and origin.id in self.messages:
                piece = fill_entry(entry.remainder, [one.block for one in entry.outgoing_blocks])
                self.pieces.setdefault(origin.id, []).append((piece, block))
                self._place_piece(self.messages[origin.id], piece, block)
        elif isinstance(block, Block) and block.name == GEMINI_SESSION_ENTRY:
            self.header = json.loads(block.text)
        elif (
            isinstance(block, Block)
            and (block.name or "").startswith(GEMINI_MESSAGE_PREFIX)
            and origin.id
        ):
            self.messages[origin.id] = json.loads(block.text)
            # A repeated message keeps the pieces that were added to it before.
            for piece, held in self.pieces.get(origin.id, []):
                self._place_piece(self.messages[origin.id], piece, held)

    def _place_piece(self, message: JsonDict, piece: JsonDict, block: AnyBlock) -> None:
        field, *index = piece["at"]
        if not index:
            message[field] = piece["value"]
            return
        owner, place = message.setdefault(field, []), index[0]
        owner.extend([None] * (place + 1 - len(owner)))
        value = piece["value"]
        both = isinstance(value, dict) and isinstance(owner[place], dict)
        owner[place] = owner[place] | value if both else value
        if isinstance(block, ToolCall):
            self.calls[block.tool_call_id] = owner[place]

    def _add_message(self, message: OutgoingMessage | OutgoingCompaction) -> None:
        if isinstance(message, OutgoingCompaction):
            if text := make_summary_text(self.outgoing, message):
                id = self._make_id(f"{message.boundary.after}/summary")
                self._add_entry(id, "user", to_iso(message.time), {"content": text, **SUMMARY_MARK})
        elif isinstance(message.outgoing_blocks[0].block, ToolResult):
            for said in message.outgoing_blocks:
                self._add_result(said)
        elif message.role == "assistant":
            self._add_gemini(message)
        else:
            self._add_user(message)

    def _add_user(self, message: OutgoingMessage) -> None:
        first = message.outgoing_blocks[0]
        parts = [make_user_part(block) for block in message.blocks]
        is_text = len(parts) == 1 and parts[0].keys() == {"text"}
        content: Any = parts[0]["text"] if is_text else parts
        self._add_entry(
            self._make_id(first.position),
            "user",
            to_iso(get_block_time(first)),
            {"content": content},
        )

    def _add_gemini(self, message: OutgoingMessage) -> None:
        """In one message, text precedes calls, so text after calls starts another message."""
        spoken: list[OutgoingBlock] = []
        called: list[OutgoingBlock] = []
        for said in message.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                called.append(said)
                continue
            if called:
                self._add_answer(spoken, called, None)
                spoken, called = [], []
            spoken.append(said)
        usage = message.call.usage if message.call else None
        self._add_answer(spoken, called, usage, (message.call and message.call.model) or None)

    def _add_answer(
        self,
        spoken: list[OutgoingBlock],
        called: list[OutgoingBlock],
        usage: Usage | None,
        model: str | None = None,
    ) -> None:
        first = (spoken or called)[0]
        at = to_iso(get_block_time(first))
        texts: list[str] = []
        thoughts: list[JsonDict] = []
        for said in spoken:
            block = said.block
            assert isinstance(block, Block)
            if block.kind is not Kind.THINKING:
                if block.text:
                    texts.append(block.text)
                else:
                    self.outgoing.count_loss("a provider's own items")
                continue
            if block.native:
                self.outgoing.count_loss("a provider's own reasoning items")
            if block.text:
                thoughts.append({"subject": "", "description": block.text, "timestamp": at})
        fields: JsonDict = {"content": "\n\n".join(texts), "thoughts": thoughts}
        fields |= {"tokens": _make_tokens(usage)} if usage else {}
        if known := model or self.outgoing.model:
            fields["model"] = known
        if calls := [self._make_call(said) for said in called]:
            fields["toolCalls"] = calls
        self._add_entry(self._make_id(first.position), "gemini", at, fields)

    def _make_call(self, said: OutgoingBlock) -> JsonDict:
        block = said.block
        assert isinstance(block, ToolCall)
        arguments = block.parse_arguments()
        if "_raw" in arguments:
            self.outgoing.count_loss("tool arguments that are not a JSON object")
        call: JsonDict = {
            "id": block.tool_call_id,
            "name": block.name,
            "args": arguments,
            "status": "scheduled",
            "timestamp": to_iso(get_block_time(said)),
        }
        self.calls[block.tool_call_id] = call
        return call

    def _add_result(self, said: OutgoingBlock) -> None:
        result = said.block
        assert isinstance(result, ToolResult)
        call = self.calls.pop(result.tool_call_id, None)
        if call is None:
            self.outgoing.count_loss("tool results without a call")
            return
        response: JsonDict = {
            "id": call.get("id"),
            "name": call.get("name"),
            "response": {"error" if result.is_error else "output": result.text},
        }
        parts: list[JsonDict] = [{"functionResponse": response}]
        for part in () if isinstance(result.content, str) else result.content:
            if isinstance(part, Media):
                parts.append(make_inline_part(part))
            elif isinstance(part, NativePart):
                self.outgoing.count_loss("parts of tool results in a provider's own form")
        call |= {"status": "error" if result.is_error else "success", "result": parts}
        call["timestamp"] = to_iso(get_block_time(said))

    def _add_entry(self, id: str, kind: str, at: str, fields: JsonDict) -> None:
        self.messages[id] = {"id": id, "timestamp": at, "type": kind} | fields
        self.last = max(self.last, at)

    def _make_id(self, place: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{place}"))


def _make_tokens(usage: Usage) -> JsonDict:
    read, cached, thought = usage.input or 0, usage.cache_read or 0, usage.reasoning or 0
    prompt = read + cached + (usage.cache_write or 0)
    output = max(0, (usage.output or 0) - thought)
    return {
        "input": prompt,
        "output": output,
        "cached": cached,
        "thoughts": thought,
        "tool": 0,
        "total": prompt + output + thought,
    }
