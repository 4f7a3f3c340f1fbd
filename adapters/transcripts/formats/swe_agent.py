"""Reads and writes SWE-agent trajectories: history, steps, and the fields around them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....domain.blocks import Block, Kind, ToolCall, ToolResult
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
from .entry_steps import EntryBlocks, EntryLocation, digest_text
from .fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_object
from .format import Format
from .json_lines import NestedTooDeeplyError, SourceLine
from .outgoing import OutgoingEntry, OutgoingMessage, OutgoingSession, read_entry_type
from .placeholders import (
    MIN_COPY_CHARACTERS,
    EarlierValue,
    JsonPath,
    Placeholder,
    fill_entry,
    get_at_path,
    make_remainder,
)
from .source import TranscriptSource
from .steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem, UnknownEntry

FORMAT_NAME = "swe-agent-traj"
_SHELL_TOOL = "bash"
"""The tool of a command that the model wrote in its text."""
_DEVELOPER_AGENT = "developer"
_USER_AGENT = "user"
"""Authors of messages in the user's role that are not observations, by tag."""
_DEMONSTRATION_ENTRY = "demonstration"
_SWE_AGENT_ENTRY = "trajectory"
_STEP_ENTRY = "trajectory/step"
_PROMPT_FIELDS = ("query", "messages")
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
    yield from read_surrounding(rest, document, _SWE_AGENT_ENTRY)


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
        pieces.add_parts(Kind.ASSISTANT, read_contents(message))
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
        is_tagged = _USER_AGENT in tags or _DEVELOPER_AGENT in tags
        if self.open_calls and not is_tagged and not found:
            return self.answer(message, self.open_calls[0], whence)
        pieces = EntryBlocks()
        if found:
            pieces.add_parts(Kind.DEVELOPER, read_contents(message))
            pieces.mark_as_summary(found)
        elif message.get("is_demo") is True:
            pieces.add_parts(Kind.DEVELOPER, read_contents(message))
            pieces.name_blocks(_DEMONSTRATION_ENTRY)
        else:
            # After the model's first message, unmarked user messages come from the program.
            is_first = not (self.last_model_message or _DEVELOPER_AGENT in tags)
            kind = Kind.USER if _USER_AGENT in tags or is_first else Kind.DEVELOPER
            pieces.add_parts(kind, read_contents(message))
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
        kept = drop_fields(step, *_PROMPT_FIELDS)
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
        yield RawEntry(f"step:{number}:{digest_text(raw)}", _STEP_ENTRY, raw, line=number)

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


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    run = _HistoryWriter(outgoing)
    run.fill()
    around = run.around or {"info": {"exit_status": None, "submission": None, "model_stats": {}}}
    whole = {**around, "trajectory": run.steps, "history": run.messages}
    yield json.dumps(whole, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


class _HistoryWriter(TrajectoryWriter):
    def __init__(self, outgoing: OutgoingSession) -> None:
        super().__init__(outgoing, FORMAT_NAME, _SWE_AGENT_ENTRY)
        self.own_steps: dict[int, JsonDict] = {}
        """Steps of the source, by number; the last version of each."""
        self.new_steps: list[JsonDict] = []

    @property
    def steps(self) -> list[JsonDict]:
        return [*(self.own_steps[number] for number in sorted(self.own_steps)), *self.new_steps]

    def make_message(self, role: str, content: str | list[JsonDict]) -> JsonDict:
        if role == "system":
            return _make_message("system", content, "system_prompt")
        return _make_message("user", content, "observation", tags=[role])

    def restore_entry(self, entry: OutgoingEntry) -> None:
        origin = entry.outgoing_blocks[0].block.origin
        rest = entry.remainder
        if rest is None and read_entry_type(entry) == _STEP_ENTRY:
            rest = json.loads(entry.raw or "{}")
        elif rest is None or not origin or not (origin.id or "").startswith("step:"):
            super().restore_entry(entry)
            return
        blocks = [said.block for said in entry.outgoing_blocks if entry.remainder is not None]
        number = (origin and origin.line) or 0
        self.own_steps[number] = fill_entry(rest, blocks, self.restorer.earlier)

    def add_message(self, message: OutgoingMessage) -> None:
        if message.role is Role.ASSISTANT:
            self._add_assistant(message)
        elif message.role is Role.TOOL_RESULT:
            self._add_answers(message)
        else:
            blocks = message.blocks
            said = self.make_message(message.role.value, make_chat_content(blocks, self.outgoing))
            named = blocks[0].name if isinstance(blocks[0], Block) else None
            self.messages.append(
                said | ({"is_demo": True} if named == _DEMONSTRATION_ENTRY else {})
            )

    def _add_assistant(self, message: OutgoingMessage) -> None:
        blocks = message.blocks
        content = make_chat_content(blocks, self.outgoing)
        text = "\n\n".join(block.text for block in blocks if block.kind is Kind.ASSISTANT)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        action = "\n".join(make_shell_command(call) for call in calls)
        said = _make_message("assistant", content, "action", thought=text, action=action)
        if calls:
            said["tool_calls"] = make_call_items(calls)
        self.messages.append(said | make_thought_fields(blocks, self.outgoing))
        self.new_steps.append(
            {
                "action": action,
                "observation": "",
                "response": text,
                "thought": text,
                "state": {},
                "execution_time": 0.0,
                "query": [],
                "extra_info": {},
            }
        )

    def _add_answers(self, message: OutgoingMessage) -> None:
        for block in message.blocks:
            assert isinstance(block, ToolResult), "a message of a tool"
            if block.is_error:
                self.outgoing.count_loss("marks of failed tool results")
            content = make_answer_content(block, self.outgoing)
            ids = [block.tool_call_id]
            self.messages.append(_make_message("tool", content, "observation", tool_call_ids=ids))
            if self.new_steps:
                before = self.new_steps[-1]["observation"]
                self.new_steps[-1]["observation"] = (
                    f"{before}\n{block.text}" if before else block.text
                )


def _make_message(role: str, content: str | list[JsonDict], kind: str, **more: Any) -> JsonDict:
    return {"role": role, "content": content, "agent": "main", "message_type": kind} | more


FORMAT = Format(
    name=FORMAT_NAME,
    description="trajectories of SWE-agent",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".traj",
)
