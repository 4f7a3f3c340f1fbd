"""Writes a session as Claude Code does: own entries unchanged, all others converted."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....domain.item import Role
from .....domain.ranges import Ranges
from .....domain.session_events import ModelCalled
from .....projections.rendering import sendable
from ..fields import JsonDict
from ..json_lines import encode_line
from ..line_writer import LineWriter, OwnBlock
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    get_time,
    get_usage,
    make_session_uuid,
    to_iso,
)
from ..summary_mark import SUMMARY_MARK, is_imported_summary, make_marked_text
from .content import CLAUDE_CODE_PROVIDER, make_media_item
from .entries import SYNTHETIC_MODEL, TITLE_FIELDS

CLAUDE_CODE_VERSION = "2.1.235"
"""The newest Claude Code version with known transcripts."""

_SHARED_FIELDS = (
    *("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch"),
    *("slug", "agentId"),
)
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "toolUse": "tool_use",
    "length": "max_tokens",
}


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_missing()
    writer = ClaudeWriter(outgoing)
    lines = writer.write()
    yield next(lines, None) or encode_line(writer.build_mode())
    yield from lines


class ClaudeWriter(LineWriter):
    """A builder of entries in order; each names the one that it follows."""

    id_field = "uuid"
    reference_fields = ("parentUuid", "logicalParentUuid", "leafUuid")

    def __init__(self, outgoing: OutgoingSession) -> None:
        super().__init__(outgoing)
        self.last: str | None = None
        self.envelope = _shared_fields(outgoing)
        self.calls: dict[str, tuple[str, str]] = {}
        """Tool calls by id: their exported id, and the entry that made them."""
        self.given: set[str] = set()
        self.covered: Ranges | None = None
        """What the last summary covers, if there is one."""
        self.written: dict[int, str] = {}
        self.title_kind: str | None = None

    def build_mode(self) -> JsonDict:
        """Return the entry of an empty session, which needs one."""
        return {"type": "mode", "mode": "normal", "sessionId": self.envelope["sessionId"]}

    def build_title(self, title: str) -> Iterator[JsonDict]:
        session = self.envelope["sessionId"]
        yield {"type": "custom-title", "customTitle": title, "sessionId": session}

    def follow(self, entry: JsonDict, own: Sequence[OwnBlock]) -> None:
        """Continue after one of Claude Code's own entries; what it took back itself is a branch."""
        kind = str(entry.get("type"))
        if (field := TITLE_FIELDS.get(kind)) and self.title_kind in (None, "ai-title", kind):
            self.title, self.title_kind = entry.get(field), kind
        if not isinstance(id := entry.get("uuid"), str):
            return
        if not own and entry.get("parentUuid") != self.last:
            return
        for one in own:
            self.written[one.position] = id
            if name := one.tool_call_id:
                self.given.add(name)
                self.calls[name] = (name, id)
        if not (own and all(one.is_retracted for one in own)):
            self.last = id
            self.envelope |= {name: entry[name] for name in _SHARED_FIELDS if name in entry}

    def build_message(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        """Yield the entries of a message: one for each piece of a model's answer."""
        said = message.outgoing_blocks
        first = said[0].block
        match message.role:
            case Role.ASSISTANT:
                yield from self._build_answer(message)
            case Role.TOOL_RESULT:
                yield from self._build_result(said[0])
            case Role.DEVELOPER:
                text = "\n\n".join(block.text for block in message.blocks)
                if not is_imported_summary(first):
                    if text.strip():
                        yield self._build_user_entry(said, text, isMeta=True)
                elif self.last is None:
                    yield from self._build_boundary(
                        said[0].position, text, to_iso(get_block_time(said[0]))
                    )
                else:
                    yield self._build_user_entry(said, make_marked_text(first), **SUMMARY_MARK)
            case _:
                items = [item for block in message.blocks if (item := self._build_item(block))]
                if items:
                    is_text = len(items) == 1 and items[0].keys() == {"type", "text"}
                    yield self._build_user_entry(said, items[0]["text"] if is_text else items)

    def build_compaction(self, compacted: OutgoingCompaction) -> Iterator[JsonDict]:
        """Yield a boundary and its summary, naming the entries that stay.

        Yield nothing for one that only shortens results; it is reported as a loss.
        """
        boundary, summary = compacted.boundary, compacted.summary
        self.outgoing.count_shortened(boundary)
        if summary is None or (summary.covers == self.covered and not self.outgoing.is_view):
            return
        self.covered = summary.covers
        metadata: JsonDict = {
            "trigger": "manual" if boundary.trigger is Trigger.MANUAL else "auto",
            "preTokens": boundary.pre_tokens,
            "postTokens": boundary.post_tokens,
        }
        written = (self.written.get(position) for position in boundary.kept) if self.written else ()
        if kept := [*dict.fromkeys(id for id in written if id)]:
            metadata["preservedMessages"] = {"uuids": kept, "allUuids": kept}
        time = to_iso(get_time(compacted.time, boundary.source_time))
        yield from self._build_boundary(boundary.after, summary.text, time, metadata)

    def _build_boundary(
        self, place: int, text: str, time: str, metadata: JsonDict | None = None
    ) -> Iterator[JsonDict]:
        logical, self.last = self.last, None
        summary = self._make_id(place, "summary")
        compacted: JsonDict = {"trigger": "auto", "preTokens": 0} | (metadata or {})
        if preserved := compacted.get("preservedMessages"):
            preserved["anchorUuid"] = summary
        yield self._build_entry(
            "system",
            self._make_id(place, "boundary"),
            time,
            {
                "logicalParentUuid": logical,
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "isMeta": False,
                "level": "info",
                "compactMetadata": compacted,
            },
        )
        said = {
            "message": {"role": "user", "content": text},
            "isVisibleInTranscriptOnly": True,
            "isCompactSummary": True,
        }
        yield self._build_entry("user", summary, time, said)

    def _build_user_entry(
        self, said: Sequence[OutgoingBlock], content: Any, **more: Any
    ) -> JsonDict:
        id = self._make_id(said[0].position, "user")
        self.written |= {one.position: id for one in said}
        message = {"message": {"role": "user", "content": content}}
        return self._build_entry("user", id, to_iso(get_block_time(said[0])), message | more)

    def _build_answer(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        call, first = message.call, message.outgoing_blocks[0]
        usage = get_usage(call)
        made = self._make_id(first.position, "message").replace("-", "")
        calls = any(isinstance(block, ToolCall) for block in message.blocks)
        body = {
            "id": first.block.message_id or f"msg_{made[:24]}",
            "type": "message",
            "role": "assistant",
            "model": (call and call.model) or (SYNTHETIC_MODEL if call is None else "unknown"),
            "stop_reason": _stop_reason(call, calls=calls),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": usage.output,
            },
        }
        for said in message.outgoing_blocks:
            id, block = self._make_id(said.position, "assistant"), said.block
            if isinstance(block, ToolCall):
                item: JsonDict | None = self._build_call(block, id)
            else:
                item = self._build_item(block)
            if item:
                self.written[said.position] = id
                content = {"message": body | {"content": [item]}}
                yield self._build_entry("assistant", id, to_iso(get_block_time(said)), content)

    def _build_result(self, said: OutgoingBlock) -> Iterator[JsonDict]:
        block = said.block
        assert isinstance(block, ToolResult), "results are messages of their own"
        name, asked = self.calls.get(block.tool_call_id, (block.tool_call_id, None))
        content: Any = block.content
        if not isinstance(content, str):
            content = [item for part in content if (item := self._build_item(part))]
        item = {"type": "tool_result", "tool_use_id": name, "content": content}
        if block.is_error:
            item["is_error"] = True
        more = {"sourceToolAssistantUUID": asked} if asked else {}
        yield self._build_user_entry([said], [item], **more)

    def _build_item(self, part: AnyBlock | ResultPart) -> JsonDict | None:
        """Return the item of a block, or of a part of a result; None if it cannot be written."""
        native = None if isinstance(part, Text | Media) else part.native
        if item := sendable.parse_native_item(native, CLAUDE_CODE_PROVIDER):
            return item
        match part:
            case Block(kind=BlockKind.THINKING):
                self.outgoing.count_loss("thoughts that Anthropic did not sign")
            case (Media() as media) | Block(media=Media() as media):
                return make_media_item(media)
            case Text(text=text):
                return {"type": "text", "text": text}
            case Block(text=text) if text.strip():
                return {"type": "text", "text": text}
            case _ if native:
                self.outgoing.count_loss(f"items that only {native.provider} reads")
        return None

    def _build_call(self, call: ToolCall, entry: str) -> JsonDict:
        id = self._legal_id(call.tool_call_id, call)
        self.calls[call.tool_call_id] = (id, entry)
        if native := sendable.parse_native_item(call.native, CLAUDE_CODE_PROVIDER):
            return native | {"id": id}
        arguments = self.outgoing.parse_arguments(call)
        return {"type": "tool_use", "id": id, "name": call.name, "input": arguments}

    def _legal_id(self, id: str, call: ToolCall) -> str:
        """Return an id that Anthropic accepts, and that no other call has."""
        if id in self.given or not _LEGAL_ID.fullmatch(id):
            number = len(self.given)
            made = uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{number}/{id}/{call.name}")
            id = f"toolu_{made.hex[:24]}"
        self.given.add(id)
        return id

    def _make_id(self, position: int, what: str) -> str:
        """Return an id that is the same in each export."""
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{position}/{what}"))

    def _build_entry(self, kind: str, id: str, time: str, more: JsonDict) -> JsonDict:
        parent, self.last = self.last, id
        return {
            "parentUuid": parent,
            **self.envelope,
            "type": kind,
            **more,
            "uuid": id,
            "timestamp": time,
        }


def _shared_fields(outgoing: OutgoingSession) -> JsonDict:
    """Return the shared fields, if no own entry has them."""
    works_for = outgoing.parent
    envelope = {
        "isSidechain": works_for is not None,
        "userType": "external",
        "cwd": outgoing.folder,
        "sessionId": make_session_uuid(works_for.key if works_for else outgoing.key),
        "version": CLAUDE_CODE_VERSION,
        "gitBranch": "",
    }
    if works_for:
        envelope["agentId"] = uuid5(NAMESPACE_URL, outgoing.key).hex[:16]
    return envelope


def _stop_reason(call: ModelCalled | None, *, calls: bool) -> str:
    told = call.stop_reason if call else None
    return _STOP_REASONS.get(told, told) if told else "tool_use" if calls else "end_turn"
