"""Writes a session as Gemini CLI records it."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..content.filling import filled
from ..content.moments import iso, said_at
from ..outgoing import Compacted, Entry, Message, Outgoing, Said
from ..reading.fields import Item
from ..summary_mark import MARK, mark_of
from ..writing import json_out
from ..writing.as_text import user_text
from ..writing.own_entries import own_entries
from .parts import inline
from .said_as_user import summary_text

NAME = "gemini-cli"
SESSION = "session"
"""The type of the note that holds the document without its messages."""
MESSAGE = "message/"
"""How the type begins of a note that holds a message without what blocks hold of it."""


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The session as one document."""
    recording = Recording(outgoing)
    recording.put_all()
    if outgoing.system_prompt:
        outgoing.lose("system prompts")
    yield json_out.pretty(recording.whole())


class Recording:
    """A document in the making. What came under one id twice is there once, as it came last."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.header: Item | None = None
        self.messages: dict[str, Item] = {}
        self.calls: dict[str, Item] = {}
        """Tool calls by the ids that the session knows them by."""
        self.pieces: dict[str, list[tuple[Item, AnyBlock]]] = {}
        """What blocks hold of each message that came in the format."""
        self.last = iso(outgoing.opened)

    def whole(self) -> Item:
        """The document."""
        header = self.header or {
            "sessionId": _session_id(self.outgoing.key),
            "projectHash": sha256(b"/").hexdigest(),
            "startTime": iso(self.outgoing.opened),
            "lastUpdated": self.last,
            **({"summary": self.outgoing.title} if self.outgoing.title else {}),
        }
        return header | {"messages": list(self.messages.values())}

    def put_all(self) -> None:
        """The log: messages as they came, and what cutbank added."""
        for one in own_entries(self.outgoing, NAME):
            if isinstance(one, Entry):
                self._put(one)
            else:
                self._make(one)

    def _put(self, entry: Entry) -> None:
        said = entry.said[0]
        block, origin = said.block, said.block.origin
        assert origin, "an entry has an origin"
        if entry.rest is not None:
            for_good = any(not one.retracted for one in entry.said)
            if for_good and origin.id in self.messages:
                piece = filled(entry.rest, [one.block for one in entry.said])
                self.pieces.setdefault(origin.id, []).append((piece, block))
                self._place(self.messages[origin.id], piece, block)
        elif isinstance(block, Block) and block.name == SESSION:
            self.header = json.loads(block.text)
        elif isinstance(block, Block) and (block.name or "").startswith(MESSAGE) and origin.id:
            self.messages[origin.id] = json.loads(block.text)
            # A message that was told again keeps the pieces that were put in it before.
            for piece, held in self.pieces.get(origin.id, []):
                self._place(self.messages[origin.id], piece, held)

    def _place(self, message: Item, piece: Item, block: AnyBlock) -> None:
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

    def _make(self, message: Message | Compacted) -> None:
        """Messages of another source, as Gemini CLI would record them."""
        if isinstance(message, Compacted):
            if text := summary_text(self.outgoing, message):
                id = self._id(f"{message.boundary.after}/summary")
                self._add(id, "user", iso(message.time), {"content": text, **MARK})
        elif isinstance(message.said[0].block, ToolResult):
            for said in message.said:
                self._answer(said)
        elif message.role == "assistant":
            self._gemini(message)
        else:
            self._user(message)

    def _user(self, message: Message) -> None:
        first = message.said[0]
        parts: list[Item] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                parts.append(inline(block.media))
                continue
            parts.append({"text": user_text(block), **mark_of(block)})
        is_text = len(parts) == 1 and parts[0].keys() == {"text"}
        content: Any = parts[0]["text"] if is_text else parts
        self._add(self._id(first.position), "user", iso(said_at(first)), {"content": content})

    def _gemini(self, message: Message) -> None:
        """A message says its words before its calls: what comes after calls is another one."""
        spoken: list[Said] = []
        called: list[Said] = []
        for said in message.said:
            if isinstance(said.block, ToolCall):
                called.append(said)
                continue
            if called:
                self._one(spoken, called, None)
                spoken, called = [], []
            spoken.append(said)
        usage = message.call.usage if message.call else None
        self._one(spoken, called, usage, (message.call and message.call.model) or None)

    def _one(
        self,
        spoken: list[Said],
        called: list[Said],
        usage: Usage | None,
        model: str | None = None,
    ) -> None:
        first = (spoken or called)[0]
        at = iso(said_at(first))
        texts: list[str] = []
        thoughts: list[Item] = []
        for said in spoken:
            block = said.block
            assert isinstance(block, Block)
            if block.kind is not Kind.THINKING:
                if block.text:
                    texts.append(block.text)
                else:
                    self.outgoing.lose("a provider's own items")
                continue
            if block.native:
                self.outgoing.lose("a provider's own reasoning items")
            if block.text:
                thoughts.append({"subject": "", "description": block.text, "timestamp": at})
        fields: Item = {"content": "\n\n".join(texts), "thoughts": thoughts}
        fields |= {"tokens": _tokens(usage)} if usage else {}
        if known := model or self.outgoing.model:
            fields["model"] = known
        if calls := [self._call(said) for said in called]:
            fields["toolCalls"] = calls
        self._add(self._id(first.position), "gemini", at, fields)

    def _call(self, said: Said) -> Item:
        block = said.block
        assert isinstance(block, ToolCall)
        arguments = block.parsed()
        if "_raw" in arguments:
            self.outgoing.lose("tool arguments that are no JSON object")
        call: Item = {
            "id": block.tool_call_id,
            "name": block.name,
            "args": arguments,
            "status": "scheduled",
            "timestamp": iso(said_at(said)),
        }
        self.calls[block.tool_call_id] = call
        return call

    def _answer(self, said: Said) -> None:
        result = said.block
        assert isinstance(result, ToolResult)
        call = self.calls.pop(result.tool_call_id, None)
        if call is None:
            self.outgoing.lose("tool results without a call")
            return
        response: Item = {
            "id": call.get("id"),
            "name": call.get("name"),
            "response": {"error" if result.is_error else "output": result.text},
        }
        parts: list[Item] = [{"functionResponse": response}]
        for part in () if isinstance(result.content, str) else result.content:
            if isinstance(part, Media):
                parts.append(inline(part))
            elif isinstance(part, NativePart):
                self.outgoing.lose("parts of tool results in a provider's own form")
        call |= {"status": "error" if result.is_error else "success", "result": parts}
        call["timestamp"] = iso(said_at(said))

    def _add(self, id: str, kind: str, at: str, fields: Item) -> None:
        self.messages[id] = {"id": id, "timestamp": at, "type": kind} | fields
        self.last = max(self.last, at)

    def _id(self, place: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{place}"))


def _tokens(usage: Usage) -> Item:
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


def _session_id(key: str) -> str:
    try:
        return str(UUID(key))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, key))
