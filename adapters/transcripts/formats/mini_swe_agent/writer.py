"""Writes a session as a trajectory of mini-SWE-agent."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import ToolCall, ToolResult
from .....domain.messages import Role
from .....projections.rendering import summary_message
from ..openhands.usage import report_of
from ..outgoing import Called, Compacted, Entry, Message, Outgoing
from ..reading.fields import Item
from ..summary_mark import MARK
from ..writing.chat_content import answered, thoughts, written
from ..writing.own_entries import Restorer, name_of, own_entries
from .messages import BY, NAME
from .reader import AROUND


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The trajectory as one document; as a list, where it was one."""
    run = _Run(outgoing)
    run.fill()
    listed = run.around is None and outgoing.source == NAME and run.owned and not run.made
    around = run.around if run.around is not None else _around(outgoing)
    whole = run.messages if listed else {**around, "messages": run.messages}
    yield json.dumps(whole, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


class _Run:
    """What was written of a session so far."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.restorer = Restorer()
        self.around: Item | None = None
        """What the source told beside its messages; None where it told nothing."""
        self.owned = self.made = False
        """Whether there are messages of the source, and others."""
        self.messages: list[Any] = []
        self.prompted = False

    def fill(self) -> None:
        for part in own_entries(self.outgoing, NAME, with_refused=True):
            match part:
                case Entry():
                    self._own(part)
                    continue
                case Compacted(summary=None):
                    self._prompt()
                    self.outgoing.lose("compactions without a summary")
                case Compacted(summary=summary):
                    self._prompt()
                    assert summary, "the other case"
                    text = summary_message.wrapped(summary.text, summary.covers)
                    self.messages.append(_user(text, "developer") | MARK)
                case Message():
                    self._prompt()
                    self._message(part)
            self.made = True
        self._prompt()

    def _own(self, entry: Entry) -> None:
        if entry.rest is None and name_of(entry) == AROUND:
            self.around = json.loads(entry.raw or "{}")
            return
        message = self.restorer.restore(entry)
        if message is not None:
            self.owned = True
            self.prompted |= isinstance(message, dict) and message.get("role") == "system"
            self.messages.append(message)

    def _prompt(self) -> None:
        prompt = self.outgoing.system_prompt
        if not self.prompted and prompt is not None:
            self.messages.append({"role": "system", "content": prompt})
        self.prompted = True

    def _message(self, message: Message) -> None:
        match message.role:
            case Role.ASSISTANT:
                self.messages.append(self._assistant(message))
            case Role.TOOL_RESULT:
                self.messages += [self._answer(block) for block in message.blocks]
            case role:
                content = written(message.blocks, self.outgoing)
                self.messages.append(_user(content, "user" if role is Role.USER else "developer"))

    def _assistant(self, message: Message) -> Item:
        blocks = message.blocks
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        said: Item = {"role": "assistant", "content": written(blocks, self.outgoing)}
        if calls:
            said["tool_calls"] = [
                {
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        extra: Item = {"actions": [_action(call) for call in calls]}
        if called := message.call:
            response: Item = {"id": called.call_id, "model": called.model}
            if called.stop_reason:
                response["choices"] = [{"index": 0, "finish_reason": called.stop_reason}]
            if called.usage:
                response["usage"] = report_of(called.usage)
            extra |= {"response": response, "cost": called.cost_usd or 0.0}
        return said | thoughts(blocks, self.outgoing) | {"extra": extra}

    def _answer(self, block: Any) -> Item:
        assert isinstance(block, ToolResult), "a message of a tool"
        content = answered(block, self.outgoing)
        extra: Item = {"raw_output": block.text, "returncode": -1 if block.is_error else 0}
        extra["exception_info"] = "the tool failed" if block.is_error else ""
        return {
            "role": "tool",
            "tool_call_id": block.tool_call_id,
            "content": content,
            "extra": extra,
        }


def _user(content: str | list[Item], by: str) -> Item:
    return {"role": "user", "content": content, "extra": {BY: by}}


def _action(call: ToolCall) -> Item:
    command = call.parsed().get("command")
    told = command if isinstance(command, str) else f"{call.name} {call.arguments}"
    return {"command": told, "tool_call_id": call.tool_call_id}


def _around(outgoing: Outgoing) -> Item:
    calls = [part.call for part in outgoing.parts() if isinstance(part, Called)]
    cost = sum(call.cost_usd or 0.0 for call in calls)
    return {
        "info": {
            "model_stats": {"instance_cost": cost, "api_calls": len(calls)},
            "config": {"model": {"model_name": outgoing.model or "unknown"}},
            "exit_status": None,
            "submission": None,
        },
        "trajectory_format": "mini-swe-agent-1.1",
    }
