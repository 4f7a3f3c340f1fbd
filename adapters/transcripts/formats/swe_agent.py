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
from .format import make_document_format
from .json_lines import NestedTooDeeplyError, SourceLine, encode_document
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


def _is_trajectory(value: Any) -> bool:
    match value:
        case {"trajectory": list(), "history": list(), "info": dict()}:
            return True
        case _:
            return False


def _read_trajectory(document: SourceLine, stem: str) -> Iterator[ImportStep]:
    """Yield the history message by message, then the steps, then the remainder."""
    history: list[Any] = document.value["history"]
    rest = drop_fields(document.value, "history", "trajectory")
    named = [rest.get("environment"), rest.get("replay_config")]
    yield SessionStart(make_trajectory_key(FORMAT_NAME, named, history, document), stem)
    reader = _HistoryReader(FORMAT_NAME, document, "history/")
    unkept: set[int] = set()
    yield from read_chat_messages(history, document, reader.read, "history", unkept)
    # Only its step has the answer to the call that ended the run.
    is_over = isinstance(status := rest["info"].get("exit_status"), str) and bool(status)
    final_call = reader.open_calls[0] if is_over and reader.open_calls else ""
    spoken = (
        number
        for number, message in enumerate(history, 1)
        if isinstance(message, dict) and message.get("role") == "assistant"
    )
    kept = {at: message for at, message in enumerate(history, 1) if at not in unkept}
    for number, step in enumerate(document.value["trajectory"], 1):
        at = next(spoken, 0)
        call = final_call if at == reader.last_model_message else ""
        try:
            read = _read_step(step, document, kept, (number, at), call)
        except (MalformedError, NestedTooDeeplyError) as error:
            raw = document.to_json_or_none(step)
            key = f"trajectory:{number}:{digest_text(raw)}" if raw else None
            yield SourceProblem(number, f"trajectory: {error}", key, raw, is_part=True)
            yield EntryEnd("error", document.end)
            continue
        yield read
        yield EntryEnd("imported", document.end)
    yield from read_surrounding(rest, document, _SWE_AGENT_ENTRY)


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


def _read_step(
    step: Any, document: SourceLine, history: dict[int, Any], places: tuple[int, int], call: str
) -> ImportStep:
    """Return a step without its prompt, and without what the history repeats.

    `history` are the kept messages by number, `places` are the numbers of the step and of the
    model's message, and `call` is its call if only the step has the answer.
    """
    number, at = places
    kept = drop_fields(require_object(step), *_PROMPT_FIELDS)
    pieces = EntryBlocks()
    for name, there in _REPEATED_FIELDS.items():
        pieces.earlier_values += _find_copy(kept, name, history, at, there)
    observed = kept.get("observation")
    if call and isinstance(observed, str) and observed:
        pieces.add_tool_result(call, [(observed, ("observation",))])
        key = f"step:{number}:{digest_text(document.to_json(kept))}"
        whence = EntryLocation(FORMAT_NAME, key, document, number, id=f"step:{number}")
        (append,) = pieces.make_appends(whence, kept)
        return append
    if at:
        pieces.earlier_values += _find_copy(
            kept, "observation", history, at + 1, ("content",)
        ) or _find_copy(kept, "observation", history, at + 1, ("content", 0, "text"))
    raw = document.to_json(make_remainder(kept, pieces.earlier_values))
    return RawEntry(f"step:{number}:{digest_text(raw)}", _STEP_ENTRY, raw, line=number)


def _find_copy(
    step: JsonDict, name: str, history: dict[int, Any], at: int, there: JsonPath
) -> list[EarlierValue]:
    """Return where the message has the text of a field, if it is worth a reference."""
    text = step.get(name)
    if not isinstance(text, str) or len(text) < MIN_COPY_CHARACTERS:
        return []
    try:
        whole = get_at_path(history[at], there)
    except (LookupError, TypeError):
        return []
    if not isinstance(whole, str) or (start := whole.find(text)) < 0:
        return []
    return [EarlierValue((name,), at, there, (start, start + len(text)))]


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    run = _HistoryWriter(outgoing, FORMAT_NAME, _SWE_AGENT_ENTRY)
    run.fill()
    if run.has_new_messages and run.final_answer:
        run.messages.insert(*run.final_answer)
    around = run.around or {"info": {"exit_status": None, "submission": None, "model_stats": {}}}
    own_steps = [run.own_steps[number] for number in sorted(run.own_steps)]
    steps = [*own_steps, *run.new_steps]
    yield encode_document({**around, "trajectory": steps, "history": run.messages})


