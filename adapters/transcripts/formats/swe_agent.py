"""Reads SWE-agent trajectories: the history, and of the steps what only they have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....domain.blocks import BlockKind
from .chat_content import ChatReader, add_thoughts, make_trajectory_key, read_contents
from .entry_steps import EntrySteps, digest_text, read_entry
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_object
from .format import make_document_format
from .json_lines import SourceLine
from .steps import ImportStep, SessionStart

FORMAT_NAME = "swe-agent-traj"
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
        final = EntrySteps(FORMAT_NAME, document, number, steps[number - 1])
        yield from read_entry(final, _read_final_step, reader.open_calls[0])


def _is_model(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


@dataclass(slots=True)
class _HistoryReader(ChatReader):
    last_model_message: int = 0

    def read(self, entry: EntrySteps, message: JsonDict, role: str) -> None:
        match role:
            case "system":
                self.read_system(entry, message)
            case "assistant":
                self._read_assistant(entry, message)
            case "user":
                self._read_user(entry, message)
            case "tool":
                ids = require_field(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                self.answer(entry, message, ids[0])
            case _:
                self.keep_unknown(entry, message)

    def _read_assistant(self, entry: EntrySteps, message: JsonDict) -> None:
        add_thoughts(entry, message)
        entry.add_parts(BlockKind.ASSISTANT, read_contents(message))
        # In older versions the call is part of the text.
        action = get_field(message, "action", str)
        self.add_calls(entry, message, action if action and action.strip() else None)
        self.last_model_message = entry.number
        self.append(entry, message, f"message-{entry.number}")

    def _read_user(self, entry: EntrySteps, message: JsonDict) -> None:
        if self.open_calls:
            self.answer(entry, message, self.open_calls[0])
            return
        if message.get("is_demo") is True:
            entry.add_parts(BlockKind.DEVELOPER, read_contents(message), name="demonstration")
        else:
            # After the model's first message, a user's messages come from the program.
            kind = BlockKind.DEVELOPER if self.last_model_message else BlockKind.USER
            entry.add_parts(kind, read_contents(message))
        self.append(entry, message)


def _read_final_step(entry: EntrySteps, call: str) -> None:
    kept = drop_fields(require_object(entry.value, "trajectory: "), *_PROMPT_FIELDS)
    observed = kept.get("observation")
    if isinstance(observed, str) and observed:
        entry.add_tool_result(call, [observed])
        entry.id = f"step:{entry.number}"
        entry.key = f"{entry.id}:{digest_text(entry.line.to_json(kept))}"
        entry.append(entry.id)


FORMAT = make_document_format(
    FORMAT_NAME, "trajectories of SWE-agent", _is_trajectory, _read_trajectory, suffix=".traj"
)
