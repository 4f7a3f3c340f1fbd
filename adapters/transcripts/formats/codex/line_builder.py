"""Builds the lines of a rollout: items for blocks from other sources, wrappers and events."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from .....domain.session_events import Usage
from .....projections.rendering import sendable
from .....projections.rendering.exchanges import make_distinct_id, sanitize_tool_name
from ..content import make_media_address
from ..fields import JsonDict, is_uuid
from ..outgoing import OutgoingBlock, OutgoingSession, to_iso
from ..summary_mark import make_marked_text, make_summary_mark
from .entries import CODEX_PROVIDER

MAX_CALL_ID_CHARACTERS = 64
MAX_TOOL_NAME_CHARACTERS = 64

_PAIRED_CALLS = frozenset({"function_call", "custom_tool_call"})
_FUNCTION, _CUSTOM = "function_call_output", "custom_tool_call_output"


class CodexItemBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.taken: set[str] = set()
        self.ids: dict[str, str] = {}
        """Open calls that were written with another id."""
        self.answers: dict[str, str] = {}
        """The type of item that answers an open call."""

    def note_original_call(self, call: str, item: JsonDict) -> None:
        self.taken.add(call)
        self.answers[call] = _CUSTOM if item.get("type") == "custom_tool_call" else _FUNCTION

    def build_items(self, said: Sequence[OutgoingBlock]) -> Iterator[JsonDict]:
        """Yield the items of a message: one for input, one for each piece of a model's answer."""
        content: list[JsonDict] = []
        role = ""
        for one in said:
            speaker, own = (
                _role_of(one.block),
                sendable.parse_native_item(one.block.native, CODEX_PROVIDER),
            )
            if content and speaker != role:
                yield _make_message(role, content)
                content = []
            role = speaker
            if role and own is None:
                content += self._build_input(one.block)
            elif (item := own if role else self._build_item(one, own)) is not None:
                yield item
        if content:
            yield _make_message(role, content)

    def _build_input(self, block: AnyBlock) -> Iterator[JsonDict]:
        media = block.media if isinstance(block, Block) else None
        if block.text:
            mark = make_summary_mark(block)
            yield {"type": "input_text", "text": make_marked_text(block), **mark}
        elif block.native and not media:
            self.outgoing.count_loss("items that only another provider understands")
        if media:
            yield self._build_media(media)

    def _build_media(self, media: Media) -> JsonDict:
        if media.type == "image":
            return {"type": "input_image", "image_url": make_media_address(media)}
        self.outgoing.count_loss("documents")  # documents become text at most
        text = sendable.decode_text(media) or sendable.describe_media(media)
        return {"type": "input_text", "text": text}

    def _build_item(self, said: OutgoingBlock, own: JsonDict | None) -> JsonDict | None:
        """Return an item for a call, a result, or a model's text or thought."""
        lost = ""
        match said.block:
            case ToolCall() as call:
                return self._build_call(said.position, call, own)
            case ToolResult() as result:
                return self._build_result(result)
            case _ if own is not None and own.get("type") not in _PAIRED_CALLS:
                return own
            case Block(kind=BlockKind.THINKING):
                # A provider rejects a thought without its signature.
                lost = "thoughts of models of other providers"
            case Block(text=text) if text:
                return _make_message("assistant", [{"type": "output_text", "text": text}])
            case Block(native=native) if native:
                lost = "items that only another provider understands"
        if lost:
            self.outgoing.count_loss(lost)
        return None

    def _build_call(self, position: int, call: ToolCall, own: JsonDict | None) -> JsonDict:
        id = make_distinct_id(call.tool_call_id, position, self.taken, MAX_CALL_ID_CHARACTERS)
        self.taken.add(id)
        if id != call.tool_call_id:
            self.ids[call.tool_call_id] = id
        if own is not None and own.get("type") == "custom_tool_call":
            self.answers[id] = _CUSTOM
            return {**own, "call_id": id}
        self.answers[id] = _FUNCTION
        name = sanitize_tool_name(call.name, MAX_TOOL_NAME_CHARACTERS)
        if name != call.name:
            self.outgoing.count_loss("names of tools as they were")
        return {"type": "function_call", "name": name, "arguments": call.arguments, "call_id": id}

    def _build_result(self, result: ToolResult) -> JsonDict:
        id = self.ids.pop(result.tool_call_id, result.tool_call_id)
        kind = self.answers.pop(id, _FUNCTION)
        if result.is_error:
            self.outgoing.count_loss("marks of tool results that are errors")
        output: Any = result.content
        if not isinstance(output, str):
            output = [part for one in output if (part := self._build_part(one)) is not None]
        return {"type": kind, "call_id": id, "output": output}

    def _build_part(self, part: Text | Media | NativePart) -> JsonDict | None:
        match part:
            case Text(text=text):
                return {"type": "input_text", "text": text}
            case Media():
                return self._build_media(part)
            case NativePart(native=native) if native.provider == CODEX_PROVIDER:
                return sendable.parse_native_item(native, CODEX_PROVIDER)
            case _:
                self.outgoing.count_loss(
                    "parts of tool results that only another provider understands"
                )
                return None


