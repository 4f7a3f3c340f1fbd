"""Writes a session as an opencode export: own entries unchanged, others converted."""

import json
from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    NativePart,
    ToolCall,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....domain.session_events import ModelCalled
from ...formats import json_lines
from ..content import make_media_address
from ..fields import JsonDict, find_text
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    get_time,
    get_usage,
    group_outgoing_messages,
    is_added,
    to_milliseconds,
)
from ..summary_mark import make_marked_text, make_summary_mark
from .message_parts import (
    ANTHROPIC,
    FORMAT_NAME,
    RESPONSES,
)

_AGENT = "build"
_TITLE_LENGTH = 100
_PROVIDERS = (("claude", "anthropic"), ("gpt", "openai"), ("gemini", "google"))
"""Models by how their names begin, and opencode's names of their providers."""
OPENCODE_VERSION = "1.0.0"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_missing()
    document = OpencodeDocument(outgoing)
    document.add_all()
    yield json_lines.encode_document(document.build())


class OpencodeDocument:
    """An export that is being built. Of entries with one id, it holds the last version."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.header: JsonDict | None = None
        self.session = _derive_session_id(outgoing.key)
        self.messages: dict[str, JsonDict] = {}
        self.parts: dict[str, dict[str, JsonDict]] = {}
        """The parts of each message, by id."""
        self.prompt: str | None = None
        self.calls: dict[str, JsonDict] = {}
        """The parts of calls that a result may answer."""
        self.ids: list[tuple[int, str]] = []
        """For each message, its first position and its id."""
        self.time = 0
        """The newest message's time, in milliseconds: opencode sorts messages by time and id."""

    def add_all(self) -> None:
        """Add the source's messages, and what is not from the source."""
        added = [*self.outgoing.read_parts()]
        if source := self.outgoing.kept_source:
            found = [*source.find_lines(self.outgoing)]
            added = [part for line, part in found if line is None and is_added(self.outgoing, part)]
            own = [part for line, part in found if line and isinstance(part, OutgoingBlock)]
            self._add_source(json.loads(source.read_whole()), own)
            if added:
                self._drop_reverted()
        for one in group_outgoing_messages(self.outgoing, added):
            if isinstance(one, OutgoingCompaction):
                self._add_compaction(one)
            else:
                self._add_outgoing(one)

    def _add_source(self, document: JsonDict, own: list[OutgoingBlock]) -> None:
        """Add the messages of the source, without the parts that were retracted since."""
        self.header = {name: value for name, value in document.items() if name != "messages"}
        self.session = find_text(self.header, "info", "id") or self.session
        positions: dict[str, list[OutgoingBlock]] = {}
        for one in own:
            positions.setdefault((one.block.origin and one.block.origin.id) or "", []).append(one)
        for message in document["messages"]:
            info = message["info"]
            if info.get("role") == "user":
                self.prompt = info["id"]
            match info:
                case {"time": {"created": int(created)}}:
                    self.time = max(self.time, created)
            parts: dict[str, JsonDict] = {}
            for place, part in enumerate(message.get("parts", [])):
                id = part.get("id") or f"{info['id']}/part-{place}"
                blocks = positions.get(id, [])
                if blocks and all(one.is_removed for one in blocks):
                    continue
                parts[id] = part
                for one in blocks:
                    if isinstance(one.block, ToolCall):
                        self.calls[one.block.tool_call_id] = part
            self.messages[info["id"]] = message
            self.parts[info["id"]] = parts
            if first := next((one for id in parts for one in positions.get(id, [])), None):
                self.ids.append((first.position, info["id"]))

    def build(self) -> JsonDict:
        header = self.header or {"info": self._make_header()}
        for id, message in self.messages.items():
            message["parts"] = list(self.parts[id].values())
        return header | {"messages": list(self.messages.values())}

    def _make_header(self) -> JsonDict:
        times = [message["info"]["time"]["created"] for message in self.messages.values()]
        opened = min([to_milliseconds(self.outgoing.opened_at), *times])
        parent = self.outgoing.parent
        return {
            "id": self.session,
            "slug": _make_digest(self.outgoing.key)[:12],
            "projectID": "global",
            "directory": self.outgoing.folder,
            **({"parentID": _derive_session_id(parent.key)} if parent else {}),
            "title": self.outgoing.title or self._find_prompt() or self.outgoing.key,
            "version": OPENCODE_VERSION,
            "time": {"created": opened, "updated": max(opened, self.time)},
        }

    def _find_prompt(self) -> str | None:
        """Return the first line that a user said."""
        for id, message in self.messages.items():
            for part in self.parts[id].values() if message["info"]["role"] == "user" else ():
                if (text := find_text(part, "text")) and not part.get("synthetic"):
                    return text.strip().partition("\n")[0][:_TITLE_LENGTH]
        return None

    def _drop_reverted(self) -> None:
        """Remove what opencode reverted, as opencode does when something follows."""
        match self.header:
            case {"info": {"revert": revert} as info}:
                del info["revert"]
                first = revert.get("messageID") if isinstance(revert, dict) else None
                ids = list(self.messages)
                for id in ids[ids.index(first) :] if first in ids else ():
                    del self.messages[id]

    def _add_outgoing(self, message: OutgoingMessage) -> None:
        """Add a message; results become part of their calls."""
        first = message.outgoing_blocks[0]
        self._advance(get_block_time(first))
        if isinstance(first.block, ToolResult):
            for said in message.outgoing_blocks:
                self._fill_result(said)
        elif message.role == "assistant":
            self._add_assistant(message)
        else:
            self._add_user(message)

    def _add_compaction(self, compacted: OutgoingCompaction) -> None:
        """Add a compaction in opencode's form: the request, and the summary as its answer."""
        self.outgoing.count_shortened(compacted.boundary)
        if compacted.summary is None:
            self.outgoing.count_loss("compactions without a summary")
            return
        boundary = compacted.boundary
        self._advance(get_time(compacted.time, boundary.source_time))
        asked = self._make_info("user", boundary.after, "c")
        part: JsonDict = {"auto": boundary.trigger is not Trigger.MANUAL}
        if boundary.trigger is Trigger.OVERFLOW:
            part["overflow"] = True
        if tail := next((id for at, id in self.ids if at in boundary.kept), None):
            part["tail_start_id"] = tail
        self._add_message(asked, [{"type": "compaction"} | part])
        self.time += 1
        answer = self._make_info("assistant", boundary.after, "s")
        answer |= {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
        self._add_message(answer, [{"type": "text", "text": compacted.summary.text}])

    def _add_user(self, message: OutgoingMessage) -> None:
        first = message.outgoing_blocks[0].position
        info = self._make_info("user", first)
        self.ids.append((first, info["id"]))
        parts: list[JsonDict] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                parts.append({"type": "file"} | _make_file(block.media))
                continue
            part = {"type": "text", "text": make_marked_text(block), **make_summary_mark(block)}
            parts.append(part | ({"synthetic": True} if block.kind is BlockKind.DEVELOPER else {}))
        self._add_message(info, parts)

    def _add_assistant(self, message: OutgoingMessage) -> None:
        first = message.outgoing_blocks[0].position
        info = self._make_info("assistant", first, call=message.call)
        self.ids.append((first, info["id"]))
        parts = [part for said in message.outgoing_blocks for part in self._build_parts(said)]
        reason = info["finish"] = _finish_reason(message, message.call)
        start: JsonDict = {"type": "step-start"}
        end = {"type": "step-finish", "reason": reason}
        end |= {"cost": info["cost"], "tokens": info["tokens"]}
        self._add_message(info, [start, *parts, end])

    def _add_message(self, info: JsonDict, parts: list[JsonDict]) -> None:
        """Add a new message; its parts get ids by their places."""
        known = [self._identify(info["id"], place) | part for place, part in enumerate(parts)]
        self.messages[info["id"]] = {"info": info, "parts": known}
        self.parts[info["id"]] = {part["id"]: part for part in known}
        self.calls |= {part["callID"]: part for part in known if part.get("callID")}

    def _build_parts(self, said: OutgoingBlock) -> Iterator[JsonDict]:
        block: AnyBlock = said.block
        at = to_milliseconds(get_block_time(said))
        match block:
            case ToolCall():
                arguments = self.outgoing.parse_arguments(block)
                state = {"status": "running", "input": arguments, "time": {"start": at}}
                yield {
                    "type": "tool",
                    "callID": block.tool_call_id,
                    "tool": block.name,
                    "state": state,
                }
            case Block(kind=BlockKind.THINKING):
                metadata = _make_metadata(block.native)
                if block.native and not metadata:
                    self.outgoing.count_loss("a provider's own reasoning items")
                if block.text or metadata:
                    more = {"metadata": metadata} if metadata else {}
                    time = {"start": at, "end": at}
                    yield {"type": "reasoning", "text": block.text, "time": time} | more
            case Block(text=text) if text:
                yield {"type": "text", "text": text, "time": {"start": at, "end": at}}
            case _:
                self.outgoing.count_loss("a provider's own items")

    def _fill_result(self, said: OutgoingBlock) -> None:
        result = said.block
        assert isinstance(result, ToolResult)
        part = self.calls.pop(result.tool_call_id, None)
        if part is None:
            self.outgoing.count_loss("tool results without a call")
            return
        state = part["state"]
        start, end = state.get("time", {}).get("start", 0), to_milliseconds(get_block_time(said))
        state["time"] = {"start": start, "end": max(start, end)}
        if result.is_error:
            if result.media:
                self.outgoing.count_loss("images and documents in failed tool results")
            state |= {"status": "error", "error": result.text}
            return
        state |= {"status": "completed", "output": result.text, "title": "", "metadata": {}}
        parts = () if isinstance(result.content, str) else result.content
        if count := sum(isinstance(one, NativePart) for one in parts):
            self.outgoing.count_loss("parts of tool results in a provider's own form", count)
        if result.media:
            state["attachments"] = [
                self._identify(part["messageID"], place, part["id"])
                | {"type": "file"}
                | _make_file(media)
                for place, media in enumerate(result.media)
            ]

    def _make_info(
        self, role: str, position: int, suffix: str = "", call: ModelCalled | None = None
    ) -> JsonDict:
        id = f"msg_{_make_ordered_id(self.time, 0, self.outgoing.key, position, suffix)}"
        info: JsonDict = {
            "id": id,
            "sessionID": self.session,
            "role": role,
            "time": {"created": self.time},
            "agent": _AGENT,
        }
        model = (call and call.model) or self.outgoing.model or "unknown"
        known = (provider for name, provider in _PROVIDERS if model.startswith(name))
        provider = next(known, FORMAT_NAME)
        if role == "user":
            self.prompt = id
            return info | {"model": {"providerID": provider, "modelID": model}}
        usage = get_usage(call)
        tokens = {
            "input": usage.input,
            "output": max(0, (usage.output or 0) - (usage.reasoning or 0)),
            "reasoning": usage.reasoning,
            "cache": {"read": usage.cache_read, "write": usage.cache_write},
        }
        return info | {
            "time": {"created": self.time, "completed": self.time},
            "parentID": self.prompt or id,
            "modelID": model,
            "providerID": provider,
            "mode": _AGENT,
            "path": {"cwd": self.outgoing.folder, "root": self.outgoing.folder},
            "cost": (call and call.cost_usd) or 0,
            "tokens": tokens,
        }

    def _advance(self, time: datetime) -> None:
        self.time = max(self.time + 1, to_milliseconds(time))

    def _identify(self, message: str, place: int, within: str = "") -> JsonDict:
        """Return the ids of a new part."""
        id = f"prt_{_make_ordered_id(self.time, place, message, within)}"
        return {"id": id, "sessionID": self.session, "messageID": message}


def _finish_reason(message: OutgoingMessage, call: ModelCalled | None) -> str:
    if call and call.stop_reason:
        return call.stop_reason
    calls = any(isinstance(block, ToolCall) for block in message.blocks)
    return "tool-calls" if calls else "stop"


def _make_metadata(native: Native | None) -> JsonDict | None:
    item = json.loads(native.item) if native else None
    match item:
        case {"type": "thinking", "signature": str(signature)}:
            return {ANTHROPIC: {"signature": signature}}
        case {"type": "redacted_thinking", "data": str(data)}:
            return {ANTHROPIC: {"redactedData": data}}
        case {"type": "reasoning", "id": str(id), "encrypted_content": str(sealed)}:
            assert native
            if native.provider == RESPONSES:
                return {"openai": {"itemId": id, "reasoningEncryptedContent": sealed}}
            return None
        case _:
            return None


def _make_digest(*of: object) -> str:
    return blake2b("/".join(map(str, of)).encode(), digest_size=13).hexdigest()


def _make_ordered_id(time: int, place: int, *of: object) -> str:
    """Return what opencode's ids have after their prefix: their order first."""
    return f"{(time * 0x1000 + place) & 0xFFFFFFFFFFFF:012x}{_make_digest(*of, place)[:14]}"


def _make_file(media: Media) -> JsonDict:
    name = {"filename": media.name} if media.name else {}
    return {"mime": media.mime, "url": make_media_address(media)} | name


def _derive_session_id(key: str) -> str:
    """Derive an opencode id from a key, always the same."""
    return key if key.startswith("ses_") else f"ses_{_make_digest(key)}"
