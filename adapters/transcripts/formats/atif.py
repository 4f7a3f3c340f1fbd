"""Reads and writes the Agent Trajectory Interchange Format: an object with a list of steps."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ....domain.blocks import Block, BlockKind, Media, Text, ToolCall, ToolResult
from ....domain.item import Role
from ....domain.session_events import ModelCalled
from ....projections.rendering import summary_message
from .fields import (
    JsonDict,
    MalformedError,
    get_field,
    require_field,
    require_name,
    require_object,
    require_type,
)
from .format import make_document_format
from .json_lines import SourceLine
from .messages.message_file_reader import SessionKeys, read_body
from .messages.message_file_writer import encode_messages
from .messages.message_reader import (
    Dialect,
    MalformedPart,
    MessagePart,
    MessageReader,
    UnknownPart,
    make_text_block,
    read_content_parts,
    read_texts,
)
from .outgoing import OutgoingMessage, OutgoingSession, get_block_time, group_outgoing_messages
from .steps import ImportStep, SessionStart
from .summary_mark import SUMMARY_MARK, is_imported_summary, make_marked_text

FORMAT_NAME = "atif"
STEPS_FIELD = "steps"


def _is_trajectory(value: Any) -> bool:
    match value:
        case {"schema_version": str(version), "steps": list()}:
            return version.startswith("ATIF-v")
        case _:
            return False


def _read_trajectory(document: SourceLine, stem: str) -> Iterator[ImportStep]:
    body: JsonDict = document.value
    steps = body[STEPS_FIELD]
    named = body.get("session_id") or body.get("trajectory_id")
    key = named if isinstance(named, str) else SessionKeys(stem).make_key(steps, document)
    yield SessionStart(key)
    conversation = MessageReader(ATIF_DIALECT, FORMAT_NAME, document)
    yield from read_body(conversation, body)
    yield from conversation.read_all(steps)


def read_step_parts(step: JsonDict, line: SourceLine, _number: int) -> Iterator[MessagePart]:
    match require_field(step, "source", str):
        case "system":
            yield from _read_content(step, BlockKind.DEVELOPER)
        case "user":
            yield from _read_content(step, BlockKind.USER)
        case "agent":
            if thought := get_field(step, "reasoning_content", str):
                yield Block.thinking(thought)
            yield from _read_content(step, BlockKind.ASSISTANT)
            yield from _read_each(step, "tool_calls", partial(_read_call, line))
        case unknown:
            yield UnknownPart(f"source/{unknown}", step)
            return
    observation = get_field(step, "observation", dict) or {}
    yield from _read_each(observation, "results", _read_result, "observation.")


def _read_content(step: JsonDict, kind: BlockKind) -> Iterator[MessagePart]:
    def read(item: Any) -> MessagePart:
        match require_type(item):
            case "text":
                return make_text_block(item, kind)
            case "image":
                return Block(kind=BlockKind.IMAGE, media=_read_image(item))
            case unknown:
                return UnknownPart(f"content/{unknown}", item)

    return read_content_parts(step, "message", read)


def _read_each(
    owner: JsonDict,
    field: str,
    read: Callable[[JsonDict], MessagePart | None],
    within: str = "",
) -> Iterator[MessagePart]:
    """Yield the parts of a list's objects."""
    for index, item in enumerate(get_field(owner, field, list) or []):
        try:
            part = read(require_object(item))
        except MalformedError as error:
            part = MalformedPart(f"{within}{field}[{index}]: {error}")
        if part:
            yield part


def _read_call(line: SourceLine, item: JsonDict) -> MessagePart:
    return ToolCall(
        tool_call_id=require_name(item, "tool_call_id"),
        name=require_field(item, "function_name", str),
        arguments=line.to_json(require_field(item, "arguments", dict)),
    )


def _read_result(item: JsonDict) -> MessagePart | None:
    """Return a result; one that answers no call is a message of the program."""
    id, content = get_field(item, "source_call_id", str), item.get("content")
    if isinstance(content, str):
        if id:
            return ToolResult(tool_call_id=id, content=content)
        return Block.developer(content, name="observation") if content else None
    parts = [_read_answer(at, part) for at, part in enumerate(read_texts(item, "content"))]
    return ToolResult(tool_call_id=id, content=tuple(parts) or "") if id else None