class _HistoryWriter(TrajectoryWriter):
    def __init__(self, outgoing: OutgoingSession, own: str, around_type: str) -> None:
        super().__init__(outgoing, own, around_type)
        self.own_steps: dict[int, JsonDict] = {}
        """Steps of the source, by number; the last version of each."""
        self.new_steps: list[JsonDict] = []
        self.final_answer: tuple[int, JsonDict] | None = None
        """The answer that only a step has, and its index in the history if the run went on."""

    def make_message(self, role: str, content: str | list[JsonDict]) -> JsonDict:
        if role == "system":
            return _make_message("system", content, "system_prompt")
        return _make_message("user", content, "observation", tags=[role])

    def restore_entry(self, entry: OutgoingEntry) -> None:
        first = entry.outgoing_blocks[0]
        origin = first.block.origin
        if read_entry_type(entry) == _STEP_ENTRY:
            step = fill_entry(json.loads(entry.raw or "{}"), [], self.restorer.earlier)
        elif entry.remainder and origin and (origin.id or "").startswith("step:"):
            step = fill_entry(entry.remainder, [first.block], self.restorer.earlier)
            if isinstance(first.block, ToolResult) and not first.is_retracted:
                self._keep_final_answer(first.block)
        else:
            super().restore_entry(entry)
            return
        self.own_steps[(origin and origin.line) or 0] = step

    def _keep_final_answer(self, result: ToolResult) -> None:
        match self.messages:
            case [*_, {"role": "assistant", "tool_calls": [_, *_]}]:
                ids = [result.tool_call_id]
                answer = _make_message("tool", result.text, "observation", tool_call_ids=ids)
            case [*_, {"role": "assistant"}]:
                answer = _make_message("user", result.text, "observation")
            case _:
                return
        self.final_answer = (len(self.messages), answer)

    def add_message(self, message: OutgoingMessage) -> None:
        if message.role is Role.ASSISTANT:
            self._add_assistant(message)
        elif message.role is Role.TOOL_RESULT:
            self._add_answers(message)
        else:
            blocks = message.blocks
            said = self.make_message(message.role.value, make_chat_content(blocks, self.outgoing))
            named = blocks[0].name if isinstance(blocks[0], Block) else None
            is_demo = {"is_demo": True} if named == _DEMONSTRATION_ENTRY else {}
            self.messages.append(said | is_demo)

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
        step = {"action": action, "observation": "", "response": text, "thought": text}
        around = {"state": {}, "execution_time": 0.0, "query": [], "extra_info": {}}
        self.new_steps.append(step | around)

    def _add_answers(self, message: OutgoingMessage) -> None:
        for block in message.blocks:
            assert isinstance(block, ToolResult), "a message of a tool"
            if block.is_error:
                self.outgoing.count_loss("marks of failed tool results")
            content = make_answer_content(block, self.outgoing)
            ids = [block.tool_call_id]
            self.messages.append(_make_message("tool", content, "observation", tool_call_ids=ids))
            if self.new_steps:
                step = self.new_steps[-1]
                before = step["observation"]
                step["observation"] = f"{before}\n{block.text}" if before else block.text


def _make_message(role: str, content: str | list[JsonDict], kind: str, **more: Any) -> JsonDict:
    return {"role": role, "content": content, "agent": "main", "message_type": kind} | more


FORMAT = make_document_format(
    FORMAT_NAME,
    "trajectories of SWE-agent",
    _is_trajectory,
    _read_trajectory,
    write,
    suffix=".traj",
)
