"""Writes a session as an ATIF trajectory: as it came, or made of its messages."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, ToolCall, ToolResult
from .....domain.messages import Role
from .....domain.session_events import ModelCalled
from .....projections.rendering import summary_message
from ..messages.writer import as_it_came, spelt
from ..outgoing import Compacted, Message, Outgoing, Said, messages
from ..reading.fields import Item
from ..summary_mark import MARK, is_summary
from ..writing.as_text import marked_text
from .reader import DIALECT, NAME, STEPS

WRITTEN_AS = "ATIF-v1.6"


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The trajectory as it came, or one made of the session's messages."""
    came = as_it_came(outgoing, DIALECT, NAME)
    if came is not None:
        yield from spelt(*came.body())
        return
    agent: Item = {"name": outgoing.source or "cutbank", "version": "unknown"}
    if outgoing.model:
        agent["model_name"] = outgoing.model
    if outgoing.tools:
        agent["tool_definitions"] = list(outgoing.tools)
    head = {"schema_version": WRITTEN_AS, "session_id": outgoing.key, "agent": agent}
    yield from spelt(head, {STEPS: _Steps(outgoing).all()})


class _Steps:
    """The steps of a session that came from elsewhere."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.steps: list[Item] = []
        self.asked: dict[str, Item] = {}
        """The step that made each call that waits."""

    def all(self) -> list[Item]:
        if prompt := self.outgoing.system_prompt:
            self._add("system", prompt)
        for one in messages(self.outgoing.parts()):
            if isinstance(one, Message):
                self._message(one)
            elif one.summary:
                summary = one.summary
                text = summary_message.wrapped(summary.text, summary.covers, one.boundary.hidden)
                self._add("user", text, _iso(one))["extra"] = dict(MARK)
        return self.steps

    def _message(self, message: Message) -> None:
        match message.role:
            case Role.TOOL_RESULT:
                for block in message.blocks:
                    if isinstance(block, ToolResult):
                        self._answer(block)
            case Role.ASSISTANT:
                self._agent(message)
            case role:
                for said in message.said:
                    self._told(said, marked_text(said.block), by_user=role is Role.USER)

    def _told(self, said: Said, text: str, *, by_user: bool) -> None:
        self._lose_media(said.block)
        if not text:
            return
        origin = said.block.origin
        time = (origin and origin.time) or said.time.isoformat()
        if by_user:
            self._add("user", text, time)
        elif is_summary(said.block):
            self._add("user", text, time)["extra"] = dict(MARK)
        else:
            self._add("system", text, time)["extra"] = {"role": "developer"}

    def _agent(self, message: Message) -> None:
        first = message.said[0]
        origin = first.block.origin
        step = self._add("agent", "", (origin and origin.time) or first.time.isoformat())
        words: list[str] = []
        thoughts: list[str] = []
        calls: list[Item] = []
        for block in message.blocks:
            match block:
                case ToolCall():
                    call = {"tool_call_id": block.tool_call_id, "function_name": block.name}
                    calls.append(call | {"arguments": block.parsed()})
                    self.asked[block.tool_call_id] = step
                case Block(kind=Kind.THINKING, text=text):
                    thoughts += [text] if text else []
                    if block.native:
                        self.outgoing.lose("signatures of thoughts")
                case _:
                    words += [block.text] if block.text else []
                    if block.native and not block.text:
                        self.outgoing.lose("items of a provider")
        step["message"] = "\n\n".join(words)
        if thoughts:
            step["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            step["tool_calls"] = calls
        if message.call:
            step |= _metrics(message.call)

    def _answer(self, result: ToolResult) -> None:
        step = self.asked.pop(result.tool_call_id, None)
        if step is None:
            self.outgoing.lose("tool results without a call")
            return
        self._lose_media(result)
        if result.is_error:
            self.outgoing.lose("error marks of tool results")
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": result.tool_call_id, "content": result.text})

    def _lose_media(self, block: Any) -> None:
        media = block.media if isinstance(block, ToolResult | Block) else None
        count = len(media) if isinstance(media, tuple) else int(media is not None)
        if count:
            self.outgoing.lose("images and documents", count)

    def _add(self, source: str, message: str, time: str | None = None) -> Item:
        step: Item = {"step_id": len(self.steps) + 1}
        if time:
            step["timestamp"] = time
        step |= {"source": source, "message": message}
        self.steps.append(step)
        return step


def _metrics(call: ModelCalled) -> Item:
    found: Item = {"model_name": call.model} if call.model else {}
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


def _iso(compacted: Compacted) -> str:
    return compacted.time.isoformat()