def _role_of(block: AnyBlock) -> str:
    """Return the role of input; empty for the model's own blocks, and for notes."""
    match block:
        case Block(kind=BlockKind.DEVELOPER, name="summary"):
            return "user"
        case Block(kind=BlockKind.DEVELOPER):
            return "developer"
        case Block(kind=BlockKind.USER | BlockKind.IMAGE | BlockKind.DOCUMENT):
            return "user"
        case _:
            return ""


def _make_message(role: str, content: list[JsonDict]) -> JsonDict:
    return {"type": "message", "role": role, "content": content}


def make_rollout_line(kind: str, payload: JsonDict, time: str) -> JsonDict:
    return {"timestamp": time, "type": kind, "payload": payload}


def make_event(kind: str, time: str, **fields: Any) -> JsonDict:
    return make_rollout_line("event_msg", {"type": kind, **fields}, time)


def make_message_event(item: JsonDict, time: str) -> Iterator[JsonDict]:
    """Yield the event that shows a message to the user, if it has a text."""
    kind = {"user": "user_message", "assistant": "agent_message"}.get(item.get("role", ""))
    content = item["content"] if kind else ()
    if text := "\n".join(part["text"] for part in content if "text" in part):
        images: JsonDict = {"images": []} if kind == "user_message" else {}
        yield make_event(str(kind), time, message=text, **images)


def make_thread_id(key: str) -> str:
    """Return the key if it is a valid thread id; else an id derived from it."""
    return key if is_uuid(key) else str(uuid5(NAMESPACE_URL, f"cutbank:session:{key}"))


def make_session_meta(outgoing: OutgoingSession) -> JsonDict:
    time = to_iso(outgoing.opened_at)
    meta: JsonDict = {
        "id": make_thread_id(outgoing.key),
        "timestamp": time,
        "cwd": outgoing.folder,
        "originator": "cutbank",
        "cli_version": "0.0.0",
        "source": "cli",
    }
    if outgoing.parent:
        parent = make_thread_id(outgoing.parent.key)
        spawn = {"parent_thread_id": parent, "depth": 1}
        meta["source"] = {"subagent": {"thread_spawn": spawn}}
    if outgoing.system_prompt:
        meta["base_instructions"] = {"text": outgoing.system_prompt}
    return make_rollout_line("session_meta", meta, time)


def make_turn_context(folder: str, model: str, time: str) -> JsonDict:
    """Return the entry that names the model from here on. It grants no permissions."""
    payload = {
        "cwd": folder,
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "read-only"},
        "model": model,
        "summary": "auto",
    }
    return make_rollout_line("turn_context", payload, time)


class TokenTotals:
    """The usage of a thread so far, as its token counts have it."""

    def __init__(self) -> None:
        self._total = _usage_fields(Usage())

    def add_call(self, usage: Usage, time: str, window: int | None) -> JsonDict:
        """Return the event after a model's call."""
        last = _usage_fields(usage)
        for field, count in last.items():
            self._total[field] = self._total.get(field, 0) + count
        return self._make_event(last, time, window)

    def report_remaining(self, tokens: int, time: str) -> JsonDict:
        """Return the event after a compaction, with the remaining tokens."""
        return self._make_event({**dict.fromkeys(self._total, 0), "total_tokens": tokens}, time)

    def _make_event(self, last: dict[str, int], time: str, window: int | None = None) -> JsonDict:
        info = {
            "total_token_usage": dict(self._total),
            "last_token_usage": last,
            "model_context_window": window,
        }
        return make_event("token_count", time, info=info, rate_limits=None)


def _usage_fields(usage: Usage) -> dict[str, int]:
    prompt, output = usage.context or 0, usage.output or 0
    fields = {
        "input_tokens": prompt,
        "cached_input_tokens": usage.cache_read or 0,
        "output_tokens": output,
        "reasoning_output_tokens": usage.reasoning or 0,
        "total_tokens": prompt + output,
    }
    return fields | ({"cache_write_input_tokens": usage.cache_write} if usage.cache_write else {})
