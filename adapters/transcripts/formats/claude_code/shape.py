"""Entries in Claude Code's shape, for what was not said in one of its own transcripts."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    NativePart,
    Part,
    ToolCall,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....domain.messages import Role
from .....domain.ranges import Ranges
from .....domain.session_events import ModelCalled, Usage
from .....projections.rendering import sendable
from ..outgoing import Compacted, Message, Outgoing, Said
from ..reading.fields import Item
from ..summary_mark import MARK
from ..writing.as_text import marked_text
from .content import PROVIDER
from .conversation import SYNTHETIC
from .rest import item_of

VERSION = "2.1.235"
"""The newest version of Claude Code whose transcripts were seen."""

_ENVELOPE = (
    *("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch"),
    *("slug", "agentId"),
)
"""What entries of a session have in common."""
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "toolUse": "tool_use",
    "length": "max_tokens",
}


class Shape:
    """Makes entries one after the other: each names the one that it follows."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.last: str | None = None
        self.envelope = _envelope(outgoing)
        self.calls: dict[str, tuple[str, str]] = {}
        """Tool calls by their ids: the id that each has here, and the entry that made it."""
        self.given: set[str] = set()
        """Ids of tool calls that were given."""
        self.covered: Ranges | None = None
        """What the last summary stands for, where there was one."""
        self.written: dict[int, str] = {}
        """Positions, and the entries that hold them."""

    def follow(self, entry: Item, said: Sequence[Said]) -> None:
        """An entry of Claude Code's own was written: what comes next goes on from it."""
        if not isinstance(id := entry.get("uuid"), str):
            return
        for one in said:
            self.written[one.position] = id
            if isinstance(one.block, ToolCall):
                name = one.block.tool_call_id
                self.given.add(name)
                self.calls[name] = (name, id)
        if not any(one.retracted for one in said):
            self.last = id
            self.envelope |= {name: entry[name] for name in _ENVELOPE if name in entry}

    def message(self, message: Message) -> Iterator[Item]:
        """A message: what a model wrote is an entry for each of its pieces."""
        first = message.said[0]
        match message.role:
            case Role.ASSISTANT:
                yield from self._answer(message)
            case Role.TOOL_RESULT:
                yield from self._result(first)
            case Role.DEVELOPER:
                words = "\n\n".join(block.text for block in message.blocks)
                if getattr(first.block, "name", None) == "summary":
                    if self.last is None:
                        yield from self._compacted(first.position, words, _time(first), {})
                    else:
                        yield self._told(message.said, marked_text(first.block), **MARK)
                elif words.strip():
                    yield self._told(message.said, words, isMeta=True)
            case _:
                items = [item for block in message.blocks if (item := self._prompt(block))]
                if items:
                    alone = len(items) == 1 and items[0].keys() == {"type", "text"}
                    yield self._told(message.said, items[0]["text"] if alone else items)

    def compaction(self, compacted: Compacted) -> Iterator[Item]:
        """A boundary and its summary; what stayed is named by its entries.

        Nothing of one that only shows something shortened: that is said among what is lost.
        """
        boundary = compacted.boundary
        summary = compacted.summary
        if summary is None or (summary.covers == self.covered and not self.outgoing.is_view):
            return
        self.covered = summary.covers
        kept: dict[str, None] = {}
        for position in boundary.kept if self.written else ():
            if position in self.written:
                kept[self.written[position]] = None
        metadata: Item = {
            "trigger": "manual" if boundary.trigger is Trigger.MANUAL else "auto",
            "preTokens": boundary.pre_tokens,
            "postTokens": boundary.post_tokens,
        }
        if kept:
            metadata["preservedMessages"] = {"uuids": list(kept), "allUuids": list(kept)}
        time = _written_time(boundary.source_time, compacted.time)
        yield from self._compacted(boundary.after, summary.text, time, metadata)

    def mode(self) -> Item:
        """How the program works, which says nothing of what was said."""
        return {"type": "mode", "mode": "normal", "sessionId": self.envelope["sessionId"]}

    def title(self, title: str) -> Item:
        """What the session is called."""
        return {
            "type": "custom-title",
            "customTitle": title,
            "sessionId": self.envelope["sessionId"],
        }

    def _compacted(self, place: int, text: str, time: str, metadata: Item) -> Iterator[Item]:
        logical, self.last = self.last, None
        summary = self._id(place, "summary")
        if preserved := metadata.get("preservedMessages"):
            preserved["anchorUuid"] = summary
        yield self._entry(
            "system",
            self._id(place, "boundary"),
            time,
            {
                "logicalParentUuid": logical,
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "isMeta": False,
                "level": "info",
                "compactMetadata": {"trigger": "auto", "preTokens": 0} | metadata,
            },
        )
        said = {
            "message": {"role": "user", "content": text},
            "isVisibleInTranscriptOnly": True,
            "isCompactSummary": True,
        }
        yield self._entry("user", summary, time, said)

    def _told(self, said: Sequence[Said], content: Any, **more: Any) -> Item:
        """An entry in the user's role."""
        id = self._id(said[0].position, "user")
        self.written |= {one.position: id for one in said}
        message = {"message": {"role": "user", "content": content}}
        return self._entry("user", id, _time(said[0]), message | more)

    def _answer(self, message: Message) -> Iterator[Item]:
        call, first = message.call, message.said[0]
        made = self._id(first.position, "message").replace("-", "")
        calls = any(isinstance(block, ToolCall) for block in message.blocks)
        body = {
            "id": first.block.message_id or f"msg_{made[:24]}",
            "type": "message",
            "role": "assistant",
            "model": (call and call.model) or (SYNTHETIC if call is None else "unknown"),
            "stop_reason": _stop(call, calls=calls),
            "stop_sequence": None,
            "usage": _usage(call.usage if call else None),
        }
        for said in message.said:
            id = self._id(said.position, "assistant")
            if item := self._piece(said.block, id):
                self.written[said.position] = id
                yield self._entry(
                    "assistant", id, _time(said), {"message": body | {"content": [item]}}
                )

    def _result(self, said: Said) -> Iterator[Item]:
        block = said.block
        assert isinstance(block, ToolResult), "results are messages of their own"
        name, asked = self.calls.get(block.tool_call_id, (block.tool_call_id, None))
        content: Any = block.content
        if not isinstance(content, str):
            content = [item for part in content if (item := self._part(part))]
        item = {"type": "tool_result", "tool_use_id": name, "content": content}
        if block.is_error:
            item["is_error"] = True
        more = {"sourceToolAssistantUUID": asked} if asked else {}
        yield self._told([said], [item], **more)

    def _piece(self, block: AnyBlock, entry: str) -> Item | None:
        """A piece of what a model wrote; None where it can have no place here."""
        native = sendable.item(block.native, PROVIDER)
        match block:
            case ToolCall(tool_call_id=id, name=name):
                legal = self._legal(id, block)
                self.calls[id] = (legal, entry)
                if native:
                    return native | {"id": legal}
                return {
                    "type": "tool_use",
                    "id": legal,
                    "name": name,
                    "input": self._input(block),
                }
            case Block(kind=Kind.THINKING):
                if native is None:
                    self.outgoing.lose("thoughts that Anthropic did not sign")
                return native
            case _ if native:
                return native
            case _ if block.text.strip():
                return {"type": "text", "text": block.text}
            case _:
                if block.native:
                    self.outgoing.lose(f"items that only {block.native.provider} reads")
                return None

    def _prompt(self, block: AnyBlock) -> Item | None:
        """A piece of what a person said."""
        if native := sendable.item(block.native, PROVIDER):
            return native
        if isinstance(block, Block) and block.media:
            return item_of(block)
        if block.text.strip():
            return {"type": "text", "text": block.text}
        if block.native:
            self.outgoing.lose(f"items that only {block.native.provider} reads")
        return None

    def _part(self, part: Part) -> Item | None:
        match part:
            case NativePart(native=native):
                item = sendable.item(native, PROVIDER)
                if item is None:
                    self.outgoing.lose(f"items that only {native.provider} reads")
                return item
            case Media():
                return item_of(Block(kind=Kind(part.type), media=part))
            case _:
                return {"type": "text", "text": part.text}

    def _input(self, call: ToolCall) -> Any:
        try:
            found = sendable.tree(call.arguments)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        self.outgoing.lose("tool arguments that are no JSON object: they stand in `_raw`")
        return {"_raw": call.arguments}

    def _legal(self, id: str, call: ToolCall) -> str:
        """An id that Anthropic takes, and that no other call has."""
        if id in self.given or not _LEGAL_ID.fullmatch(id):
            number = len(self.given)
            made = uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{number}/{id}/{call.name}")
            id = f"toolu_{made.hex[:24]}"
        self.given.add(id)
        return id

    def _id(self, position: int, what: str) -> str:
        """An id that is the same at every export."""
        return str(uuid5(NAMESPACE_URL, f"{self.outgoing.key}/{position}/{what}"))

    def _entry(self, kind: str, id: str, time: str, more: Item) -> Item:
        parent, self.last = self.last, id
        return {
            "parentUuid": parent,
            **self.envelope,
            "type": kind,
            **more,
            "uuid": id,
            "timestamp": time,
        }


