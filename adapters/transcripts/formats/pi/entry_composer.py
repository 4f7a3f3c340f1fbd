"""Builds pi entries for messages, results and compactions of other sources."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from .....domain.item import Role
from .....domain.session_events import ModelCalled
from .....projections.rendering import sendable
from ..fields import JsonDict
from ..outgoing import (
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    get_usage,
    to_iso,
    to_milliseconds,
)
from .entries import ANTHROPIC_PROVIDER, RESPONSES_PROVIDER, make_signature_fields


@dataclass(frozen=True, slots=True)
class PiProvider:
    """A provider and its interface, by pi's names."""

    name: str
    api: str
    native_provider: str | None = None
    """The provider of the native items in its thoughts."""


_ANTHROPIC = PiProvider("anthropic", "anthropic-messages", ANTHROPIC_PROVIDER)
_OPENAI = PiProvider("openai", "openai-responses", RESPONSES_PROVIDER)
_GOOGLE = PiProvider("google", "google-generative-ai")
_UNKNOWN = PiProvider("unknown", "openai-completions")

_BY_MODEL = (
    (re.compile(r"claude", re.IGNORECASE), _ANTHROPIC),
    (re.compile(r"\b(gpt|codex|o\d)", re.IGNORECASE), _OPENAI),
    (re.compile(r"gemini", re.IGNORECASE), _GOOGLE),
)
_STOP_REASONS = {
    "stop": ("stop", "end_turn", "stop_sequence", "completed", "pause_turn"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
    "toolUse": ("toolUse", "tool_use", "tool_calls", "function_call"),
    "error": ("error", "refusal", "content_filter", "failed"),
    "aborted": ("aborted", "cancelled", "incomplete"),
}
_REASON_BY_SOURCE = {
    theirs: ours for ours, all_theirs in _STOP_REASONS.items() for theirs in all_theirs
}


def find_pi_provider(model: str, blocks: Sequence[AnyBlock]) -> PiProvider:
    """Return the provider of the message's native items, or else of the model's name."""
    for block in blocks:
        if block.native and make_signature_fields(block.native):
            return _ANTHROPIC if block.native.provider == ANTHROPIC_PROVIDER else _OPENAI
    return next((found for named, found in _BY_MODEL if named.search(model)), _UNKNOWN)


def to_pi_stop_reason(reason: str | None, *, called: bool) -> str:
    return _REASON_BY_SOURCE.get(reason or "", "toolUse" if called else "stop")


_NO_SUMMARY_TEXT = "[Earlier messages left the context, and no summary of them was made.]"


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """A written entry, its place in the file, and the positions of its blocks."""

    first: int
    last: int
    id: str | None
    index: int


@dataclass
class EntryComposer:
    outgoing: OutgoingSession
    ids: set[str]
    parent: str | None = None
    is_list: bool = False
    """Whether the file has the first version's format, without ids."""
    next_index: int = 0
    """The number of entries in the file, including its header."""
    written_entries: list[WrittenEntry] = field(default_factory=list)
    call_ids: dict[str, str] = field(default_factory=dict)

    def compose_entries(
        self, said: Iterator[OutgoingMessage | OutgoingCompaction]
    ) -> Iterator[JsonDict]:
        for one in said:
            if isinstance(one, OutgoingCompaction):
                self.outgoing.count_shortened(one.boundary)
                if one.summary or one.boundary.hidden:
                    yield self._compose_compaction(one)
                continue
            first = one.outgoing_blocks[0]
            entry = self.compose_entry(
                f"{first.position}", get_block_time(first), **self._compose_message(one)
            )
            yield entry
            last = max(piece.position for piece in one.outgoing_blocks)
            self.written_entries.append(
                WrittenEntry(first.position, last, self.parent, self.next_index - 1)
            )

    def compose_entry(self, seed: str, time: datetime, /, **fields: Any) -> JsonDict:
        """Return an entry that follows the last one; `seed` makes its id unique in the session."""
        pointers: JsonDict = {}
        if not self.is_list:
            pointers = {"id": self._new_id(seed), "parentId": self.parent}
            self.parent = pointers["id"]
        self.next_index += 1
        return pointers | {"timestamp": to_iso(time)} | fields

    def _new_id(self, seed: str) -> str:
        key, salt = self.outgoing.key, 0
        while True:
            salted = f"{key}\n{seed}\n{salt}".encode(errors="replace")
            id = blake2b(salted, digest_size=4).hexdigest()
            if id not in self.ids:
                self.ids.add(id)
                return id
            salt += 1

    def _compose_message(self, message: OutgoingMessage) -> JsonDict:
        at = to_milliseconds(get_block_time(message.outgoing_blocks[0]))
        match message.role:
            case Role.TOOL_RESULT:
                return {"type": "message", "message": self._compose_result(message.blocks[0], at)}
            case Role.ASSISTANT:
                return {"type": "message", "message": self._compose_answer(message, at)}
            case Role.DEVELOPER:
                name = next(filter(None, map(_tool_name, message.blocks)), None)
                content = self._compose_content(message.blocks)
                return {
                    "type": "custom_message",
                    "customType": name or "developer",
                    "content": content,
                    "display": False,
                }
            case _:
                content = self._compose_content(message.blocks)
                return {
                    "type": "message",
                    "message": {"role": "user", "content": content, "timestamp": at},
                }

    def _compose_content(self, blocks: list[AnyBlock]) -> list[JsonDict]:
        items: list[JsonDict] = []
        for block in blocks:
            media = getattr(block, "media", None)
            if isinstance(media, Media):
                items.append(self._compose_media(media))
            elif isinstance(block, Block) and block.kind in (BlockKind.IMAGE, BlockKind.DOCUMENT):
                self.outgoing.count_loss("media that only their provider can find")
                items.append(_make_text(f"[{block.kind}: {block.name or 'without a name'}]"))
            else:
                items.append(_make_text(block.text))
        return items

    def _compose_media(self, media: Media) -> JsonDict:
        if media.type == "image" and media.data:
            data = sendable.encode_base64(media)
            return {"type": "image", "data": data, "mimeType": media.mime}
        self.outgoing.count_loss("documents" if media.type == "document" else "addresses of images")
        return _make_text(f"[{media.type}: {media.name or media.url or media.mime}]")

    def _compose_result(self, block: AnyBlock, at: int) -> JsonDict:
        assert isinstance(block, ToolResult), "results are messages of their own"
        content: list[JsonDict] = []
        for part in _list_parts(block):
            match part:
                case Text(text=text):
                    content.append(_make_text(text))
                case Media():
                    content.append(self._compose_media(part))
                case NativePart():
                    self.outgoing.count_loss("providers' own parts of tool results")
        return {
            "role": "toolResult",
            "toolCallId": block.tool_call_id,
            "toolName": self.call_ids.pop(block.tool_call_id, "unknown"),
            "content": content,
            "isError": block.is_error,
            "timestamp": at,
        }

    def _compose_answer(self, message: OutgoingMessage, at: int) -> JsonDict:
        call = message.call
        model = (call and call.model) or self.outgoing.model or "unknown"
        provider = find_pi_provider(model, message.blocks)
        content = [self._compose_item(block, provider) for block in message.blocks]
        called = any(isinstance(block, ToolCall) for block in message.blocks)
        answer = {
            "role": "assistant",
            "content": [item for item in content if item],
            "api": provider.api,
            "provider": provider.name,
            "model": model,
            "usage": _make_usage(call),
            "stopReason": to_pi_stop_reason(call.stop_reason if call else None, called=called),
            "timestamp": at,
        }
        return answer | {"responseId": call.call_id} if call else answer

    def _compose_item(self, block: AnyBlock, provider: PiProvider) -> JsonDict | None:
        if isinstance(block, ToolCall):
            self.call_ids[block.tool_call_id] = block.name
            return {
                "type": "toolCall",
                "id": block.tool_call_id,
                "name": block.name,
                "arguments": self.outgoing.parse_arguments(block),
            }
        native = block.native
        if block.kind is BlockKind.THINKING:
            thought: JsonDict = {"type": "thinking", "thinking": block.text}
            if native:
                signature = make_signature_fields(native)
                if signature and native.provider == provider.native_provider:
                    return thought | signature
                self.outgoing.count_loss("signatures of thoughts")
            return thought if block.text else None
        if native:
            self.outgoing.count_loss("providers' own items")
        return _make_text(block.text) if block.text or not native else None

    def _compose_compaction(self, one: OutgoingCompaction) -> JsonDict:
        boundary, summary = one.boundary, one.summary
        kept = self._first_kept(one)
        seed = f"compaction {boundary.originator_version}"
        place = self.next_index
        entry = self.compose_entry(
            seed,
            one.time,
            type="compaction",
            summary=summary.text if summary else _NO_SUMMARY_TEXT,
            tokensBefore=boundary.pre_tokens,
        )
        if self.is_list:
            return entry | {"firstKeptEntryIndex": kept.index if kept else place}
        # An entry that names itself keeps nothing, since no earlier entry has its id.
        return entry | {"firstKeptEntryId": kept.id if kept else entry["id"]}

    def _first_kept(self, one: OutgoingCompaction) -> WrittenEntry | None:
        """Return the oldest entry from which all stayed; pi cannot record gaps."""
        kept, found, lost = one.boundary.kept, None, 0
        is_whole = True
        for written in reversed(self.written_entries):
            stayed = written.first > one.boundary.after or any(
                position in kept for position in range(written.first, written.last + 1)
            )
            is_whole = is_whole and stayed
            if is_whole:
                found = written
            else:
                lost += stayed
        if lost:
            self.outgoing.count_loss("kept messages that are older than ones that left", lost)
        return found


def _make_text(text: str) -> JsonDict:
    return {"type": "text", "text": text}


def _list_parts(result: ToolResult) -> Sequence[ResultPart]:
    content = result.content
    return (Text(text=content),) if isinstance(content, str) else content


def _tool_name(block: AnyBlock) -> str | None:
    return block.name if isinstance(block, Block) else None


def _make_usage(call: ModelCalled | None) -> JsonDict:
    usage = get_usage(call)
    counts = {
        "input": usage.input or 0,
        "output": usage.output or 0,
        "cacheRead": usage.cache_read or 0,
        "cacheWrite": usage.cache_write or 0,
    }
    cost = {**dict.fromkeys(counts, 0), "total": (call and call.cost_usd) or 0}
    reasoning = {"reasoning": usage.reasoning} if usage.reasoning else {}
    return {**counts, **reasoning, "totalTokens": sum(counts.values()), "cost": cost}
