"""Reads and writes mini-SWE-agent trajectories: one object, or in older versions a bare list."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....domain.blocks import Kind, ToolCall, ToolResult
from ....domain.messages import Role
from .chat_content import (
    ChatReader,
    TrajectoryWriter,
    add_thoughts,
    add_tool_calls,
    find_chat_summary,
    make_answer_content,
    make_call_items,
    make_chat_content,
    make_shell_command,
    make_thought_fields,
    make_trajectory_key,
    read_chat_messages,
    read_contents,
    read_surrounding,
)
from .entry_steps import EntryBlocks, EntryLocation
from .fields import JsonDict, drop_fields, find_text, get_field, require_field, require_name
from .format import make_document_format
from .json_lines import SourceLine, encode_document
from .openhands.call_usage import as_number, make_usage_report, read_openhands_usage
from .outgoing import OutgoingCall, OutgoingMessage, OutgoingSession
from .steps import ImportStep, RawEntry, ReportedCall, SessionStart, UnknownEntry

FORMAT_NAME = "mini-swe-agent"
MINI_SWE_AGENT_ENTRY = "trajectory"
AUTHOR_FIELD = "by"
"""The field of `extra` that names the author in a user's role, written by cutbank."""
_SHELL_TOOL = "bash"
_FENCED_COMMAND = re.compile(
    r"^```(?:mswea_bash_command|bash)\s*\n(.*?)\n?^```", re.DOTALL | re.MULTILINE
)
_ROLES = frozenset({"system", "user", "assistant"})


def has_bash_messages(messages: list[Any]) -> bool:
    """Return whether only system, user and model speak, and the model starts with a command."""
    for message in messages:
        match message:
            case {"role": str(role), "content": str(), **more} if role in _ROLES and not more:
                pass
            case _:
                return False
    first = next((one["content"] for one in messages if one["role"] == "assistant"), "")
    is_begun = bool(messages) and messages[0]["role"] == "system"
    return is_begun and bool(_FENCED_COMMAND.search(first))


def _is_trajectory(value: Any) -> bool:
    """Return whether this is a trajectory: it says so, or is a list of messages with commands."""
    match value:
        case {"trajectory_format": str(name), "messages": list()}:
            return name.startswith(FORMAT_NAME)
        case {"info": {"mini_version": _} | {"config": _}, "messages": list()}:
            return True
        case list(messages):
            return has_bash_messages(messages)
        case _:
            return False


def _read_trajectory(document: SourceLine, stem: str) -> Iterator[ImportStep]:
    """Yield the messages one by one, then the fields around them."""
    value = document.value
    messages, around = (value, {}) if isinstance(value, list) else (value["messages"], value)
    named = [around.get("instance_id")]
    title = find_text(around, "instance_id") or stem
    yield SessionStart(make_trajectory_key(FORMAT_NAME, named, messages, document), title)
    model = find_text(around, "info", "config", "model", "model_name")
    reader = _MessageReader(FORMAT_NAME, document, model=model)
    yield from read_chat_messages(messages, document, reader.read, "messages")
    if isinstance(value, dict):
        yield from read_surrounding(drop_fields(value, "messages"), document, MINI_SWE_AGENT_ENTRY)


