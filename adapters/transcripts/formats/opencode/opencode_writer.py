"""Writes a session as an opencode export: own entries unchanged, others converted."""

import json
from collections.abc import Iterator
from hashlib import blake2b

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from .....domain.compaction_events import Trigger
from .....domain.session_events import ModelCalled
from .. import json_lines
from ..fields import JsonDict
from ..media_text import make_media_address
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    group_own_entries,
    to_milliseconds,
)
from ..placeholders import fill_entry
from ..summary_mark import make_marked_text, make_summary_mark
from .message_parts import (
    ANTHROPIC,
    FORMAT_NAME,
    OPENCODE_MESSAGE_PREFIX,
    OPENCODE_SESSION_ENTRY,
    PART_PREFIX,
    PRUNED_TEXT,
    RESPONSES,
)

_AGENT = "build"
_DIRECTORY = "/"
OPENCODE_VERSION = "1.0.0"


def make_session_id(outgoing: OutgoingSession, header: JsonDict | None = None) -> str:
    match header:
        case {"info": {"id": str(id)}}:
            return id
        case _:
            return derive_opencode_id(outgoing.key)


def derive_opencode_id(key: str) -> str:
    """Derive an opencode id from a key, always the same."""
    return key if key.startswith("ses_") else f"ses_{_make_digest(key)}"


class OpencodeMessageBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.session = derive_opencode_id(outgoing.key)
        self.prompt: str | None = None
        self.calls: dict[str, JsonDict] = {}
        self.ids: list[tuple[int, str]] = []
        """For each message, its first position and its id."""
        self.number = 0
        self.last = to_milliseconds(outgoing.opened_at)

    def note_open_call(self, call: str, part: JsonDict) -> None:
        """Record an open call of opencode, which cutbank's result may answer."""
        self.calls[call] = part

    def follow_message(self, info: JsonDict, id: str) -> None:
        if info.get("role") == "user":
            self.prompt = id

    def make_header(self) -> JsonDict:
        opened = to_milliseconds(self.outgoing.opened_at)
        parent = self.outgoing.parent
        return {
            "id": self.session,
            "slug": _make_digest(self.outgoing.key)[:12],
            "projectID": "global",
            "directory": _DIRECTORY,
            **({"parentID": derive_opencode_id(parent.key)} if parent else {}),
            "title": self.outgoing.title or self.outgoing.key,
            "version": OPENCODE_VERSION,
            "time": {"created": opened, "updated": max(opened, self.last)},
        }

    def build_message(self, message: OutgoingMessage) -> list[JsonDict]:
        """Return the message; none for results, which are part of their calls."""
        first = message.outgoing_blocks[0]
        self.last = to_milliseconds(get_block_time(first))
        if isinstance(first.block, ToolResult):
            for said in message.outgoing_blocks:
                self._fill_result(said)
            return []
        if message.role in ("user", "developer"):
            return self._build_user(message)
        return self._build_assistant(message)

    def build_compaction(self, compacted: OutgoingCompaction) -> list[JsonDict]:
        """Return a compaction in opencode's form: the request, and the summary as its answer."""
        if compacted.summary is None:
            self.outgoing.count_loss("compactions without a summary")
            return []
        self.last = to_milliseconds(compacted.time)
        position = compacted.boundary.after
        asked = self._make_info("user", position, "c")
        part = self._make_part(asked, "compaction", 0)
        part["auto"] = compacted.boundary.trigger is not Trigger.MANUAL
        if compacted.boundary.trigger is Trigger.OVERFLOW:
            part["overflow"] = True
        kept = compacted.boundary.kept
        if tail := next((id for at, id in self.ids if at in kept), None):
            part["tail_start_id"] = tail
        answer = self._make_info("assistant", position, "s")
        answer |= {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
        text = self._make_part(answer, "text", 0) | {"text": compacted.summary.text}
        return [{"info": asked, "parts": [part]}, {"info": answer, "parts": [text]}]

    def _build_user(self, message: OutgoingMessage) -> list[JsonDict]:
        info = self._make_info("user", message.outgoing_blocks[0].position)
        self.ids.append((message.outgoing_blocks[0].position, info["id"]))
        parts: list[JsonDict] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                part = self._make_part(info, "file", len(parts)) | self._make_file(block.media)
            else:
                part = self._make_part(info, "text", len(parts)) | {
                    "text": make_marked_text(block),
                    **make_summary_mark(block),
                }
                if block.kind is Kind.DEVELOPER:
                    part["synthetic"] = True
            parts.append(part)
        return [{"info": info, "parts": parts}]

    def _build_assistant(self, message: OutgoingMessage) -> list[JsonDict]:
        call = message.call
        info = self._make_info("assistant", message.outgoing_blocks[0].position, call=call)
        self.ids.append((message.outgoing_blocks[0].position, info["id"]))
        parts = [self._make_part(info, "step-start", 0)]
        for said in message.outgoing_blocks:
            for made in self._build_parts(said):
                parts.append(self._make_part(info, made.pop("type"), len(parts)) | made)
                if made.get("callID"):
                    self.calls[made["callID"]] = parts[-1]
        reason = info["finish"] = _finish_reason(message, call)
        end = self._make_part(info, "step-finish", len(parts))
        parts.append(end | {"reason": reason, "cost": info["cost"], "tokens": info["tokens"]})
        return [{"info": info, "parts": parts}]

    def _build_parts(self, said: OutgoingBlock) -> Iterator[JsonDict]:
        block: AnyBlock = said.block
        at = to_milliseconds(get_block_time(said))
        match block:
            case ToolCall():
                arguments = block.parse_arguments()
                if "_raw" in arguments:
                    self.outgoing.count_loss("tool arguments that are not a JSON object")
                state = {"status": "running", "input": arguments, "time": {"start": at}}
                yield {
                    "type": "tool",
                    "callID": block.tool_call_id,
                    "tool": block.name,
                    "state": state,
                }
            case Block(kind=Kind.THINKING):
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
        attachments: list[JsonDict] = []
        for one in () if isinstance(result.content, str) else result.content:
            if isinstance(one, Media):
                file = self._make_part(
                    {"id": part["messageID"]}, "file", len(attachments), part["id"]
                )
                attachments.append(file | self._make_file(one))
            elif isinstance(one, NativePart):
                self.outgoing.count_loss("parts of tool results in a provider's own form")
            else:
                assert isinstance(one, Text)
        if attachments:
            state["attachments"] = attachments

    def _make_file(self, media: Media) -> JsonDict:
        return {"mime": media.mime, "url": make_media_address(media)} | (
            {"filename": media.name} if media.name else {}
        )

    def _make_info(
        self, role: str, position: int, suffix: str = "", call: ModelCalled | None = None
    ) -> JsonDict:
        id = f"msg_{_make_digest(self.outgoing.key, position, suffix)}"
        info: JsonDict = {
            "id": id,
            "sessionID": self.session,
            "role": role,
            "time": {"created": self.last},
            "agent": _AGENT,
        }
        model = (call and call.model) or self.outgoing.model or "unknown"
        if role == "user":
            self.prompt = id
            return info | {"model": {"providerID": FORMAT_NAME, "modelID": model}}
        usage = call.usage if call else None
        reasoning = (usage and usage.reasoning) or 0
        tokens = {
            "input": (usage and usage.input) or 0,
            "output": max(0, ((usage and usage.output) or 0) - reasoning),
            "reasoning": reasoning,
            "cache": {
                "read": (usage and usage.cache_read) or 0,
                "write": (usage and usage.cache_write) or 0,
            },
        }
        return info | {
            "time": {"created": self.last, "completed": self.last},
            "parentID": self.prompt or id,
            "modelID": model,
            "providerID": FORMAT_NAME,
            "mode": _AGENT,
            "path": {"cwd": _DIRECTORY, "root": _DIRECTORY},
            "cost": (call and call.cost_usd) or 0,
            "tokens": tokens,
        }

    def _make_part(self, info: JsonDict, kind: str, place: int, within: str = "") -> JsonDict:
        id = f"prt_{_make_digest(info['id'], within, place)}"
        return {"id": id, "sessionID": self.session, "messageID": info["id"], "type": kind}


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


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    document = OpencodeDocument(outgoing)
    document.put_all()
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    yield json_lines.encode_document(document.build())


class OpencodeDocument:
    """An export that is being built. Of entries with one id, it holds the last version."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.header: JsonDict | None = None
        self.messages: dict[str, JsonDict] = {}
        self.parts: dict[str, dict[str, JsonDict]] = {}
        self.places: dict[str, JsonDict] = {}
        self.made = OpencodeMessageBuilder(outgoing)

    def put_all(self) -> None:
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                self._restore(one)
                continue
            self._drop_reverted()
            self._add_messages(
                self.made.build_message(one)
                if isinstance(one, OutgoingMessage)
                else self.made.build_compaction(one)
            )

    def _drop_reverted(self) -> None:
        """Remove what opencode reverted, as opencode does when something follows."""
        match self.header:
            case {"info": {"revert": revert} as info}:
                del info["revert"]
                first = revert.get("messageID") if isinstance(revert, dict) else None
                ids = list(self.messages)
                for id in ids[ids.index(first) :] if first in ids else ():
                    del self.messages[id]

    def build(self) -> JsonDict:
        """Return the document. A new message gets a session title as in opencode."""
        header = self.header or {"info": self.made.make_header()}
        for id, message in self.messages.items():
            message["parts"] = list(self.parts[id].values())
        return header | {"messages": list(self.messages.values())}

    def _add_messages(self, made: list[JsonDict]) -> None:
        for message in made:
            id = message["info"]["id"]
            self.messages[id] = message
            self.parts[id] = {part["id"]: part for part in message["parts"]}

    def _restore(self, entry: OutgoingEntry) -> None:
        said = entry.outgoing_blocks[0]
        block, origin = said.block, said.block.origin
        assert origin, "an entry has an origin"
        id = origin.id or ""
        if entry.raw is not None and block.kind is Kind.NOTE:
            self._restore_raw(getattr(block, "name", None) or "", id, json.loads(entry.raw))
        elif entry.remainder is not None and not self._is_retracted(entry):
            whole = fill_entry(entry.remainder, [one.block for one in entry.outgoing_blocks])
            if (known := self.places.get(id)) and block.kind is not Kind.TOOL_CALL:
                state = known.get("state", {}) | whole.pop("state", {})
                known |= whole | ({"state": state} if state else {})
            else:
                self._place_part(id, whole)
            if block.kind is Kind.TOOL_CALL:
                self.made.note_open_call(getattr(block, "tool_call_id", ""), self.places[id])

    def _restore_raw(self, kind: str, id: str, item: JsonDict) -> None:
        if kind == OPENCODE_SESSION_ENTRY:
            self.header = item
            self.made.session = make_session_id(self.outgoing, item)
        elif kind.startswith(OPENCODE_MESSAGE_PREFIX):
            self.messages[id] = item
            self.parts.setdefault(id, {})
            self.made.follow_message(item["info"], id)
        elif kind.startswith(PART_PREFIX):
            self._place_part(id, item)
        elif kind == PRUNED_TEXT and item["id"] in self.places:
            state = self.places[item["id"]]["state"]
            state["time"] = state.get("time", {}) | {"compacted": item["compacted"]}

    def _place_part(self, id: str, part: JsonDict) -> None:
        named = part.get("messageID")
        newest = next(reversed(self.messages), "")
        owner = named if isinstance(named, str) and named in self.messages else newest
        self.parts.setdefault(owner, {})[id] = part
        self.places[id] = part

    def _is_retracted(self, entry: OutgoingEntry) -> bool:
        """Return whether cutbank retracted it; opencode's own reverts are in the header."""
        reverted = "revert" in (self.header or {}).get("info", {})
        return not reverted and all(one.is_retracted for one in entry.outgoing_blocks)
