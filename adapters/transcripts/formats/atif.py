"""Reads and writes the Agent Trajectory Interchange Format: an object with a list of steps."""

import json
from collections.abc import Iterator
from typing import Any

from ....domain.blocks import Block, Kind, Media, ResultPart, Text, ToolCall, ToolResult
from ....domain.messages import Role
from ....domain.session_events import ModelCalled
from ....projections.rendering import summary_message
from .fields import JsonDict, MalformedError, get_field, require_field, require_type
from .format import Format
from .json_lines import SourceLine
from .messages.message_file_reader import (
    SessionKeys,
    read_body_steps,
    read_messages,
    report_no_session,
)
from .messages.message_file_writer import encode_messages, restore_original
from .messages.message_reader import (
    Dialect,
    MalformedPart,
    MessagePart,
    MessageReader,
    ReadBlock,
    UnknownPart,
    make_text_part,
    read_texts,
    text_path,
)
from .outgoing import OutgoingBlock, OutgoingMessage, OutgoingSession, group_outgoing_messages
from .placeholders import JsonPath, Placeholder
from .source import TranscriptSource
from .steps import EntryEnd, ImportStep, SessionStart
from .summary_mark import SUMMARY_MARK, is_imported_summary, make_marked_text

FORMAT_NAME = "atif"
STEPS_FIELD = "steps"


def recognizes(source: TranscriptSource) -> bool:
    if len(source.first_values) > 1:
        return False
    document = source.document
    match document.value if document else None:
        case {"schema_version": str(version), "steps": list()}:
            return version.startswith("ATIF-v")
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    document = source.document
    value = document.value if document else None
    if (
        document is None
        or not isinstance(value, dict)
        or not isinstance(value.get(STEPS_FIELD), list)
    ):
        yield from report_no_session(
            document or SourceLine(1, source.size), "expected a trajectory"
        )
        return
    body: JsonDict = value
    steps = body[STEPS_FIELD]
    named = body.get("session_id") or body.get("trajectory_id")
    key = named if isinstance(named, str) else SessionKeys(source.stem).make_key(steps, document)
    yield SessionStart(key)
    conversation = MessageReader(ATIF_DIALECT, FORMAT_NAME, document, is_on_a_line=False)
    yield from read_body_steps(conversation, body, [(STEPS_FIELD, steps)])
    yield EntryEnd("imported", 0)
    yield from read_messages(conversation, steps, 0)