def _envelope(outgoing: Outgoing) -> Item:
    """What all entries have in common, where none of Claude Code's own tells it."""
    works_for = outgoing.parent
    envelope = {
        "isSidechain": works_for is not None,
        "userType": "external",
        "cwd": "/",
        "sessionId": _session_id(works_for.key if works_for else outgoing.key),
        "version": VERSION,
        "gitBranch": "",
    }
    if works_for:
        envelope["agentId"] = uuid5(NAMESPACE_URL, outgoing.key).hex[:16]
    return envelope


def _session_id(key: str) -> str:
    """The key where it is a UUID, which is all that Claude Code takes; else one made of it."""
    try:
        return str(UUID(key))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, key))


def _time(said: Said) -> str:
    return _written_time(said.block.origin.time if said.block.origin else None, said.time)


def _written_time(told: str | None, otherwise: datetime) -> str:
    """The source's own time, as Claude Code writes times; where it tells none, another one."""
    try:
        time = datetime.fromisoformat(told) if told else otherwise
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        time = otherwise
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def _stop(call: ModelCalled | None, *, calls: bool) -> str:
    told = call.stop_reason if call else None
    return _STOPS.get(told, told) if told else "tool_use" if calls else "end_turn"


def _usage(usage: Usage | None) -> Item:
    told = usage or Usage()
    return {
        "input_tokens": told.input or 0,
        "cache_creation_input_tokens": told.cache_write or 0,
        "cache_read_input_tokens": told.cache_read or 0,
        "output_tokens": told.output or 0,
    }
