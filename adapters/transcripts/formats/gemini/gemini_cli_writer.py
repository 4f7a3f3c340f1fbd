"""Writes a session as Gemini CLI records it."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
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
    read_entry_type,
    to_iso,
)
from ..placeholders import fill_entry
from ..summary_mark import SUMMARY_MARK
from .parts import (
    make_call_arguments,
    make_response,
    make_spoken_texts,
    make_summary_text,
    make_user_part,
)

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
        elif (kind := read_entry_type(entry)) == GEMINI_SESSION_ENTRY:
            self.header = json.loads(block.text)
        elif kind.startswith(GEMINI_MESSAGE_PREFIX) and origin.id:
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
        at = to_iso(get_block_time(first))
        self._add_entry(self._make_id(first.position), "user", at, {"content": content})

    def _add_gemini(self, message: OutgoingMessage) -> None:
        """In one message, text precedes calls, so text after calls starts another message."""
        groups: list[tuple[list[OutgoingBlock], list[OutgoingBlock]]] = [([], [])]
        for said in message.outgoing_blocks:
            if isinstance(said.block, ToolCall):
                groups[-1][1].append(said)
                continue
            if groups[-1][1]:
                groups.append(([], []))
            groups[-1][0].append(said)
        for spoken, called in groups:
            first = (spoken or called)[0]
            at = to_iso(get_block_time(first))
            told = make_spoken_texts([said.block for said in spoken], self.outgoing)
            fields: JsonDict = {
                "content": "\n\n".join(text for text, is_thought in told if not is_thought),
                "thoughts": [
                    {"subject": "", "description": text, "timestamp": at}
                    for text, is_thought in told
                    if is_thought
                ],
            }
            # The last message has the call that the model's answer came from.
            call = message.call if spoken is groups[-1][0] else None
            if call and call.usage:
                fields["tokens"] = _make_tokens(call.usage)
            if known := (call and call.model) or self.outgoing.model:
                fields["model"] = known
            if called:
                fields["toolCalls"] = [self._make_call(said) for said in called]
            self._add_entry(self._make_id(first.position), "gemini", at, fields)

    def _make_call(self, said: OutgoingBlock) -> JsonDict:
        block = said.block
        assert isinstance(block, ToolCall)
        call = self.calls[block.tool_call_id] = {
            "id": block.tool_call_id,
            "name": block.name,
            "args": make_call_arguments(block, self.outgoing),
            "status": "scheduled",
            "timestamp": to_iso(get_block_time(said)),
        }
        return call

    def _add_result(self, said: OutgoingBlock) -> None:
        result = said.block
        assert isinstance(result, ToolResult)
        call = self.calls.pop(result.tool_call_id, None)
        if call is None:
            self.outgoing.count_loss("tool results without a call")
            return
        response, media = make_response(result, call.get("id"), call.get("name"), self.outgoing)
        call |= {
            "status": "error" if result.is_error else "success",
            "result": [{"functionResponse": response}, *media],
            "timestamp": to_iso(get_block_time(said)),
        }

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
