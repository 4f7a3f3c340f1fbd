"""Writes a session as OpenHands did before its SDK: a list of actions and observations."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, Text, ToolCall, ToolResult
from .....domain.messages import Role
from ..content.media_text import address_of
from ..outgoing import Compacted, Entry, Message, Outgoing, Said
from ..writing.own_entries import Restorer, name_of, own_entries
from .usage import report_of
from .v0_reader import LINE, NAME
from .v1_events import time_of

Event = dict[str, Any]


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The list of events; or the line that the session was, where it was one."""
    session = _Session(outgoing)
    events = list(session.events())
    whole = {**session.line, "history": events} if session.line is not None else events
    yield json.dumps(whole, ensure_ascii=False).encode(errors="replace") + b"\n"


class _Session:
    """What was written of a session so far."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.restorer = Restorer()
        self.line: Event | None = None
        """What stands around the events."""
        self.next = 0
        """The id of the next event."""
        self.shown: dict[int, tuple[int, ...]] = {}
        """The events in view, each with the positions of its blocks."""
        self.causes: dict[str, tuple[int, Event]] = {}
        """Each tool call's event, and what is told of the call."""
        self.prompted = False

    def events(self) -> Iterator[Event]:
        for part in own_entries(self.outgoing, NAME, with_refused=True):
            match part:
                case Entry():
                    event = self._own(part)
                    if event is not None:
                        yield event
                case Compacted():
                    yield from self._prompt()
                    yield self._condensation(part)
                case Message():
                    yield from self._prompt()
                    yield from self._message(part)
        yield from self._prompt()

    def _own(self, entry: Entry) -> Event | None:
        if name_of(entry) == LINE and entry.rest is None:
            self.line = json.loads(entry.raw or "{}")
            return None
        event = self.restorer.restore(entry)
        if not isinstance(event, dict):
            return None
        self.prompted |= event.get("action") == "system"
        id = event.get("id")
        if type(id) is int:
            self.next = max(self.next, id + 1)
            if entry.rest is not None:
                self.shown[id] = tuple(said.position for said in entry.said)
            for said in entry.said:
                if isinstance(said.block, ToolCall):
                    told = event.get("tool_call_metadata") or {}
                    self.causes[said.block.tool_call_id] = id, told
        return event

    def _event(self, source: str, message: str, time: str) -> Event:
        self.next += 1
        return {"id": self.next - 1, "timestamp": time, "source": source, "message": message}

    def _prompt(self) -> Iterator[Event]:
        outgoing = self.outgoing
        if not self.prompted and (outgoing.system_prompt is not None or outgoing.tools):
            prompt = outgoing.system_prompt or ""
            time = outgoing.opened.replace(tzinfo=None).isoformat(timespec="microseconds")
            yield self._event("agent", prompt, time) | {
                "action": "system",
                "args": {
                    "content": prompt,
                    "tools": list(outgoing.tools),
                    "openhands_version": None,
                    "agent_class": "CodeActAgent",
                },
            }
        self.prompted = True

    def _message(self, message: Message) -> Iterator[Event]:
        said = message.said
        match message.role:
            case Role.TOOL_RESULT:
                for one in said:
                    yield self._observation(one)
            case Role.DEVELOPER:
                for one in said:
                    yield self._recalled(one)
            case Role.ASSISTANT if any(isinstance(one.block, ToolCall) for one in said):
                yield from self._calls(message)
            case role:
                yield self._words(role, said)

    def _words(self, role: Role, said: Sequence[Said]) -> Event:
        text, images = self._content([one.block for one in said])
        source = "agent" if role is Role.ASSISTANT else "user"
        event = self._event(source, text, time_of(said[0])) | {
            "action": "message",
            "args": {"content": text, "image_urls": images or None, "wait_for_response": False},
        }
        return self._placed(event, said)

    def _recalled(self, said: Said) -> Event:
        # What the program told the model has no other place than beside what it looked up.
        name = said.block.name if isinstance(said.block, Block) else None
        known = {"name": name or "", "trigger": "", "content": said.block.text}
        event = self._event("environment", "Added microagent knowledge", time_of(said)) | {
            "observation": "recall",
            "content": "Added microagent knowledge",
            "extras": {"recall_type": "knowledge", "microagent_knowledge": [known]},
        }
        return self._placed(event, [said])

    def _calls(self, message: Message) -> Iterator[Event]:
        response = self._response(message)
        calls = [one for one in message.said if isinstance(one.block, ToolCall)]
        others = [one for one in message.said if not isinstance(one.block, ToolCall)]
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
            event = self._event("agent", f"Calling {call.name}", time_of(one)) | {
                "action": "call_tool_mcp",
                "tool_call_metadata": told,
                "args": {
                    "name": call.name,
                    "arguments": call.parsed(),
                    "thought": "" if index else thought,
                },
            }
            self.causes[call.tool_call_id] = event["id"], told
            yield self._placed(event, [one] if index else [*others, one])

    def _response(self, message: Message) -> Event:
        blocks = [one.block for one in message.said]
        text, images = self._content(blocks)
        if images:
            self.outgoing.lose("images in the model's messages", len(images))
        call = message.call
        made = f"{self.outgoing.key}:{message.said[0].position}"
        answer: Event = {
            "role": "assistant",
            "content": text or None,
            "tool_calls": [
                {
                    "id": block.tool_call_id,
                    "type": "function",
                    "function": {"name": block.name, "arguments": block.arguments},
                }
                for block in blocks
                if isinstance(block, ToolCall)
            ],
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
                    "message": answer | self._thoughts(blocks),
                }
            ],
            "usage": report_of(usage) if usage else None,
        }

    def _observation(self, said: Said) -> Event:
        result = said.block
        assert isinstance(result, ToolResult), "a message of a tool"
        cause, told = self.causes.get(result.tool_call_id, (None, {}))
        parts = (Text(text=result.content),) if isinstance(result.content, str) else result.content
        images = [
            address_of(part) for part in parts if isinstance(part, Media) and part.type == "image"
        ]
        others = [part for part in parts if not isinstance(part, Text)]
        if len(others) > len(images):
            lost = "parts of tool results that are neither text nor images"
            self.outgoing.lose(lost, len(others) - len(images))
        texts = [part.text for part in parts if isinstance(part, Text)]
        event = self._event("agent", "", time_of(said)) | {
            "cause": cause,
            "observation": "error" if result.is_error else "mcp",
            "tool_call_metadata": told,
            "content": "\n".join(texts),
            "extras": {"image_urls": images} if images else {},
        }
        return self._placed(event, [said])

    def _content(self, blocks: Sequence[AnyBlock]) -> tuple[str, list[str]]:
        texts: list[str] = []
        images: list[str] = []
        for block in blocks:
            match block:
                case Block(kind=Kind.IMAGE, media=Media() as media):
                    images.append(address_of(media))
                case Block(kind=Kind.DOCUMENT):
                    self.outgoing.lose("documents")
                case Block(kind=Kind.THINKING) | ToolCall():
                    pass
                case _ if block.text:
                    texts.append(block.text)
                case _ if block.native:
                    self.outgoing.lose("items that only their provider understands")
                case _:
                    pass
        return "\n\n".join(texts), images

    def _thoughts(self, blocks: Sequence[AnyBlock]) -> Event:
        found: Event = {}
        for block in blocks:
            if block.kind is not Kind.THINKING:
                continue
            if block.native and block.native.provider == "anthropic":
                found.setdefault("thinking_blocks", []).append(json.loads(block.native.item))
            elif block.native:
                self.outgoing.lose("items that only their provider understands")
            elif block.text:
                before = found.get("reasoning_content")
                found["reasoning_content"] = f"{before}\n\n{block.text}" if before else block.text
        return found

    def _condensation(self, part: Compacted) -> Event:
        boundary = part.boundary
        gone = [
            id
            for id, positions in self.shown.items()
            if not any(position in boundary.kept for position in positions)
        ]
        for id in gone:
            del self.shown[id]
        changed = len(boundary.trims) + len(boundary.replacements)
        if changed:
            self.outgoing.lose("blocks that are shown shortened", changed)
        time = part.time.replace(tzinfo=None).isoformat(timespec="microseconds")
        prompted = self.outgoing.system_prompt is not None or bool(self.outgoing.tools)
        return self._event("agent", "", time) | {
            "action": "condensation",
            "args": {
                "forgotten_event_ids": gone,
                "forgotten_events_start_id": None,
                "forgotten_events_end_id": None,
                "summary": part.summary.text if part.summary else None,
                "summary_offset": int(prompted),
            },
        }

    def _placed(self, event: Event, said: Sequence[Said]) -> Event:
        self.shown[event["id"]] = tuple(one.position for one in said)
        return event