def read_step_parts(step: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:  # noqa: ARG001 - as others
    match require_field(step, "source", str):
        case "system":
            yield from _read_content(step, "message", Kind.DEVELOPER)
        case "user":
            yield from _read_content(step, "message", Kind.USER)
        case "agent":
            if thought := get_field(step, "reasoning_content", str):
                yield ReadBlock(
                    Block.thinking(thought), (Placeholder(("reasoning_content",), "text"),)
                )
            yield from _read_content(step, "message", Kind.ASSISTANT)
            for index, item in enumerate(get_field(step, "tool_calls", list) or []):
                yield _read_call(item, index, line)
        case unknown:
            yield UnknownPart(f"source/{unknown}", step)
            return
    observation = get_field(step, "observation", dict) or {}
    for index, item in enumerate(get_field(observation, "results", list) or []):
        at: JsonPath = ("observation", "results", index)
        yield from _read_results(item, at)


def _read_content(owner: JsonDict, field: str, kind: Kind) -> Iterator[MessagePart]:
    for at, item in read_texts(owner, field):
        try:
            yield _read_part(at, item, kind)
        except MalformedError as error:
            yield MalformedPart(f"{field}: {error}", item)


def _read_part(at: JsonPath, item: Any, kind: Kind) -> MessagePart:
    match require_type(item):
        case "text":
            return make_text_part(at, item, kind)
        case "image":
            return ReadBlock(Block(kind=Kind.IMAGE, media=_read_image(item)), ())
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_image(item: JsonDict) -> Media:
    source = require_field(item, "source", dict)
    mime = get_field(source, "media_type", str) or "image/*"
    return Media(type="image", mime=mime, url=require_field(source, "path", str))


def _read_call(item: Any, index: int, line: SourceLine) -> MessagePart:
    try:
        if not isinstance(item, dict) or not require_field(item, "tool_call_id", str):
            raise MalformedError("expected an object with an id")  # noqa: TRY301 - as take does
        call = ToolCall(
            tool_call_id=item["tool_call_id"],
            name=require_field(item, "function_name", str),
            arguments=line.to_json(require_field(item, "arguments", dict)),
        )
    except MalformedError as error:
        return MalformedPart(f"tool_calls[{index}]: {error}", item)
    return ReadBlock(call, (Placeholder(("tool_calls", index, "arguments"), "json"),))


def _read_results(item: Any, at: JsonPath) -> Iterator[MessagePart]:
    """Yield results; one that answers no call is a message of the program."""
    try:
        if not isinstance(item, dict):
            raise MalformedError("expected an object")  # noqa: TRY301 - as take does
        id = get_field(item, "source_call_id", str)
        found = [(_read_answer(place, part), place) for place, part in read_texts(item, "content")]
    except MalformedError as error:
        yield MalformedPart(f"observation.results[{at[-1]}]: {error}", item)
        return
    parts = tuple(part for part, _ in found)
    holes = [
        Placeholder((*at, *text_path(place)), "text", index)
        for index, (part, place) in enumerate(found)
        if isinstance(part, Text)
    ]
    is_plain = isinstance(item.get("content"), str)
    if is_plain:
        holes = [Placeholder(hole.path, "text") for hole in holes]
    if id:
        content: Any = (item["content"] if is_plain else parts) or ""
        yield ReadBlock(ToolResult(tool_call_id=id, content=content), tuple(holes))
    elif is_plain and item["content"]:
        yield ReadBlock(Block.developer(item["content"], name="observation"), tuple(holes))


def _read_answer(at: JsonPath, item: Any) -> ResultPart:
    match require_type(item):
        case "text":
            return Text(text=require_field(item, "text", str))
        case "image":
            return _read_image(item)
        case unknown:
            raise MalformedError(f"content{list(at[1:])}: unknown type {unknown}")


def _parse_call_fields(raw: str) -> dict[str, Any] | None:
    """Parse a step's metrics: the tokens of the prompt, and the cached ones among them."""
    match json.loads(raw):
        case {"source": "agent", "metrics": {"prompt_tokens": int(sent)} as metrics, **step}:
            cached = metrics.get("cached_tokens")
            cached = cached if isinstance(cached, int) else 0
            said, cost = metrics.get("completion_tokens"), metrics.get("cost_usd")
            model, time = step.get("model_name"), step.get("timestamp")
            return {
                "call_id": str(step.get("step_id")),
                "model": model if isinstance(model, str) else None,
                "usage": {
                    "input": max(0, sent - cached),
                    "cache_read": cached,
                    "output": said if isinstance(said, int) else None,
                },
                "source_time": time if isinstance(time, str) else None,
                "cost_usd": cost if isinstance(cost, int | float) else None,
            }
        case _:
            return None


ATIF_DIALECT = Dialect(
    FORMAT_NAME,
    (STEPS_FIELD,),
    read_step_parts,
    tools_path=("agent", "tool_definitions"),
    read_call_fields=_parse_call_fields,
)


ATIF_VERSION = "ATIF-v1.6"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the original trajectory, or one built from the session's messages."""
    came = restore_original(outgoing, ATIF_DIALECT, FORMAT_NAME)
    if came is not None:
        yield from encode_messages(*came)
        return
    agent: JsonDict = {"name": outgoing.source or "cutbank", "version": "unknown"}
    if outgoing.model:
        agent["model_name"] = outgoing.model
    if outgoing.tools:
        agent["tool_definitions"] = list(outgoing.tools)
    head = {"schema_version": ATIF_VERSION, "session_id": outgoing.key, "agent": agent}
    yield from encode_messages(head, {STEPS_FIELD: _StepBuilder(outgoing).build()})


class _StepBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.steps: list[JsonDict] = []
        self.asked: dict[str, JsonDict] = {}
        """The step of each open call."""

    def build(self) -> list[JsonDict]:
        if prompt := self.outgoing.system_prompt:
            self._add("system", prompt)
        for one in group_outgoing_messages(self.outgoing.read_parts()):
            if isinstance(one, OutgoingMessage):
                self._add_message(one)
            elif one.summary:
                summary = one.summary
                text = summary_message.wrap_summary(
                    summary.text, summary.covers, one.boundary.hidden
                )
                self._add("user", text, one.time.isoformat())["extra"] = dict(SUMMARY_MARK)
        return self.steps

    def _add_message(self, message: OutgoingMessage) -> None:
        match message.role:
            case Role.TOOL_RESULT:
                for block in message.blocks:
                    if isinstance(block, ToolResult):
                        self._add_answer(block)
            case Role.ASSISTANT:
                self._add_agent_step(message)
            case role:
                for said in message.outgoing_blocks:
                    self._add_text(said, make_marked_text(said.block), by_user=role is Role.USER)

    def _add_text(self, said: OutgoingBlock, text: str, *, by_user: bool) -> None:
        self._lose_media(said.block)
        if not text:
            return
        origin = said.block.origin
        time = (origin and origin.time) or said.time.isoformat()
        if by_user:
            self._add("user", text, time)
        elif is_imported_summary(said.block):
            self._add("user", text, time)["extra"] = dict(SUMMARY_MARK)
        else:
            self._add("system", text, time)["extra"] = {"role": "developer"}

    def _add_agent_step(self, message: OutgoingMessage) -> None:
        first = message.outgoing_blocks[0]
        origin = first.block.origin
        step = self._add("agent", "", (origin and origin.time) or first.time.isoformat())
        words: list[str] = []
        thoughts: list[str] = []
        calls: list[JsonDict] = []
        for block in message.blocks:
            match block:
                case ToolCall():
                    call = {"tool_call_id": block.tool_call_id, "function_name": block.name}
                    calls.append(call | {"arguments": block.parse_arguments()})
                    self.asked[block.tool_call_id] = step
                case Block(kind=Kind.THINKING, text=text):
                    thoughts += [text] if text else []
                    if block.native:
                        self.outgoing.count_loss("signatures of thoughts")
                case _:
                    words += [block.text] if block.text else []
                    if block.native and not block.text:
                        self.outgoing.count_loss("items of a provider")
        step["message"] = "\n\n".join(words)
        if thoughts:
            step["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            step["tool_calls"] = calls
        if message.call:
            step |= _make_metrics(message.call)

    def _add_answer(self, result: ToolResult) -> None:
        step = self.asked.pop(result.tool_call_id, None)
        if step is None:
            self.outgoing.count_loss("tool results without a call")
            return
        self._lose_media(result)
        if result.is_error:
            self.outgoing.count_loss("error marks of tool results")
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": result.tool_call_id, "content": result.text})

    def _lose_media(self, block: Any) -> None:
        media = block.media if isinstance(block, ToolResult | Block) else None
        count = len(media) if isinstance(media, tuple) else int(media is not None)
        if count:
            self.outgoing.count_loss("images and documents", count)

    def _add(self, source: str, message: str, time: str | None = None) -> JsonDict:
        step: JsonDict = {"step_id": len(self.steps) + 1}
        if time:
            step["timestamp"] = time
        step |= {"source": source, "message": message}
        self.steps.append(step)
        return step


def _make_metrics(call: ModelCalled) -> JsonDict:
    found: JsonDict = {"model_name": call.model} if call.model else {}
    usage = call.usage
    if usage and usage.context is not None:
        metrics = {
            "prompt_tokens": usage.context,
            "completion_tokens": usage.output,
            "cached_tokens": usage.cache_read,
            "cost_usd": call.cost_usd,
        }
        found["metrics"] = {name: count for name, count in metrics.items() if count is not None}
    return found


FORMAT = Format(
    name=FORMAT_NAME,
    description="trajectories of the Agent Trajectory Interchange Format",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
)
