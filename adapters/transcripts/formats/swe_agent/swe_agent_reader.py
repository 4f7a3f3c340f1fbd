"""Reads a trajectory of SWE-agent: its history, its steps, and the fields around them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import Kind, ToolCall
from ..chat_content import (
    ChatReader,
    add_message_blocks,
    add_thoughts,
    add_tool_calls,
    find_chat_summary,
    make_trajectory_key,
    read_chat_messages,
    read_surrounding,
)
from ..entry_steps import EntryBlocks, EntryLocation, digest_text
from ..fields import (
    JsonDict,
    MalformedError,
    drop_fields,
    get_field,
    require_field,
    require_object,
)
from ..json_lines import NestedTooDeeplyError, SourceLine
from ..placeholders import (
    MIN_COPY_CHARACTERS,
    EarlierValue,
    JsonPath,
    Placeholder,
    get_at_path,
    make_remainder,
)
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem, UnknownEntry

FORMAT_NAME = "swe-agent-traj"
_SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""
DEVELOPER_AGENT = "developer"
USER_AGENT = "user"
"""Authors of messages in the user's role that are not observations, by tag."""
DEMONSTRATION_ENTRY = "demonstration"
SWE_AGENT_ENTRY = "trajectory"
STEP_ENTRY = "trajectory/step"
PROMPT_FIELDS = ("query", "messages")
"""The model's prompt at a step, which repeats the history."""
_REPEATED_FIELDS: dict[str, JsonPath] = {
    "response": ("content",),
    "thought": ("content",),
    "action": ("action",),
}
"""Fields of a step, and the fields of the model's message with the same value."""
_FIRST_TEXT: JsonPath = ("content", 0, "text")


