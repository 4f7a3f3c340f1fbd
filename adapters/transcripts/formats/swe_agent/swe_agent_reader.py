"""Reads a trajectory of SWE-agent: its history, its steps, and the fields around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..chat_content import (
    add_message_blocks,
    add_thoughts,
    drop_cache_marks,
    read_contents,
    read_tool_calls,
)
from ..entry_steps import EntryBlocks, EntryLocation, digest_text
from ..fields import MalformedError, get_field, json_name, require_field
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
from ..steps import (
    EntryEnd,
    ImportStep,
    RawEntry,
    RequestParameters,
    SessionStart,
    SourceCompaction,
    SourceProblem,
    UnknownEntry,
)
from ..summary_mark import find_marked_summary

FORMAT_NAME = "swe-agent-traj"
_SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""
DEVELOPER_AGENT = "developer"
USER_AGENT = "user"
"""Authors of messages in the user's role that are not observations, by tag."""
DEMONSTRATION_ENTRY = "demonstration"


@dataclass(slots=True)
class SweHistoryReader:
    line: SourceLine
    open_calls: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""
    last_model_message: int = 0
    has_messages: bool = False
    unkept_messages: set[int] = field(default_factory=set)
    """Messages that could not be kept even as raw notes."""

    def read(self, message: Any, number: int, key: str, raw: str) -> list[ImportStep]:
        if not isinstance(message, dict):
            raise MalformedError(f"expected an object, got {json_name(message)}")
        whence = EntryLocation(FORMAT_NAME, key, self.line, number)
        match require_field(message, "role", str):
            case "system":
                return list(self._read_system(message, whence, raw))
            case "assistant":
                return list(self._read_assistant(message, whence, raw))
            case "user":
                return list(self._read_user(message, whence, raw))
            case "tool":
                ids = require_field(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                return list(self._read_answer(message, ids[0], whence))
            case role:
                return [UnknownEntry(key, f"history/{role}", raw, number)]

    def _read_system(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        texts = [value for value, _ in read_contents(message) if isinstance(value, str)]
        yield RequestParameters(f"{whence.key}:asked", "\n\n".join(texts))
        yield RawEntry(whence.key, "history/system", raw, line=whence.number)

    def _read_assistant(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        add_thoughts(pieces, message, self.line)
        add_message_blocks(pieces, Kind.ASSISTANT, message)
        action = get_field(message, "action", str)
        calls = list(read_tool_calls(message))
        for index, call in calls:
            at = ("tool_calls", index, "function", "arguments")
            function = call["function"]
            pieces.add(_make_call(call["id"], function["name"], function["arguments"]), at)
        if not calls and action and action.strip():
            # Older versions: the call is a range of the text, and its id is made of its place.
            at_call = Placeholder(("action",), "argument", "command", len(pieces.blocks))
            pieces.placeholders.append(at_call)
            arguments = self.line.to_json({"command": action})
            pieces.add(_make_call(f"call-{whence.number}", _SHELL_TOOL, arguments))
        self.open_calls = [
            block.tool_call_id for block in pieces.blocks if isinstance(block, ToolCall)
        ]
        self.last_model_message = whence.number
        yield from self._make_steps(pieces, message, whence, raw, f"message-{whence.number}")

    def _read_user(
        self, message: dict[str, Any], whence: EntryLocation, raw: str
    ) -> Iterator[ImportStep]:
        tags = get_field(message, "tags", list) or []
        found = _find_summary(message)
        if found and self.has_messages:
            yield SourceCompaction(
                key=f"{whence.key}:compacted",
                trigger=Trigger.THRESHOLD,
                summary=found,
                partial_reason="which blocks stayed is not said",
            )
            yield RawEntry(whence.key, "history/user", raw, line=whence.number)
            return
        if self.open_calls and USER_AGENT not in tags and DEVELOPER_AGENT not in tags and not found:
            yield from self._read_answer(message, self.open_calls[0], whence)
            return
        pieces = EntryBlocks()
        if found:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.mark_as_summary(found)
        elif message.get("is_demo") is True:
            add_message_blocks(pieces, Kind.DEVELOPER, message)
            pieces.name_blocks(DEMONSTRATION_ENTRY)
        else:
            # After the model's first message, unmarked user messages come from the program.
            by_person = USER_AGENT in tags or not (
                self.last_model_message or DEVELOPER_AGENT in tags
            )
            add_message_blocks(pieces, Kind.USER if by_person else Kind.DEVELOPER, message)
        yield from self._make_steps(pieces, message, whence, raw)

    def _read_answer(
        self, message: dict[str, Any], call: str, whence: EntryLocation
    ) -> Iterator[ImportStep]:
        pieces = EntryBlocks()
        parts = read_contents(message)
        pieces.add_tool_result(call, parts)
        if call in self.open_calls:
            self.open_calls.remove(call)
        yield from pieces.make_appends(whence, message)

    def _make_steps(
        self,
        pieces: EntryBlocks,
        message: dict[str, Any],
        whence: EntryLocation,
        raw: str,
        message_id: str | None = None,
    ) -> Iterator[ImportStep]:
        if pieces.blocks:
            self.has_messages = True
            yield from pieces.make_appends(whence, message, message_id)
        else:
            yield RawEntry(whence.key, f"history/{message['role']}", raw, line=whence.number)


def _make_call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=id, name=name, arguments=arguments)


def _find_summary(message: dict[str, Any]) -> str | None:
    match read_contents(message):
        case [(str(text), _)]:
            found = find_marked_summary(message, text)
            return found.text if found else None
        case _:
            return None


STEP_ENTRY = "trajectory/step"
"""The type of a step that is kept unchanged."""
PROMPT_FIELDS = ("query", "messages")
"""The model's prompt at a step, which repeats the history."""
_REPEATED_FIELDS: dict[str, JsonPath] = {
    "response": ("content",),
    "thought": ("content",),
    "action": ("action",),
}
"""Fields of a step, and the fields of the model's message with the same value."""
_FIRST_TEXT: JsonPath = ("content", 0, "text")


@dataclass(frozen=True, slots=True)
class UnansweredCall:
    """A call without an answer in the history, and its message."""

    message_number: int
    call_id: str


@dataclass(frozen=True, slots=True)
class TrajectorySteps:
    """The steps of a run whose history was read."""

    history: list[Any]
    unkept_messages: set[int]
    """Messages that cannot be referred to."""
    document: SourceLine
    unanswered_call: UnansweredCall | None

    def read(self, step: Any, number: int, spoken: int | None) -> Iterator[ImportStep]:
        """Yield a step without its prompt, and without what the message `spoken` and its answer
        hold.
        """
        if not isinstance(step, dict):
            raise MalformedError(f"expected an object, got {json_name(step)}")
        kept = {name: value for name, value in step.items() if name not in PROMPT_FIELDS}
        observed = kept.get("observation")
        pieces = EntryBlocks()
        if spoken is not None:
            for name, there in _REPEATED_FIELDS.items():
                pieces.earlier_values += self._find_stretch(kept, name, spoken, there)
        if (
            self.unanswered_call
            and self.unanswered_call.message_number == spoken
            and isinstance(observed, str)
            and observed
        ):
            pieces.add_tool_result(self.unanswered_call.call_id, [(observed, ("observation",))])
            key = f"step:{number}:{digest_text(self.document.to_json(kept))}"
            whence = EntryLocation(FORMAT_NAME, key, self.document, number, id=f"step:{number}")
            yield from pieces.make_appends(whence, kept)
            return
        if spoken is not None:
            pieces.earlier_values += self._find_answer(kept, spoken + 1)
        raw = self.document.to_json(make_remainder(kept, pieces.earlier_values))
        yield RawEntry(f"step:{number}:{digest_text(raw)}", STEP_ENTRY, raw, line=number)

    def _find_answer(self, step: dict[str, Any], message: int) -> list[EarlierValue]:
        whole = self._find_stretch(step, "observation", message, ("content",))
        return whole or self._find_stretch(step, "observation", message, _FIRST_TEXT)

    def _find_stretch(
        self, step: dict[str, Any], name: str, message: int, there: JsonPath
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


__all__ = ["FORMAT_NAME", "SWE_AGENT_ENTRY", "read", "recognizes"]

SWE_AGENT_ENTRY = "trajectory"


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a trajectory: a JSON object with steps and a history."""
    if source.is_folder or not _is_candidate(source):
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
    rest = {name: one for name, one in value.items() if name not in ("history", "trajectory")}
    yield SessionStart(_make_key(rest, history, document), source.stem)
    reader = SweHistoryReader(document)
    yield from _read_history(reader, history, document)
    run = TrajectorySteps(history, reader.unkept_messages, document, _find_unanswered(reader, rest))
    yield from _read_steps(steps, run)
    yield from _read_remainder(rest, document)


def _find_unanswered(reader: SweHistoryReader, rest: dict[str, Any]) -> UnansweredCall | None:
    """Return the call that ended the run, whose answer only its step has."""
    match rest.get("info"):
        case {"exit_status": str(status)} if status and reader.open_calls:
            return UnansweredCall(reader.last_model_message, reader.open_calls[0])
        case _:
            return None


def _read_history(
    reader: SweHistoryReader, history: list[Any], document: SourceLine
) -> Iterator[ImportStep]:
    for number, message in enumerate(history, 1):
        key = None
        raw = None
        try:
            raw = document.to_json(message)
            key = f"{number}:{digest_text(document.to_json(drop_cache_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            if raw is None:
                reader.unkept_messages.add(number)
            yield SourceProblem(number, f"history: {error}", key, raw)
            yield EntryEnd("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, UnknownEntry) for step in steps)
        yield EntryEnd("unknown" if unknown else "imported", document.end)


def _read_steps(steps: list[Any], run: TrajectorySteps) -> Iterator[ImportStep]:
    spoken = (
        number
        for number, message in enumerate(run.history, 1)
        if isinstance(message, dict) and message.get("role") == "assistant"
    )
    for number, step in enumerate(steps, 1):
        try:
            read = list(run.read(step, number, next(spoken, None)))
        except (MalformedError, NestedTooDeeplyError) as error:
            raw = _encode_step(run.document, step)
            key = f"trajectory:{number}:{digest_text(raw)}" if raw else None
            yield SourceProblem(number, f"trajectory: {error}", key, raw, is_part=True)
            yield EntryEnd("error", run.document.end)
            continue
        yield from read
        yield EntryEnd("imported", run.document.end)


def _encode_step(document: SourceLine, step: Any) -> str | None:
    try:
        return document.to_json(step)
    except NestedTooDeeplyError:
        return None


def _read_remainder(rest: dict[str, Any], document: SourceLine) -> Iterator[ImportStep]:
    try:
        raw = document.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(1, str(error))
        yield EntryEnd("error", document.end)
        return
    yield RawEntry(f"around:{digest_text(raw)}", SWE_AGENT_ENTRY, raw)
    yield EntryEnd("imported", document.end)


def _make_key(rest: dict[str, Any], history: list[Any], document: SourceLine) -> str:
    """Return a session's key from its task and first messages, since the file has no id."""
    began: list[Any] = [rest.get("environment"), rest.get("replay_config")]
    for message in history:
        began.append(drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{FORMAT_NAME}-{digest_text(told)}"


def _is_candidate(source: TranscriptSource) -> bool:
    first = source.first_line
    return first is None or (isinstance(first, dict) and "trajectory" in first)
