"""Says in pi's words what came from elsewhere: messages, results, compactions, an entry each."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolCall, ToolResult
from .....domain.messages import Role
from .....domain.session_events import ModelCalled
from ..content.media_text import base64_of
from ..content.moments import iso, milliseconds, said_at
from ..outgoing import Compacted, Message, Outgoing
from ..reading.fields import Item
from .providers import Provider, provider_of, stop_reason_of
from .signatures import is_redacted, signature_of

NO_SUMMARY = "[Earlier messages left the context, and no summary of them was made.]"


@dataclass(frozen=True, slots=True)
class Written:
    """An entry with blocks that was written: where those stand in the log, and it in the file."""

    first: int
    last: int
    id: str | None
    place: int


@dataclass
class Composer:
    """Writes the entries of one session, each after the one before."""

    outgoing: Outgoing
    ids: set[str]
    """Ids that the file has already."""
    parent: str | None = None
    is_list: bool = False
    """Whether the file is of the first version, whose entries have no ids."""
    place: int = 0
    """How many entries the file has, its header among them."""
    written: list[Written] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    """Tools by the ids of their calls."""

    def entries(self, said: Iterator[Message | Compacted]) -> Iterator[Item]:
        """The entries that say this."""
        for one in said:
            if isinstance(one, Compacted):
                if one.boundary.trims or one.boundary.replacements:
                    self._lose_shortened()
                if one.summary or one.boundary.hidden:
                    yield self._compacted(one)
                continue
            first = one.said[0]
            entry = self.entry(f"{first.position}", said_at(first), **self._said(one))
            yield entry
            last = max(piece.position for piece in one.said)
            self.written.append(Written(first.position, last, self.parent, self.place - 1))

    def entry(self, seed: str, time: datetime, /, **fields: Any) -> Item:
        """An entry that follows the last one; its seed tells it from all others of the session."""
        pointers: Item = {}
        if not self.is_list:
            pointers = {"id": self._fresh(seed), "parentId": self.parent}
            self.parent = pointers["id"]
        self.place += 1
        return pointers | {"timestamp": iso(time)} | fields

    def _fresh(self, seed: str) -> str:
        key, salt = self.outgoing.key, 0
        while True:
            salted = f"{key}\n{seed}\n{salt}".encode(errors="replace")
            id = blake2b(salted, digest_size=4).hexdigest()
            if id not in self.ids:
                self.ids.add(id)
                return id
            salt += 1

    def _said(self, message: Message) -> Item:
        at = milliseconds(said_at(message.said[0]))
        match message.role:
            case Role.TOOL_RESULT:
                return {"type": "message", "message": self._result(message.blocks[0], at)}
            case Role.ASSISTANT:
                return {"type": "message", "message": self._answer(message, at)}
            case Role.DEVELOPER:
                name = next(filter(None, map(_name, message.blocks)), None)
                content = self._shown(message.blocks)
                return {
                    "type": "custom_message",
                    "customType": name or "developer",
                    "content": content,
                    "display": False,
                }
            case _:
                content = self._shown(message.blocks)
                return {
                    "type": "message",
                    "message": {"role": "user", "content": content, "timestamp": at},
                }

    def _shown(self, blocks: list[AnyBlock]) -> list[Item]:
        items: list[Item] = []
        for block in blocks:
            media = getattr(block, "media", None)
            if isinstance(media, Media):
                items.append(self._media(media))
            elif isinstance(block, Block) and block.kind in (Kind.IMAGE, Kind.DOCUMENT):
                self.outgoing.lose("media that only their provider can find")
                items.append(_text(f"[{block.kind}: {block.name or 'without a name'}]"))
            else:
                items.append(_text(block.text))
        return items

    def _media(self, media: Media) -> Item:
        if media.type == "image" and media.data:
            data = base64_of(media.data)
            return {"type": "image", "data": data, "mimeType": media.mime}
        self.outgoing.lose("documents" if media.type == "document" else "addresses of images")
        return _text(f"[{media.type}: {media.name or media.url or media.mime}]")

    def _result(self, block: AnyBlock, at: int) -> Item:
        assert isinstance(block, ToolResult), "results are messages of their own"
        parts = block.content if not isinstance(block.content, str) else (Text(text=block.content),)
        content: list[Item] = []
        for part in parts:
            match part:
                case Text(text=text):
                    content.append(_text(text))
                case Media():
                    content.append(self._media(part))
                case NativePart():
                    self.outgoing.lose("providers' own parts of tool results")
        return {
            "role": "toolResult",
            "toolCallId": block.tool_call_id,
            "toolName": self.calls.pop(block.tool_call_id, "unknown"),
            "content": content,
            "isError": block.is_error,
            "timestamp": at,
        }

    def _answer(self, message: Message, at: int) -> Item:
        call = message.call
        model = (call and call.model) or self.outgoing.model or "unknown"
        provider = provider_of(model, message.blocks)
        content = [self._piece(block, provider) for block in message.blocks]
        called = any(isinstance(block, ToolCall) for block in message.blocks)
        answer = {
            "role": "assistant",
            "content": [item for item in content if item],
            "api": provider.api,
            "provider": provider.name,
            "model": model,
            "usage": _usage(call),
            "stopReason": stop_reason_of(call.stop_reason if call else None, called=called),
            "timestamp": at,
        }
        return answer | {"responseId": call.call_id} if call else answer

    def _piece(self, block: AnyBlock, provider: Provider) -> Item | None:
        if isinstance(block, ToolCall):
            self.calls[block.tool_call_id] = block.name
            return {
                "type": "toolCall",
                "id": block.tool_call_id,
                "name": block.name,
                "arguments": self._arguments(block),
            }
        native = block.native
        if block.kind is Kind.THINKING:
            thought: Item = {"type": "thinking", "thinking": block.text}
            signature = signature_of(native) if native else None
            if native and signature and native.provider == provider.native:
                redacted = {"redacted": True} if is_redacted(native) else {}
                return {**thought, "thinkingSignature": signature, **redacted}
            if native:
                self.outgoing.lose("signatures of thoughts")
            return thought if block.text else None
        if native:
            self.outgoing.lose("providers' own items")
        return _text(block.text) if block.text or not native else None

    def _arguments(self, block: ToolCall) -> Item:
        try:
            arguments = json.loads(block.arguments, parse_constant=str)
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            return arguments
        self.outgoing.lose("arguments that are no JSON object")
        return {"_raw": block.arguments}

    def _compacted(self, one: Compacted) -> Item:
        boundary, summary = one.boundary, one.summary
        kept = self._kept_from(one)
        seed = f"compaction {boundary.originator_version}"
        place = self.place
        entry = self.entry(
            seed,
            one.time,
            type="compaction",
            summary=summary.text if summary else NO_SUMMARY,
            tokensBefore=boundary.pre_tokens,
        )
        if self.is_list:
            return entry | {"firstKeptEntryIndex": kept.place if kept else place}
        # It keeps nothing where it names itself: no entry before it is that one.
        return entry | {"firstKeptEntryId": kept.id if kept else entry["id"]}

    def _lose_shortened(self) -> None:
        if not self.outgoing.is_view:
            self.outgoing.lose("messages that were shortened by a compaction")

    def _kept_from(self, one: Compacted) -> Written | None:
        """The oldest entry from which on all stayed; what stayed before it cannot be said."""
        kept, found, lost = one.boundary.kept, None, 0
        is_whole = True
        for written in reversed(self.written):
            stayed = written.first > one.boundary.after or any(
                position in kept for position in range(written.first, written.last + 1)
            )
            is_whole = is_whole and stayed
            if is_whole:
                found = written
            else:
                lost += stayed
        if lost:
            self.outgoing.lose("kept messages that are older than ones that left", lost)
        return found


def _text(text: str) -> Item:
    return {"type": "text", "text": text}


def _name(block: AnyBlock) -> str | None:
    return block.name if isinstance(block, Block) else None


def _usage(call: ModelCalled | None) -> Item:
    usage = call.usage if call else None
    counts = {
        "input": (usage and usage.input) or 0,
        "output": (usage and usage.output) or 0,
        "cacheRead": (usage and usage.cache_read) or 0,
        "cacheWrite": (usage and usage.cache_write) or 0,
    }
    cost = {**dict.fromkeys(counts, 0), "total": (call and call.cost_usd) or 0}
    reasoning = {"reasoning": usage.reasoning} if usage and usage.reasoning else {}
    return {**counts, **reasoning, "totalTokens": sum(counts.values()), "cost": cost}
