"""Writes a session as an ATIF trajectory: the original, or one built from its messages."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, ToolCall, ToolResult
from .....domain.messages import Role
from .....domain.session_events import ModelCalled
from .....projections.rendering import summary_message
from ..messages.message_file_writer import encode_messages, restore_original
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    group_outgoing_messages,
)
from ..reading.fields import JsonDict
from ..summary_mark import SUMMARY_MARK, is_imported_summary
from ..writing.marked_text import make_marked_text
from .atif_reader import ATIF_DIALECT, FORMAT_NAME, STEPS_FIELD

ATIF_VERSION = "ATIF-v1.6"


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the original trajectory, or one built from the session's messages."""
    came = restore_original(outgoing, ATIF_DIALECT, FORMAT_NAME)
    if came is not None:
        yield from encode_messages(*came.make_body())
        return
    agent: JsonDict = {"name": outgoing.source or "cutbank", "version": "unknown"}
    if outgoing.model:
        agent["model_name"] = outgoing.model
    if outgoing.tools:
        agent["tool_definitions"] = list(outgoing.tools)
    head = {"schema_version": ATIF_VERSION, "session_id": outgoing.key, "agent": agent}
    yield from encode_messages(head, {STEPS_FIELD: _StepBuilder(outgoing).build()})


class _StepBuilder:
    """The steps of a session from another source."""

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
                self._add("user", text, _format_time(one))["extra"] = dict(SUMMARY_MARK)
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


def _format_time(compacted: OutgoingCompaction) -> str:
    return compacted.time.isoformat()