@dataclass(slots=True)
class _MessageReader(ChatReader):
    model: str | None = None

    def read(self, message: JsonDict, number: int, key: str, raw: str) -> list[ImportStep]:
        extra = get_field(message, "extra", dict) or {}
        time = as_number(extra.get("timestamp"))
        told = self.line.to_json(extra["timestamp"]) if time is not None else None
        whence = EntryLocation(FORMAT_NAME, key, self.line, number, None, told)
        match require_field(message, "role", str):
            case "system":
                return self.read_system(message, whence, raw)
            case "assistant":
                return self._read_assistant(message, extra, whence, raw)
            case "user":
                return self._read_user(message, extra, whence, raw)
            case "tool":
                call = require_name(message, "tool_call_id")
                return self._read_answer(message, call, extra, whence)
            case "exit":
                return [RawEntry(key, "exit", raw, line=number)]
            case role:
                return [UnknownEntry(key, f"messages/{role}", raw, number)]

    def _read_assistant(
        self, message: JsonDict, extra: JsonDict, whence: EntryLocation, raw: str
    ) -> list[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        pieces.add_parts(Kind.ASSISTANT, read_contents(message))
        add_tool_calls(pieces, message)
        if not pieces.call_ids and (command := _find_command(pieces, message)) is not None:
            arguments = self.line.to_json({"command": command})
            call = f"call-{whence.number}"
            pieces.add(ToolCall(tool_call_id=call, name=_SHELL_TOOL, arguments=arguments))
        self.open_calls = pieces.call_ids
        call_id = find_text(extra, "response", "id") or f"message-{whence.number}"
        steps = self.append(pieces, message, whence, raw, call_id)
        response = extra.get("response")
        told = response if isinstance(response, dict) else {}
        if pieces.blocks and (told or extra.get("cost") is not None):
            steps.append(self._report_call(told, extra, call_id, whence))
        return steps

    def _read_user(
        self, message: JsonDict, extra: JsonDict, whence: EntryLocation, raw: str
    ) -> list[ImportStep]:
        by = extra.get(AUTHOR_FIELD)
        is_interrupt = isinstance(extra.get("interrupt_type"), str)
        found = find_chat_summary(message)
        if found and self.has_messages:
            return self.compact(found, message, whence, raw)
        # Only a user's message answers a call that was found in the text.
        is_asked = bool(self.open_calls) and self.open_calls[0].startswith("call-")
        if is_asked and by is None and not found and not is_interrupt:
            return self._read_answer(message, self.open_calls[0], extra, whence)
        pieces = EntryBlocks()
        is_developer = bool(found) or by == "developer" or is_interrupt
        pieces.add_parts(Kind.DEVELOPER if is_developer else Kind.USER, read_contents(message))
        if found:
            pieces.mark_as_summary(found)
        return self.append(pieces, message, whence, raw)

    def _read_answer(
        self, message: JsonDict, call: str, extra: JsonDict, whence: EntryLocation
    ) -> list[ImportStep]:
        steps = self.answer(message, call, whence, is_error=bool(extra.get("exception_info")))
        self.has_messages = True
        return steps

    def _report_call(
        self, response: JsonDict, extra: JsonDict, call_id: str, whence: EntryLocation
    ) -> ReportedCall:
        model, choices = response.get("model"), response.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        fields = {
            "call_id": call_id,
            "model": model if isinstance(model, str) else self.model,
            "usage": read_openhands_usage(response.get("usage")),
            "cost_usd": as_number(extra.get("cost")),
            "stop_reason": find_text(choice, "finish_reason"),
            "source_time": whence.time,
        }
        return ReportedCall(f"call:{whence.key}", fields, whence.key)


def _find_command(pieces: EntryBlocks, message: JsonDict) -> str | None:
    """Return the command in the text of a message that calls no tool."""
    # Older versions have only the text, newer ones also the actions that they found in it.
    match message:
        case {"extra": {"actions": [_, *_]}}:
            pass
        case _ if message.keys() > {"role", "content"}:
            return None
    found = [
        match[1] for block in pieces.blocks for match in _FENCED_COMMAND.finditer(block.text or "")
    ]
    # The agent runs a command only if there is exactly one.
    return found[0] if len(found) == 1 else None


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the trajectory as one document, or as a list if it was one."""
    run = _MessageWriter(outgoing, FORMAT_NAME, MINI_SWE_AGENT_ENTRY)
    run.fill()
    if run.around is None and run.has_own_messages and not run.has_new_messages:
        yield encode_document(run.messages)
        return
    around = run.around if run.around is not None else _make_info(outgoing)
    yield encode_document({**around, "messages": run.messages})


class _MessageWriter(TrajectoryWriter):
    def make_message(self, role: str, content: str | list[JsonDict]) -> JsonDict:
        if role == "system":
            return {"role": "system", "content": content}
        return {"role": "user", "content": content, "extra": {AUTHOR_FIELD: role}}

    def add_message(self, message: OutgoingMessage) -> None:
        match message.role:
            case Role.ASSISTANT:
                self.messages.append(self._make_assistant(message))
            case Role.TOOL_RESULT:
                self.messages += [self._make_answer(block) for block in message.blocks]
            case role:
                content = make_chat_content(message.blocks, self.outgoing)
                self.messages.append(self.make_message(role.value, content))

    def _make_assistant(self, message: OutgoingMessage) -> JsonDict:
        blocks = message.blocks
        said: JsonDict = {"role": "assistant", "content": make_chat_content(blocks, self.outgoing)}
        if calls := make_call_items(blocks):
            said["tool_calls"] = calls
        actions = [
            {"command": make_shell_command(block), "tool_call_id": block.tool_call_id}
            for block in blocks
            if isinstance(block, ToolCall)
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
        code, problem = (-1, "the tool failed") if block.is_error else (0, "")
        extra = {"raw_output": block.text, "returncode": code, "exception_info": problem}
        answer = {"role": "tool", "tool_call_id": block.tool_call_id, "content": content}
        return answer | {"extra": extra}


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


FORMAT = make_document_format(
    FORMAT_NAME,
    "trajectories of mini-SWE-agent",
    _is_trajectory,
    _read_trajectory,
    write,
    suffix=".traj.json",
)
