"""Reads mini-SWE-agent trajectories: one object, or in older versions a bare list."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....domain.blocks import BlockKind
from .entry_steps import EntrySteps
from .fields import JsonDict, as_number, find_text, get_field, require_name
from .format import make_document_format
from .json_lines import SourceLine
from .openhands.conversation import read_openhands_usage
from .steps import ImportStep, ReportedCall, SessionStart
from .swe_agent import ChatReader, add_thoughts, make_trajectory_key, read_contents

FORMAT_NAME = "mini-swe-agent"
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
    value = document.value
    messages, around = (value, {}) if isinstance(value, list) else (value["messages"], value)
    named = [around.get("instance_id")]
    title = find_text(around, "instance_id") or stem
    yield SessionStart(make_trajectory_key(FORMAT_NAME, named, messages, document), title)
    model = find_text(around, "info", "config", "model", "model_name")
    yield from _MessageReader(FORMAT_NAME, document, "messages", model=model).read_all(messages)


@dataclass(slots=True)
class _MessageReader(ChatReader):
    model: str | None = None

    def read(self, entry: EntrySteps, message: JsonDict, role: str) -> None:
        extra = get_field(message, "extra", dict) or {}
        if as_number(extra.get("timestamp")) is not None:
            entry.time = self.line.to_json(extra["timestamp"])
        has_failed = bool(extra.get("exception_info"))
        is_interrupt = isinstance(extra.get("interrupt_type"), str)
        # Only a user's message answers a call that was found in the text.
        is_asked = bool(self.open_calls) and self.open_calls[0].startswith("call-")
        match role:
            case "system":
                self.read_system(entry, message)
            case "assistant":
                self._read_assistant(entry, message, extra)
            case "user" if is_asked and not is_interrupt:
                self.answer(entry, message, self.open_calls[0], is_error=has_failed)
            case "user":
                kind = BlockKind.DEVELOPER if is_interrupt else BlockKind.USER
                entry.add_parts(kind, read_contents(message))
                entry.append()
            case "tool":
                call = require_name(message, "tool_call_id")
                self.answer(entry, message, call, is_error=has_failed)
            case "exit":
                entry.skip()
            case _:
                entry.add_unknown(f"messages/{role}")

    def _read_assistant(self, entry: EntrySteps, message: JsonDict, extra: JsonDict) -> None:
        add_thoughts(entry, message)
        entry.add_parts(BlockKind.ASSISTANT, read_contents(message))
        self.add_calls(entry, message, _find_command(entry, message))
        call_id = find_text(extra, "response", "id") or f"message-{entry.number}"
        response = extra.get("response")
        told = response if isinstance(response, dict) else {}
        if entry.append(call_id) and (told or extra.get("cost") is not None):
            entry.add(self._report_call(told, extra, call_id, entry))

    def _report_call(
        self, response: JsonDict, extra: JsonDict, call_id: str, entry: EntrySteps
    ) -> ReportedCall:
        model, choices = response.get("model"), response.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        fields = {
            "call_id": call_id,
            "model": model if isinstance(model, str) else self.model,
            "usage": read_openhands_usage(response.get("usage")),
            "cost_usd": as_number(extra.get("cost")),
            "stop_reason": find_text(choice, "finish_reason"),
            "source_time": entry.time,
        }
        return ReportedCall(f"call:{entry.key}", fields, entry.key)


def _find_command(entry: EntrySteps, message: JsonDict) -> str | None:
    """Return the command in the text of a message that calls no tool."""
    # Older versions have only the text, newer ones also the actions that they found in it.
    match message:
        case {"extra": {"actions": [_, *_]}}:
            pass
        case _ if message.keys() > {"role", "content"}:
            return None
    found = [
        match[1] for block in entry.blocks for match in _FENCED_COMMAND.finditer(block.text or "")
    ]
    # The agent runs a command only if there is exactly one.
    return found[0] if len(found) == 1 else None


FORMAT = make_document_format(
    FORMAT_NAME,
    "trajectories of mini-SWE-agent",
    _is_trajectory,
    _read_trajectory,
    suffix=".traj.json",
)
