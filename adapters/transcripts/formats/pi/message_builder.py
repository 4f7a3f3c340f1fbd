"""Builds the messages of pi entries for content of other sources."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    get_usage,
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


def _find_provider(model: str, blocks: Sequence[AnyBlock]) -> PiProvider:
    """Return the provider of the message's native items, or else of the model's name."""
    for block in blocks:
        if block.native and make_signature_fields(block.native):
            return _ANTHROPIC if block.native.provider == ANTHROPIC_PROVIDER else _OPENAI
    return next((found for named, found in _BY_MODEL if named.search(model)), _UNKNOWN)


def _to_stop_reason(reason: str | None, *, called: bool) -> str:
    return _REASON_BY_SOURCE.get(reason or "", "toolUse" if called else "stop")


class MessageBuilder:
    """A builder of the fields of entries that are messages."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.call_names: dict[str, str] = {}
        """The names of open calls, by id."""

    def build(self, message: OutgoingMessage) -> JsonDict:
        """Return the type of the message's entry, and its content."""
        at = to_milliseconds(get_block_time(message.outgoing_blocks[0]))
        match message.role:
            case Role.TOOL_RESULT:
                return {"type": "message", "message": self._build_result(message.blocks[0], at)}
            case Role.ASSISTANT:
                return {"type": "message", "message": self._build_answer(message, at)}
            case Role.DEVELOPER:
                name = next(filter(None, map(_tool_name, message.blocks)), None)
                content = self._build_content(message.blocks)
                return {
                    "type": "custom_message",
                    "customType": name or "developer",
                    "content": content,
                    "display": False,
                }
            case _:
                content = self._build_content(message.blocks)
                return {
                    "type": "message",
                    "message": {"role": "user", "content": content, "timestamp": at},
                }

    def _build_content(self, blocks: list[AnyBlock]) -> list[JsonDict]:
        items: list[JsonDict] = []
        for block in blocks:
            media = getattr(block, "media", None)
            if isinstance(media, Media):
                items.append(self._build_media(media))
            elif isinstance(block, Block) and block.kind in (BlockKind.IMAGE, BlockKind.DOCUMENT):
                self.outgoing.count_loss("media that only their provider can find")
                items.append(_make_text(f"[{block.kind}: {block.name or 'without a name'}]"))
            else:
                items.append(_make_text(block.text))
        return items

    def _build_media(self, media: Media) -> JsonDict:
        if media.type == "image" and media.data:
            data = sendable.encode_base64(media)
            return {"type": "image", "data": data, "mimeType": media.mime}
        self.outgoing.count_loss("documents" if media.type == "document" else "addresses of images")
        return _make_text(f"[{media.type}: {media.name or media.url or media.mime}]")

    def _build_result(self, block: AnyBlock, at: int) -> JsonDict:
        assert isinstance(block, ToolResult), "results are messages of their own"
        content: list[JsonDict] = []
        for part in _list_parts(block):
            match part:
                case Text(text=text):
                    content.append(_make_text(text))
                case Media():
                    content.append(self._build_media(part))
                case NativePart():
                    self.outgoing.count_loss("providers' own parts of tool results")
        return {
            "role": "toolResult",
            "toolCallId": block.tool_call_id,
            "toolName": self.call_names.pop(block.tool_call_id, "unknown"),
            "content": content,
            "isError": block.is_error,
            "timestamp": at,
        }

    def _build_answer(self, message: OutgoingMessage, at: int) -> JsonDict:
        call = message.call
        model = (call and call.model) or self.outgoing.model or "unknown"
        provider = _find_provider(model, message.blocks)
        content = [self._build_item(block, provider) for block in message.blocks]
        called = any(isinstance(block, ToolCall) for block in message.blocks)
        answer = {
            "role": "assistant",
            "content": [item for item in content if item],
            "api": provider.api,
            "provider": provider.name,
            "model": model,
            "usage": _make_usage(call),
            "stopReason": _to_stop_reason(call.stop_reason if call else None, called=called),
            "timestamp": at,
        }
        return answer | {"responseId": call.call_id} if call else answer

    def _build_item(self, block: AnyBlock, provider: PiProvider) -> JsonDict | None:
        if isinstance(block, ToolCall):
            self.call_names[block.tool_call_id] = block.name
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
