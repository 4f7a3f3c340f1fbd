"""Writes a session as a trajectory of mini-SWE-agent."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import ToolCall, ToolResult
from .....domain.messages import Role
from .....projections.rendering import summary_message
from ..chat_content import (
    make_answer_content,
    make_call_items,
    make_chat_content,
    make_shell_command,
    make_thought_fields,
)
from ..fields import JsonDict
from ..openhands.call_usage import make_usage_report
from ..outgoing import (
    EntryRestorer,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingSession,
    group_own_entries,
    read_entry_type,
)
from ..summary_mark import SUMMARY_MARK
from .mini_swe_agent_reader import AUTHOR_FIELD, FORMAT_NAME, MINI_SWE_AGENT_ENTRY


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the trajectory as one document, or as a list if it was one."""
    run = _TrajectoryBuilder(outgoing)
    run.fill()
    listed = run.around is None and outgoing.source == FORMAT_NAME and run.owned and not run.made
    around = run.around if run.around is not None else _make_info(outgoing)
    whole = run.messages if listed else {**around, "messages": run.messages}
    yield json.dumps(whole, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


class _TrajectoryBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.restorer = EntryRestorer()
        self.around: JsonDict | None = None
        """The source's fields around its messages; None if it had none."""
        self.owned = self.made = False
        """Whether there are messages of the source, and others."""
        self.messages: list[Any] = []
        self.prompted = False

    def fill(self) -> None:
        for part in group_own_entries(self.outgoing, FORMAT_NAME, with_refused=True):
            match part:
                case OutgoingEntry():
                    self._restore_entry(part)
                    continue
                case OutgoingCompaction(summary=None):
                    self._add_prompt()
                    self.outgoing.count_loss("compactions without a summary")
                case OutgoingCompaction(summary=summary):
                    self._add_prompt()
                    assert summary, "the other case"
                    text = summary_message.wrap_summary(summary.text, summary.covers)
                    self.messages.append(_make_user(text, "developer") | SUMMARY_MARK)
                case OutgoingMessage():
                    self._add_prompt()
                    self._add_message(part)
            self.made = True
        self._add_prompt()

    def _restore_entry(self, entry: OutgoingEntry) -> None:
        if entry.remainder is None and read_entry_type(entry) == MINI_SWE_AGENT_ENTRY:
            self.around = json.loads(entry.raw or "{}")
            return
        message = self.restorer.restore(entry)
        if message is not None:
            self.owned = True
            self.prompted |= isinstance(message, dict) and message.get("role") == "system"
            self.messages.append(message)

    def _add_prompt(self) -> None:
        prompt = self.outgoing.system_prompt
        if not self.prompted and prompt is not None:
            self.messages.append({"role": "system", "content": prompt})
        self.prompted = True

    def _add_message(self, message: OutgoingMessage) -> None:
        match message.role:
            case Role.ASSISTANT:
                self.messages.append(self._make_assistant(message))
            case Role.TOOL_RESULT:
                self.messages += [self._make_answer(block) for block in message.blocks]
            case role:
                content = make_chat_content(message.blocks, self.outgoing)
                self.messages.append(
                    _make_user(content, "user" if role is Role.USER else "developer")
                )

    def _make_assistant(self, message: OutgoingMessage) -> JsonDict:
        blocks = message.blocks
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        said: JsonDict = {"role": "assistant", "content": make_chat_content(blocks, self.outgoing)}
        if calls:
            said["tool_calls"] = make_call_items(calls)
        actions = [
            {"command": make_shell_command(call), "tool_call_id": call.tool_call_id}
            for call in calls
        ]
        extra: JsonDict = {"actions": actions}
        if called := message.call:
            response: JsonDict = {"id": called.call_id, "model": called.model}
            if called.stop_reason:
                response["choices"] = [{"index": 0, "finish_reason": called.stop_reason}]
            if called.usage:
                response["usage"] = make_usage_report(called.usage)
            extra |= {"response": response, "cost": called.cost_usd or 0.0}
        return said | make_thought_fields(blocks, self.outgoing) | {"extra": extra}

    def _make_answer(self, block: Any) -> JsonDict:
        assert isinstance(block, ToolResult), "a message of a tool"
        content = make_answer_content(block, self.outgoing)
        extra: JsonDict = {"raw_output": block.text, "returncode": -1 if block.is_error else 0}
        extra["exception_info"] = "the tool failed" if block.is_error else ""
        return {
            "role": "tool",
            "tool_call_id": block.tool_call_id,
            "content": content,
            "extra": extra,
        }


def _make_user(content: str | list[JsonDict], by: str) -> JsonDict:
    return {"role": "user", "content": content, "extra": {AUTHOR_FIELD: by}}


def _make_info(outgoing: OutgoingSession) -> JsonDict:
    calls = [part.call for part in outgoing.read_parts() if isinstance(part, OutgoingCall)]
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