def recognizes(source: TranscriptSource) -> bool:
    first = source.first_line
    if source.is_folder or not (
        first is None or (isinstance(first, dict) and "trajectory" in first)
    ):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory": list(), "history": list(), "info": dict()}:
            return True
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the history message by message, then the steps, then the remainder."""
    document = source.document
    if document is None or document.problem or not isinstance(document.value, dict):
        problem = document.problem if document else None
        yield SourceProblem(1, problem or "expected an object")
        yield EntryEnd("error", document.end if document else 0)
        return
    value = document.value
    history = value["history"] if isinstance(value.get("history"), list) else []
    steps = value["trajectory"] if isinstance(value.get("trajectory"), list) else []
    rest = drop_fields(value, "history", "trajectory")
    named = [rest.get("environment"), rest.get("replay_config")]
    yield SessionStart(make_trajectory_key(FORMAT_NAME, named, history, document), source.stem)
    reader = _HistoryReader(FORMAT_NAME, document, "history/")
    unkept: set[int] = set()
    yield from read_chat_messages(history, document, reader.read, "history", unkept)
    run = _StepReader(history, unkept, document, _find_unanswered(reader, rest))
    yield from run.read_all(steps)
    yield from read_surrounding(rest, document, SWE_AGENT_ENTRY)


def _find_unanswered(reader: "_HistoryReader", rest: JsonDict) -> tuple[int, str] | None:
    """Return the call that ended the run, after its message: only its step has the answer."""
    match rest.get("info"):
        case {"exit_status": str(status)} if status and reader.open_calls:
            return reader.last_model_message, reader.open_calls[0]
        case _:
            return None


@dataclass(slots=True)
class _HistoryReader(ChatReader):
    last_model_message: int = 0

    def read(self, message: JsonDict, number: int, key: str, raw: str) -> list[ImportStep]:
        whence = EntryLocation(FORMAT_NAME, key, self.line, number)
        match require_field(message, "role", str):
            case "system":
                return self.read_system(message, whence, raw)
            case "assistant":
                return self._read_assistant(message, whence, raw)
            case "user":
                return self._read_user(message, whence, raw)
            case "tool":
                ids = require_field(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                return self.answer(message, ids[0], whence)
            case role:
                return [UnknownEntry(key, f"history/{role}", raw, number)]

    def _read_assistant(
        self, message: JsonDict, whence: EntryLocation, raw: str
    ) -> list[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        add_message_blocks(pieces, Kind.ASSISTANT, message)
        action = get_field(message, "action", str)
        add_tool_calls(pieces, message)
        if not message.get("tool_calls") and action and action.strip():
            # Older versions: the call is a range of the text, and its id is made of its place.
            at_call = Placeholder(("action",), "argument", "command", len(pieces.blocks))
            pieces.placeholders.append(at_call)
            command = self.line.to_json({"command": action})
            call = f"call-{whence.number}"
            pieces.add(ToolCall(tool_call_id=call, name=_SHELL_TOOL, arguments=command))
        self.open_calls = pieces.call_ids
        self.last_model_message = whence.number
        return self.append(pieces, message, whence, raw, f"message-{whence.number}")

    def _read_user(self, message: JsonDict, whence: EntryLocation, raw: str) -> list[ImportStep]:
        tags = get_field(message, "tags", list) or []
        found = find_chat_summary(message)
        if found and self.has_messages:
            return self.compact(found, message, whence, raw)
        if self.open_calls and USER_AGENT not in tags and DEVELOPER_AGENT not in tags and not found:
            return self.answer(message, self.open_calls[0], whence)
        pieces = EntryBlocks()
        if found:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.mark_as_summary(found)
        elif message.get("is_demo") is True:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.name_blocks(DEMONSTRATION_ENTRY)
        else:
            # After the model's first message, unmarked user messages come from the program.
            is_first = not (self.last_model_message or DEVELOPER_AGENT in tags)
            kind = Kind.USER if USER_AGENT in tags or is_first else Kind.DEVELOPER
            add_message_blocks(pieces, kind, message)
        return self.append(pieces, message, whence, raw)


@dataclass(frozen=True, slots=True)
class _StepReader:
    """The steps of a run; what they repeat of the history becomes references."""

    history: list[Any]
    unkept_messages: set[int]
    """Messages that cannot be referred to."""
    document: SourceLine
    unanswered_call: tuple[int, str] | None
    """A call without an answer in the history, after its message's number."""

    def read_all(self, steps: list[Any]) -> Iterator[ImportStep]:
        spoken = (
            number
            for number, message in enumerate(self.history, 1)
            if isinstance(message, dict) and message.get("role") == "assistant"
        )
        for number, step in enumerate(steps, 1):
            message = next(spoken, None)
            try:
                read = list(self._read(require_object(step), number, message))
            except (MalformedError, NestedTooDeeplyError) as error:
                raw = self._encode(step)
                key = f"trajectory:{number}:{digest_text(raw)}" if raw else None
                yield SourceProblem(number, f"trajectory: {error}", key, raw, is_part=True)
                yield EntryEnd("error", self.document.end)
                continue
            yield from read
            yield EntryEnd("imported", self.document.end)

    def _encode(self, step: Any) -> str | None:
        try:
            return self.document.to_json(step)
        except NestedTooDeeplyError:
            return None

    def _read(self, step: JsonDict, number: int, spoken: int | None) -> Iterator[ImportStep]:
        """Yield a step without its prompt, and without what the message `spoken` and its answer
        hold.
        """
        kept = drop_fields(step, *PROMPT_FIELDS)
        observed = kept.get("observation")
        pieces = EntryBlocks()
        if spoken is not None:
            for name, there in _REPEATED_FIELDS.items():
                pieces.earlier_values += self._find_stretch(kept, name, spoken, there)
        open_at, call = self.unanswered_call or (None, "")
        if call and open_at == spoken and isinstance(observed, str) and observed:
            pieces.add_tool_result(call, [(observed, ("observation",))])
            key = f"step:{number}:{digest_text(self.document.to_json(kept))}"
            whence = EntryLocation(FORMAT_NAME, key, self.document, number, id=f"step:{number}")
            yield from pieces.make_appends(whence, kept)
            return
        if spoken is not None:
            pieces.earlier_values += self._find_answer(kept, spoken + 1)
        raw = self.document.to_json(make_remainder(kept, pieces.earlier_values))
        yield RawEntry(f"step:{number}:{digest_text(raw)}", STEP_ENTRY, raw, line=number)

    def _find_answer(self, step: JsonDict, message: int) -> list[EarlierValue]:
        whole = self._find_stretch(step, "observation", message, ("content",))
        return whole or self._find_stretch(step, "observation", message, _FIRST_TEXT)

    def _find_stretch(
        self, step: JsonDict, name: str, message: int, there: JsonPath
    ) -> list[EarlierValue]:
        text = step.get(name)
        if not isinstance(text, str) or len(text) < MIN_COPY_CHARACTERS:
            return []
        if message > len(self.history) or message in self.unkept_messages:
            return []
        try:
            whole = get_at_path(self.history[message - 1], there)
        except (LookupError, TypeError):
            return []
        if not isinstance(whole, str) or (start := whole.find(text)) < 0:
            return []
        return [EarlierValue((name,), message, there, (start, start + len(text)))]
