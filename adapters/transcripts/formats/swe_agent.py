"""Reads SWE-agent trajectories: the history, and of the steps what only they have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....domain.blocks import BlockKind, ToolCall
from .chat_content import (
    ChatReader,
    add_thoughts,
    add_tool_calls,
    make_trajectory_key,
    read_contents,
)
from .entry_steps import EntryBlocks, EntryLocation, EntrySteps, digest_text, read_entry_steps
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_object
from .format import make_document_format
from .json_lines import SourceLine
from .steps import ImportStep, SessionStart

FORMAT_NAME = "swe-agent-traj"
_SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""
_PROMPT_FIELDS = ("query", "messages")
"""The model's prompt at a step, which repeats the history."""


def _is_trajectory(value: Any) -> bool:
    match value:
        case {"trajectory": list(), "history": list(), "info": dict()}:
            return True
        case _:
            return False


def _read_trajectory(document: SourceLine, stem: str) -> Iterator[ImportStep]:
    """Yield the history message by message, then the answer that only a step has."""
    value = document.value
    history, steps = value["history"], value["trajectory"]
    named = [value.get("environment"), value.get("replay_config")]
    yield SessionStart(make_trajectory_key(FORMAT_NAME, named, history, document), stem)
    reader = _HistoryReader(FORMAT_NAME, document, "history", "history/")
    yield from reader.read_all(history)
    # The history lacks the answer to the call that ended the run.
    is_over = isinstance(status := value["info"].get("exit_status"), str) and bool(status)
    spoken = [message for message in history[: reader.last_model_message] if _is_model(message)]
    number = len(spoken)
    if is_over and reader.open_calls and number <= len(steps):
        yield from read_entry_steps(
            document, number, _read_final_step, steps[number - 1], reader.open_calls[0], document
        )


def _is_model(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


@dataclass(slots=True)
class _HistoryReader(ChatReader):
    last_model_message: int = 0

    def read(self, message: JsonDict, number: int, key: str) -> list[ImportStep]:
        whence = EntryLocation(FORMAT_NAME, key, self.line, number)
        match require_field(message, "role", str):
            case "system":
                return self.read_system(message, whence)
            case "assistant":
                return self._read_assistant(message, whence)
            case "user":
                return self._read_user(message, whence)
            case "tool":
                ids = require_field(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                return self.answer(message, ids[0], whence)
            case _:
                return [self.keep_unknown(message, whence)]

    def _read_assistant(self, message: JsonDict, whence: EntryLocation) -> list[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        pieces.add_parts(BlockKind.ASSISTANT, read_contents(message))
        action = get_field(message, "action", str)
        add_tool_calls(pieces, message)
        if not message.get("tool_calls") and action and action.strip():
            # Older versions: the call is part of the text, and its id is made of its place.
            command = self.line.to_json({"command": action})
            call = f"call-{whence.number}"
            pieces.add(ToolCall(tool_call_id=call, name=_SHELL_TOOL, arguments=command))
        self.open_calls = pieces.call_ids
        self.last_model_message = whence.number
        return self.append(pieces, message, whence, f"message-{whence.number}")

    def _read_user(self, message: JsonDict, whence: EntryLocation) -> list[ImportStep]:
        if self.open_calls:
            return self.answer(message, self.open_calls[0], whence)
        pieces = EntryBlocks()
        if message.get("is_demo") is True:
            pieces.add_parts(BlockKind.DEVELOPER, read_contents(message), name="demonstration")
        else:
            # After the model's first message, a user's messages come from the program.
            kind = BlockKind.DEVELOPER if self.last_model_message else BlockKind.USER
            pieces.add_parts(kind, read_contents(message))
        return self.append(pieces, message, whence)


def _read_final_step(entry: EntrySteps, step: Any, call: str, document: SourceLine) -> None:
    kept = drop_fields(require_object(step, "trajectory: "), *_PROMPT_FIELDS)
    observed = kept.get("observation")
    if isinstance(observed, str) and observed:
        pieces = EntryBlocks()
        pieces.add_tool_result(call, [observed])
        key = f"step:{entry.number}:{digest_text(document.to_json(kept))}"
        name = f"step:{entry.number}"
        entry.add(
            *pieces.make_appends(EntryLocation(FORMAT_NAME, key, document, entry.number, name))
        )


FORMAT = make_document_format(
    FORMAT_NAME, "trajectories of SWE-agent", _is_trajectory, _read_trajectory, suffix=".traj"
)
