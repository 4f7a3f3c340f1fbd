"""Makes opencode messages of what another source, or cutbank itself, recorded."""

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
from ..content.media_text import address_of
from ..content.moments import milliseconds, said_at
from ..outgoing import Compacted, Message, Outgoing, Said
from ..reading.fields import Item
from ..summary_mark import mark_of
from ..writing.as_text import marked_text
from .names import ANTHROPIC, NAME, RESPONSES

AGENT = "build"
DIRECTORY = "/"
VERSION = "1.0.0"


def id_of(outgoing: Outgoing, header: Item | None = None) -> str:
    """The session's id, as opencode writes ids."""
    match header:
        case {"info": {"id": str(id)}}:
            return id
        case _:
            return session_id(outgoing.key)


def session_id(key: str) -> str:
    """A key that is no opencode id becomes one, always the same."""
    return key if key.startswith("ses_") else f"ses_{_digest(key)}"


class Made:
    """The messages that were made so far."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.session = session_id(outgoing.key)
        self.prompt: str | None = None
        """The id of the last user message."""
        self.calls: dict[str, Item] = {}
        """The parts of tool calls that wait for their results."""
        self.ids: list[tuple[int, str]] = []
        """For each message its first position and its id."""
        self.number = 0
        self.last = milliseconds(outgoing.opened)

    def answers(self, call: str, part: Item) -> None:
        """A call that opencode recorded may be answered by what cutbank recorded."""
        self.calls[call] = part

    def follow(self, info: Item, id: str) -> None:
        """What is made follows this message."""
        if info.get("role") == "user":
            self.prompt = id

    def info(self) -> Item:
        """The header of a session that did not come from opencode."""
        opened = milliseconds(self.outgoing.opened)
        parent = self.outgoing.parent
        return {
            "id": self.session,
            "slug": _digest(self.outgoing.key)[:12],
            "projectID": "global",
            "directory": DIRECTORY,
            **({"parentID": session_id(parent.key)} if parent else {}),
            "title": self.outgoing.title or self.outgoing.key,
            "version": VERSION,
            "time": {"created": opened, "updated": max(opened, self.last)},
        }

    def message(self, message: Message) -> list[Item]:
        """The message; none for results, which stand in the parts of their calls."""
        first = message.said[0]
        self.last = milliseconds(said_at(first))
        if isinstance(first.block, ToolResult):
            for said in message.said:
                self._answer(said)
            return []
        if message.role in ("user", "developer"):
            return self._user(message)
        return self._assistant(message)

    def compaction(self, compacted: Compacted) -> list[Item]:
        """A compaction as opencode's own: who asks for it, and the summary that answers."""
        if compacted.summary is None:
            self.outgoing.lose("compactions without a summary")
            return []
        self.last = milliseconds(compacted.time)
        position = compacted.boundary.after
        asked = self._info("user", position, "c")
        part = self._part(asked, "compaction", 0)
        part["auto"] = compacted.boundary.trigger is not Trigger.MANUAL
        if compacted.boundary.trigger is Trigger.OVERFLOW:
            part["overflow"] = True
        kept = compacted.boundary.kept
        if tail := next((id for at, id in self.ids if at in kept), None):
            part["tail_start_id"] = tail
        answer = self._info("assistant", position, "s")
        answer |= {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
        text = self._part(answer, "text", 0) | {"text": compacted.summary.text}
        return [{"info": asked, "parts": [part]}, {"info": answer, "parts": [text]}]

    def _user(self, message: Message) -> list[Item]:
        info = self._info("user", message.said[0].position)
        self.ids.append((message.said[0].position, info["id"]))
        parts: list[Item] = []
        for block in message.blocks:
            if isinstance(block, Block) and block.media:
                part = self._part(info, "file", len(parts)) | self._file(block.media)
            else:
                part = self._part(info, "text", len(parts)) | {
                    "text": marked_text(block),
                    **mark_of(block),
                }
                if block.kind is Kind.DEVELOPER:
                    part["synthetic"] = True
            parts.append(part)
        return [{"info": info, "parts": parts}]

    def _assistant(self, message: Message) -> list[Item]:
        call = message.call
        info = self._info("assistant", message.said[0].position, call=call)
        self.ids.append((message.said[0].position, info["id"]))
        parts = [self._part(info, "step-start", 0)]
        for said in message.said:
            for made in self._made(said):
                parts.append(self._part(info, made.pop("type"), len(parts)) | made)
                if made.get("callID"):
                    self.calls[made["callID"]] = parts[-1]
        reason = info["finish"] = _finish(message, call)
        end = self._part(info, "step-finish", len(parts))
        parts.append(end | {"reason": reason, "cost": info["cost"], "tokens": info["tokens"]})
        return [{"info": info, "parts": parts}]

    def _made(self, said: Said) -> Iterator[Item]:
        block: AnyBlock = said.block
        at = milliseconds(said_at(said))
        match block:
            case ToolCall():
                arguments = block.parsed()
                if "_raw" in arguments:
                    self.outgoing.lose("tool arguments that are no JSON object")
                state = {"status": "running", "input": arguments, "time": {"start": at}}
                yield {
                    "type": "tool",
                    "callID": block.tool_call_id,
                    "tool": block.name,
                    "state": state,
                }
            case Block(kind=Kind.THINKING):
                metadata = _metadata(block.native)
                if block.native and not metadata:
                    self.outgoing.lose("a provider's own reasoning items")
                if block.text or metadata:
                    more = {"metadata": metadata} if metadata else {}
                    time = {"start": at, "end": at}
                    yield {"type": "reasoning", "text": block.text, "time": time} | more
            case Block(text=text) if text:
                yield {"type": "text", "text": text, "time": {"start": at, "end": at}}
            case _:
                self.outgoing.lose("a provider's own items")

    def _answer(self, said: Said) -> None:
        result = said.block
        assert isinstance(result, ToolResult)
        part = self.calls.pop(result.tool_call_id, None)
        if part is None:
            self.outgoing.lose("tool results without a call")
            return
        state = part["state"]
        start, end = state.get("time", {}).get("start", 0), milliseconds(said_at(said))
        state["time"] = {"start": start, "end": max(start, end)}
        if result.is_error:
            if result.media:
                self.outgoing.lose("images and documents in failed tool results")
            state |= {"status": "error", "error": result.text}
            return
        state |= {"status": "completed", "output": result.text, "title": "", "metadata": {}}
        attachments: list[Item] = []
        for one in () if isinstance(result.content, str) else result.content:
            if isinstance(one, Media):
                file = self._part({"id": part["messageID"]}, "file", len(attachments), part["id"])
                attachments.append(file | self._file(one))
            elif isinstance(one, NativePart):
                self.outgoing.lose("parts of tool results in a provider's own form")
            else:
                assert isinstance(one, Text)
        if attachments:
            state["attachments"] = attachments

    def _file(self, media: Media) -> Item:
        return {"mime": media.mime, "url": address_of(media)} | (
            {"filename": media.name} if media.name else {}
        )

    def _info(
        self, role: str, position: int, suffix: str = "", call: ModelCalled | None = None
    ) -> Item:
        id = f"msg_{_digest(self.outgoing.key, position, suffix)}"
        info: Item = {
            "id": id,
            "sessionID": self.session,
            "role": role,
            "time": {"created": self.last},
            "agent": AGENT,
        }
        model = (call and call.model) or self.outgoing.model or "unknown"
        if role == "user":
            self.prompt = id
            return info | {"model": {"providerID": NAME, "modelID": model}}
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
            "providerID": NAME,
            "mode": AGENT,
            "path": {"cwd": DIRECTORY, "root": DIRECTORY},
            "cost": (call and call.cost_usd) or 0,
            "tokens": tokens,
        }

    def _part(self, info: Item, kind: str, place: int, within: str = "") -> Item:
        id = f"prt_{_digest(info['id'], within, place)}"
        return {"id": id, "sessionID": self.session, "messageID": info["id"], "type": kind}


def _finish(message: Message, call: ModelCalled | None) -> str:
    if call and call.stop_reason:
        return call.stop_reason
    calls = any(isinstance(block, ToolCall) for block in message.blocks)
    return "tool-calls" if calls else "stop"


def _metadata(native: Native | None) -> Item | None:
    """What opencode keeps of a thought for its provider."""
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


def _digest(*of: object) -> str:
    return blake2b("/".join(map(str, of)).encode(), digest_size=13).hexdigest()
