"""Reads SWE-agent trajectories, and the chat messages of trajectories of similar agents."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....domain.blocks import BlockKind, ToolCall
from .content import ContentPart, make_thinking_block, media_from_address, read_content
from .entry_steps import EntrySteps, digest_text, read_entry
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_object
from .format import make_document_format
from .json_lines import NestedTooDeeplyError, SourceLine
from .steps import ImportStep, RequestParameters, SessionStart

_CACHE_MARK = "cache_control"
SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""


def read_contents(message: JsonDict) -> list[ContentPart]:
    """Return the texts and images of a message."""
    return read_content(message.get("content"), _read_image)


def _read_image(item: Any) -> list[ContentPart] | None:
    match item:
        case {"type": "image_url", "image_url": {"url": str(address)}}:
            return [media_from_address(address) if address else address]
        case _:
            return None


def add_thoughts(entry: EntrySteps, message: JsonDict) -> None:
    """Add the model's thoughts."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        entry.blocks += [make_thinking_block(item, entry.line) for item in signed]
    elif isinstance(thought := message.get("reasoning_content"), str):
        entry.add_text(BlockKind.THINKING, thought)


@dataclass(slots=True)
class ChatReader(ABC):
    """The state of reading the messages of a trajectory; each format reads its own roles."""

    format: str
    line: SourceLine
    within: str
    """The field that holds the messages."""
    open_calls: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""

    def read_all(self, messages: list[Any]) -> Iterator[ImportStep]:
        """Yield the steps of each message."""
        for number, message in enumerate(messages, 1):
            yield from read_entry(EntrySteps(self.format, self.line, number, message), self._read)

    def _read(self, entry: EntrySteps) -> None:
        try:
            plain = entry.line.to_json(_drop_cache_marks(entry.value))
            entry.key = f"{entry.number}:{digest_text(plain)}"
            message = require_object(entry.value)
            self.read(entry, message, require_field(message, "role", str))
        except MalformedError as error:
            raise MalformedError(f"{self.within}: {error}") from error

    @abstractmethod
    def read(self, entry: EntrySteps, message: JsonDict, role: str) -> None:
        """Read one message."""

    def read_system(self, entry: EntrySteps, message: JsonDict) -> None:
        texts = [part for part in read_contents(message) if isinstance(part, str)]
        entry.add(RequestParameters(f"{entry.key}:asked", "\n\n".join(texts)))

    def add_calls(self, entry: EntrySteps, message: JsonDict, command: str | None) -> None:
        """Add the calls of a model's message, or else the command in its text."""
        for index, call in enumerate(get_field(message, "tool_calls", list) or []):
            match call:
                case {"id": str(id), "function": {"name": str(name), "arguments": str(text)}} if id:
                    entry.blocks.append(ToolCall(tool_call_id=id, name=name, arguments=text))
                case _:
                    raise MalformedError(f"tool_calls: call {index} has no id, name or arguments")
        if command is not None and not message.get("tool_calls"):
            # It has no id but its place.
            arguments = self.line.to_json({"command": command})
            call_id = f"call-{entry.number}"
            entry.blocks.append(
                ToolCall(tool_call_id=call_id, name=SHELL_TOOL, arguments=arguments)
            )
        self.open_calls = [one.tool_call_id for one in entry.blocks if isinstance(one, ToolCall)]

    def answer(
        self, entry: EntrySteps, message: JsonDict, call: str, *, is_error: bool = False
    ) -> None:
        entry.add_tool_result(call, read_contents(message), is_error=is_error)
        if call in self.open_calls:
            self.open_calls.remove(call)
        entry.append()


def make_trajectory_key(
    prefix: str, named: list[Any], messages: list[Any], document: SourceLine
) -> str:
    """Return a session's key from its names and first messages, since the file has no id."""
    began = list(named)
    for message in messages:
        began.append(_drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{prefix}-{digest_text(told)}"


def _drop_cache_marks(message: Any) -> Any:
    """Return the message without its prompt cache marks, which move as the history grows."""
    if not isinstance(message, dict):
        return message
    plain = drop_fields(message, _CACHE_MARK)
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            drop_fields(item, _CACHE_MARK) if isinstance(item, dict) else item for item in content
        ]
    return plain


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
    reader = _HistoryReader(FORMAT_NAME, document, "history")
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
                entry.add_unknown(f"history/{role}")

    def _read_assistant(self, entry: EntrySteps, message: JsonDict) -> None:
        add_thoughts(entry, message)
        entry.add_parts(BlockKind.ASSISTANT, read_contents(message))
        # In older versions the call is part of the text.
        action = get_field(message, "action", str)
        self.add_calls(entry, message, action if action and action.strip() else None)
        self.last_model_message = entry.number
        entry.append(f"message-{entry.number}")

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
        entry.append()


def _read_final_step(entry: EntrySteps, call: str) -> None:
    kept = drop_fields(require_object(entry.value, "trajectory: "), *_PROMPT_FIELDS)
    observed = kept.get("observation")
    if isinstance(observed, str) and observed:
        entry.add_tool_result(call, [observed])
        entry.id = f"step:{entry.number}"
        entry.key = f"{entry.id}:{digest_text(entry.line.to_json(kept))}"
        entry.append()


FORMAT = make_document_format(
    FORMAT_NAME, "trajectories of SWE-agent", _is_trajectory, _read_trajectory, suffix=".traj"
)
