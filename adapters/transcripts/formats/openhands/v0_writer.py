"""Writes a session in the older format of OpenHands: a list of actions and observations."""

import json
from collections.abc import Iterator, Sequence

from .....domain.blocks import AnyBlock, Block, Kind, Media, Text, ToolCall, ToolResult
from .....domain.messages import Role
from ..chat_content import make_call_items
from ..fields import JsonDict
from ..media_text import make_media_address
from ..outgoing import (
    EntryRestorer,
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from .call_usage import make_usage_report
from .v0_reader import FORMAT_NAME, LINE_ENTRY
from .v1_writer import forget_events, format_local_time


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the list of events, or the original line if the session was one."""
    session = _V0SessionWriter(outgoing)
    events = list(session.write_events())
    whole = {**session.line, "history": events} if session.line is not None else events
    yield json.dumps(whole, ensure_ascii=False).encode(errors="replace") + b"\n"


class _V0SessionWriter:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.restorer = EntryRestorer()
        self.line: JsonDict | None = None
        """The original fields around the events."""
        self.next = 0
        self.shown: dict[int, tuple[int, ...]] = {}
        """The events in view, each with the positions of its blocks."""
        self.causes: dict[str, tuple[int, JsonDict]] = {}
        self.prompted = False

    def write_events(self) -> Iterator[JsonDict]:
        for part in group_own_entries(self.outgoing, FORMAT_NAME, with_refused=True):
            match part:
                case OutgoingEntry():
                    event = self._restore_event(part)
                    if event is not None:
                        yield event
                case OutgoingCompaction():
                    yield from self._write_prompt()
                    yield self._make_condensation(part)
                case OutgoingMessage():
                    yield from self._write_prompt()
                    yield from self._write_message(part)
        yield from self._write_prompt()

    def _restore_event(self, entry: OutgoingEntry) -> JsonDict | None:
        if read_entry_type(entry) == LINE_ENTRY and entry.remainder is None:
            self.line = json.loads(entry.raw or "{}")
            return None
        event = self.restorer.restore(entry)
        if not isinstance(event, dict):
            return None
        self.prompted |= event.get("action") == "system"
        id = event.get("id")
        if type(id) is int:
            self.next = max(self.next, id + 1)
            if entry.remainder is not None:
                self.shown[id] = tuple(said.position for said in entry.outgoing_blocks)
            for said in entry.outgoing_blocks:
                if isinstance(said.block, ToolCall):
                    told = event.get("tool_call_metadata") or {}
                    self.causes[said.block.tool_call_id] = id, told
        return event

    def _make_event(self, source: str, message: str, time: str) -> JsonDict:
        self.next += 1
        return {"id": self.next - 1, "timestamp": time, "source": source, "message": message}

    def _write_prompt(self) -> Iterator[JsonDict]:
        outgoing = self.outgoing
        if not self.prompted and (outgoing.system_prompt is not None or outgoing.tools):
            prompt = outgoing.system_prompt or ""
            time = outgoing.opened_at.replace(tzinfo=None).isoformat(timespec="microseconds")
            yield self._make_event("agent", prompt, time) | {
                "action": "system",
                "args": {
                    "content": prompt,
                    "tools": list(outgoing.tools),
                    "openhands_version": None,
                    "agent_class": "CodeActAgent",
                },
            }
        self.prompted = True

    def _write_message(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        said = message.outgoing_blocks
        match message.role:
            case Role.TOOL_RESULT:
                for one in said:
                    yield self._make_observation(one)
            case Role.DEVELOPER:
                for one in said:
                    yield self._make_recall(one)
            case Role.ASSISTANT if any(isinstance(one.block, ToolCall) for one in said):
                yield from self._write_calls(message)
            case role:
                yield self._make_message(role, said)

    def _make_message(self, role: Role, said: Sequence[OutgoingBlock]) -> JsonDict:
        text, images = self._make_content([one.block for one in said])
        source = "agent" if role is Role.ASSISTANT else "user"
        event = self._make_event(source, text, format_local_time(said[0])) | {
            "action": "message",
            "args": {"content": text, "image_urls": images or None, "wait_for_response": False},
        }
        return self._place_event(event, said)

    def _make_recall(self, said: OutgoingBlock) -> JsonDict:
        # The only place for the program's text is a recall observation.
        name = said.block.name if isinstance(said.block, Block) else None
        known = {"name": name or "", "trigger": "", "content": said.block.text}
        event = self._make_event(
            "environment", "Added microagent knowledge", format_local_time(said)
        ) | {
            "observation": "recall",
            "content": "Added microagent knowledge",
            "extras": {"recall_type": "knowledge", "microagent_knowledge": [known]},
        }
        return self._place_event(event, [said])

    def _write_calls(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        response = self._make_response(message)
        calls = [one for one in message.outgoing_blocks if isinstance(one.block, ToolCall)]
        others = [one for one in message.outgoing_blocks if not isinstance(one.block, ToolCall)]
        thought = response["choices"][0]["message"]["content"] or ""
        for index, one in enumerate(calls):
            call = one.block
            assert isinstance(call, ToolCall), "only calls were taken"
            told = {
                "function_name": call.name,
                "tool_call_id": call.tool_call_id,
                "model_response": response,
                "total_calls_in_response": len(calls),
            }
            event = self._make_event("agent", f"Calling {call.name}", format_local_time(one)) | {
                "action": "call_tool_mcp",
                "tool_call_metadata": told,
                "args": {
                    "name": call.name,
                    "arguments": call.parse_arguments(),
                    "thought": "" if index else thought,
                },
            }
            self.causes[call.tool_call_id] = event["id"], told
            yield self._place_event(event, [one] if index else [*others, one])

    def _make_response(self, message: OutgoingMessage) -> JsonDict:
        blocks = [one.block for one in message.outgoing_blocks]
        text, images = self._make_content(blocks)
        if images:
            self.outgoing.count_loss("images in the model's messages", len(images))
        call = message.call
        made = f"{self.outgoing.key}:{message.outgoing_blocks[0].position}"
        answer: JsonDict = {
            "role": "assistant",
            "content": text or None,
            "tool_calls": make_call_items(blocks),
        }
        usage = call.usage if call else None
        return {
            "id": call.call_id if call else made,
            "object": "chat.completion",
            "created": 0,
            "model": (call.model if call else None) or self.outgoing.model or "unknown",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": (call.stop_reason if call else None) or "tool_calls",
                    "message": answer | self._make_thoughts(blocks),
                }
            ],
            "usage": make_usage_report(usage) if usage else None,
        }

    def _make_observation(self, said: OutgoingBlock) -> JsonDict:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        cause, told = self.causes.get(result.tool_call_id, (None, {}))
        parts = (Text(text=result.content),) if isinstance(result.content, str) else result.content
        images = [
            make_media_address(part)
            for part in parts
            if isinstance(part, Media) and part.type == "image"
        ]
        others = [part for part in parts if not isinstance(part, Text)]
        if len(others) > len(images):
            lost = "parts of tool results that are neither text nor images"
            self.outgoing.count_loss(lost, len(others) - len(images))
        texts = [part.text for part in parts if isinstance(part, Text)]
        event = self._make_event("agent", "", format_local_time(said)) | {
            "cause": cause,
            "observation": "error" if result.is_error else "mcp",
            "tool_call_metadata": told,
            "content": "\n".join(texts),
            "extras": {"image_urls": images} if images else {},
        }
        return self._place_event(event, [said])

    def _make_content(self, blocks: Sequence[AnyBlock]) -> tuple[str, list[str]]:
        texts: list[str] = []
        images: list[str] = []
        for block in blocks:
            match block:
                case Block(kind=Kind.IMAGE, media=Media() as media):
                    images.append(make_media_address(media))
                case Block(kind=Kind.DOCUMENT):
                    self.outgoing.count_loss("documents")
                case Block(kind=Kind.THINKING) | ToolCall():
                    pass
                case _ if block.text:
                    texts.append(block.text)
                case _ if block.native:
                    self.outgoing.count_loss("items that only their provider understands")
        return "\n\n".join(texts), images

    def _make_thoughts(self, blocks: Sequence[AnyBlock]) -> JsonDict:
        found: JsonDict = {}
        for block in blocks:
            if block.kind is not Kind.THINKING:
                continue
            if block.native and block.native.provider == "anthropic":
                found.setdefault("thinking_blocks", []).append(json.loads(block.native.item))
            elif block.native:
                self.outgoing.count_loss("items that only their provider understands")
            elif block.text:
                before = found.get("reasoning_content")
                found["reasoning_content"] = f"{before}\n\n{block.text}" if before else block.text
        return found

    def _make_condensation(self, part: OutgoingCompaction) -> JsonDict:
        gone = forget_events(self.shown, part, self.outgoing)
        time = part.time.replace(tzinfo=None).isoformat(timespec="microseconds")
        prompted = self.outgoing.system_prompt is not None or bool(self.outgoing.tools)
        return self._make_event("agent", "", time) | {
            "action": "condensation",
            "args": {
                "forgotten_event_ids": gone,
                "forgotten_events_start_id": None,
                "forgotten_events_end_id": None,
                "summary": part.summary.text if part.summary else None,
                "summary_offset": int(prompted),
            },
        }

    def _place_event(self, event: JsonDict, said: Sequence[OutgoingBlock]) -> JsonDict:
        self.shown[event["id"]] = tuple(one.position for one in said)
        return event