def _read_answer(at: int, item: Any) -> Text | Media:
    match require_type(item):
        case "text":
            return Text(text=require_field(item, "text", str))
        case "image":
            return _read_image(item)
        case unknown:
            raise MalformedError(f"content[{at}]: unknown type {unknown}")


def _read_image(item: JsonDict) -> Media:
    source = require_field(item, "source", dict)
    mime = get_field(source, "media_type", str) or "image/*"
    return Media(type="image", mime=mime, url=require_field(source, "path", str))


def _read_call_fields(step: JsonDict) -> JsonDict | None:
    """Return the call that a step reports; its prompt's tokens include the cached ones."""
    match step:
        case {"source": "agent", "metrics": {"prompt_tokens": int(sent)} as metrics}:
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
    read_call_fields=_read_call_fields,
)


ATIF_VERSION = "ATIF-v1.6"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield a trajectory, built from the session's messages."""
    outgoing.count_missing(holds_prompt=True, holds_tools=True)
    agent: JsonDict = {"name": outgoing.source or "cutbank", "version": "unknown"}
    if outgoing.model:
        agent["model_name"] = outgoing.model
    if outgoing.tools:
        agent["tool_definitions"] = list(outgoing.tools)
    head = {"schema_version": ATIF_VERSION, "session_id": outgoing.key, "agent": agent}
    yield from encode_messages(head, STEPS_FIELD, _StepBuilder(outgoing).build())


class _StepBuilder:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.steps: list[JsonDict] = []
        self.asked: dict[str, JsonDict] = {}
        """The step of each open call."""

    def build(self) -> list[JsonDict]:
        if prompt := self.outgoing.system_prompt:
            self._add("system", prompt)
        for one in group_outgoing_messages(self.outgoing, self.outgoing.read_parts()):
            if isinstance(one, OutgoingMessage):
                self._add_message(one)
            elif one.summary:
                summary, hidden = one.summary, one.boundary.hidden
                text = summary_message.wrap_summary(summary.text, summary.covers, hidden)
                self._add("user", text, one.time.isoformat(), SUMMARY_MARK)
        return self.steps

    def _add_message(self, message: OutgoingMessage) -> None:
        if message.role is Role.ASSISTANT:
            self._add_agent_step(message)
            return
        for said in message.outgoing_blocks:
            self._lose_media(said.block)
            if isinstance(said.block, ToolResult):
                self._add_answer(said.block)
            elif text := make_marked_text(said.block):
                time = get_block_time(said).isoformat()
                if is_imported_summary(said.block):
                    self._add("user", text, time, SUMMARY_MARK)
                elif message.role is Role.USER:
                    self._add("user", text, time)
                else:
                    self._add("system", text, time, {"role": "developer"})

    def _add_agent_step(self, message: OutgoingMessage) -> None:
        step = self._add("agent", "", get_block_time(message.outgoing_blocks[0]).isoformat())
        words: list[str] = []
        thoughts: list[str] = []
        calls: list[JsonDict] = []
        for block in message.blocks:
            match block:
                case ToolCall():
                    call = {"tool_call_id": block.tool_call_id, "function_name": block.name}
                    calls.append(call | {"arguments": block.parse_arguments()})
                    self.asked[block.tool_call_id] = step
                case Block(kind=BlockKind.THINKING, text=text):
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
        if result.is_error:
            self.outgoing.count_loss("error marks of tool results")
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": result.tool_call_id, "content": result.text})

    def _lose_media(self, block: Any) -> None:
        media = block.media if isinstance(block, ToolResult | Block) else None
        count = len(media) if isinstance(media, tuple) else int(media is not None)
        if count:
            self.outgoing.count_loss("images and documents", count)

    def _add(
        self, source: str, message: str, time: str | None = None, extra: JsonDict | None = None
    ) -> JsonDict:
        step: JsonDict = {"step_id": len(self.steps) + 1}
        if time:
            step["timestamp"] = time
        step |= {"source": source, "message": message}
        if extra:
            step["extra"] = dict(extra)
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


FORMAT = make_document_format(
    FORMAT_NAME,
    "trajectories of the Agent Trajectory Interchange Format",
    _is_trajectory,
    _read_trajectory,
    write,
)
