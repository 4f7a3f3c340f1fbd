"""What a message that Gemini CLI recorded becomes: its blocks, its tool calls and their results."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Origin, Text, ToolCall, ToolResult
from .....domain.compaction_events import Trigger
from .....domain.session_events import Usage
from ..content.holes import Hole, rest_of
from ..json_lines import Line
from ..reading.entry_steps import EntrySteps, digest_of
from ..reading.fields import Item, MalformedError, take, take_optional
from ..steps import Append, Call, Compacted, Step
from ..summary_mark import summary_of
from .cli_writer import NAME
from .parts import answer_of, content_of, kind_of_user_text, media_holes, media_of

_FAILED = ("error", "cancelled")
_OF_THE_CALL = ("id", "name", "args", "displayName", "description", "renderOutputAsMarkdown")


@dataclass(slots=True)
class Known:
    """What is known of a session at one of its messages."""

    line: Line
    open: set[str] = field(default_factory=set)
    """Tool calls without a result."""
    has_said: bool = False


class Message:
    """A message while it is read. What its blocks do not hold stays in its envelope."""

    def __init__(self, of: Known, entry: EntrySteps, item: Item, id: str) -> None:
        self.of = of
        self.entry = entry
        self.line = of.line
        self.item = item
        self.id = id
        self.time = take_optional(item, "timestamp", str)
        self.envelope = dict(item)
        self.said: list[Step] = []

    def user(self) -> None:
        for at, owner, text in self._contents():
            if found := summary_of(self.item, text):
                if self.of.has_said:
                    key = f"{self.id}:compacted"
                    self.said.append(Compacted(key, Trigger.MANUAL, found.text))
                    continue
                block = Block.developer(found.text, name="summary")
            elif text is not None:
                block = Block(kind=kind_of_user_text(text), text=text)
            else:
                self._media(at, owner)
                continue
            self._say_text(at, owner, block, text or "")

    def gemini(self) -> None:
        for index, thought in enumerate(take_optional(self.item, "thoughts", list) or []):
            self._thought(thought, index)
        for at, owner, text in self._contents():
            if text is not None:
                self._say_text(at, owner, Block.assistant(text), text)
        for index, call in enumerate(take_optional(self.item, "toolCalls", list) or []):
            try:
                self._call(call, index)
            except MalformedError as error:
                raw = self.line.json(call)
                self.entry.problem(f"toolCalls[{index}]: {error}", raw)
        usage = _usage_of(self.item)
        if usage:
            fields = {
                "call_id": self.id,
                "model": take_optional(self.item, "model", str),
                "usage": usage,
                "source_time": self.time,
            }
            self.said.append(Call(f"{self.id}:call", fields, before=self.id))

    def _contents(self) -> Iterator[tuple[list[str | int], Any, str | None]]:
        """The texts and other parts of the content: where each is, its owner, and its text."""
        content = self.item.get("content")
        if content is None or isinstance(content, str):
            if content:
                yield ["content"], None, content
            return
        for index, part in enumerate(take(self.item, "content", list)):
            match part:
                case str(text) if text:
                    yield ["content", index], None, text
                case {"text": str(text)} if text:
                    yield ["content", index], part, text
                case dict() if "inlineData" in part or "fileData" in part:
                    yield ["content", index], part, None
                case _:
                    pass  # it stays in the envelope

    def _say_text(self, at: list[str | int], owner: Any, block: Block, text: str) -> None:
        holes: list[Hole] = []
        if block.text == text:  # a summary is without its mark, which stays in the rest
            holes.append(Hole(("value",) if owner is None else ("value", "text")))
        key = f"{self.id}:{'/'.join(map(str, at))}:{digest_of(block.text)}"
        self._say(key, at, (text if owner is None else owner, holes), block)

    def _media(self, at: list[str | int], owner: Item) -> None:
        media = media_of(owner)
        if media is None:
            raise MalformedError("content: expected a mimeType and data, or a fileUri")
        holes = media_holes(owner, media, ("value",))
        block = Block(kind=Kind(media.type), media=media)
        self._say(f"{self.id}:{'/'.join(map(str, at))}", at, (owner, holes), block)

    def _thought(self, thought: Any, index: int) -> None:
        if not isinstance(thought, dict):
            raise MalformedError(f"thoughts[{index}]: expected an object")
        within = f"thoughts[{index}]."
        subject = take_optional(thought, "subject", str, within)
        description = take_optional(thought, "description", str, within) or ""
        lead = f"**{subject}**\n\n" if subject else ""
        if not lead and not description:
            return
        at: list[str | int] = ["thoughts", index]
        holes: list[Hole] = []
        whole = lead + description
        if description:
            holes.append(Hole(("value", "description"), span=(len(lead), len(whole))))
        key = f"{self.id}:thoughts/{index}:{digest_of(whole)}"
        self._say(key, at, (thought, holes), Block.thinking(whole))

    def _call(self, call: Any, index: int) -> None:
        """A call and its result. What is told of the result is the rest of the result."""
        if not isinstance(call, dict):
            raise MalformedError("expected an object")
        name = take(call, "name", str)
        told = take_optional(call, "id", str) or f"{self.id}-{index}"
        arguments = take_optional(call, "args", dict)
        result = take_optional(call, "result", list)
        at: list[str | int] = ["toolCalls", index]
        answered = result is not None or call.get("status") in (*_FAILED, "success")
        mine = {field: one for field, one in call.items() if field in _OF_THE_CALL or not answered}
        holes = [] if arguments is None else [Hole(("value", "args"), "json")]
        known = f"{told}-{self.id}-{index}" if told in self.of.open else told
        made = ToolCall(tool_call_id=known, name=name, arguments=self.line.json(arguments or {}))
        answer = self._answer(call, known) if answered else None
        self._say(f"{self.id}:{told}/{index}:call", at, (mine, holes), made)
        if answer:
            self._say(f"{self.id}:{told}/{index}:result", at, *answer)
        else:
            self.of.open.add(known)

    def _answer(self, call: Item, known: str) -> tuple[tuple[Item, list[Hole]], ToolResult]:
        rest = {field: one for field, one in call.items() if field not in _OF_THE_CALL}
        holes: list[Hole] = []
        parts: list[Any] = []
        is_error = call.get("status") in _FAILED
        for index, part in enumerate(call.get("result") or []):
            place = ("value", "result", index)
            match part:
                case str(text):
                    holes.append(Hole(place, "text", len(parts)))
                    parts.append(Text(text=text))
                case {"text": str(text)}:
                    holes.append(Hole((*place, "text"), "text", len(parts)))
                    parts.append(Text(text=text))
                case {"functionResponse": dict(response)}:
                    where = (*place, "functionResponse")
                    answer = answer_of(response, where, self.line, len(parts))
                    parts += answer.parts
                    holes += answer.holes
                    is_error = is_error or answer.is_error
                case dict() if media := media_of(part):
                    holes += media_holes(part, media, place, len(parts))
                    parts.append(media)
                case _:
                    raise MalformedError(f"result[{index}]: not a part that is known")
        shown = call.get("resultDisplay")
        if isinstance(shown, str) and shown and parts and isinstance(parts[0], Text):
            start = parts[0].text.find(shown)
            if start >= 0:
                span = (start, start + len(shown))
                holes.append(Hole(("value", "resultDisplay"), "text", 0, span=span))
        content = content_of(parts)
        made = ToolResult(tool_call_id=known, content=content, is_error=is_error)
        return (rest, holes), made

    def _say(
        self, key: str, at: list[str | int], piece: tuple[Any, list[Hole]], block: AnyBlock
    ) -> None:
        """A block; its rest is the piece of the message that stands there."""
        value, holes = piece
        rest = self.line.json(rest_of({"at": at, "value": value}, holes))
        origin = Origin(format=NAME, id=self.id, time=self.time, line=self.entry.number, entry=rest)
        by_model = self.item["type"] == "gemini" and not isinstance(block, ToolResult)
        shared = {"origin": origin, "message_id": self.id if by_model else None}
        self.said.append(Append(key, block.model_copy(update=shared), self.id))
        self._hold(at)

    def _hold(self, at: list[str | int]) -> None:
        """Take out of the envelope what blocks hold; its place in a list stays."""
        if len(at) == 1:
            self.envelope.pop(str(at[0]), None)
            return
        field, index = str(at[0]), int(at[1])
        if self.envelope[field] is self.item[field]:
            self.envelope[field] = list(self.item[field])
        self.envelope[field][index] = None


def _usage_of(item: Item) -> Usage | None:
    """The tokens of a call: the prompt's are told with those that came from a cache."""
    tokens = take_optional(item, "tokens", dict)
    if tokens is None:
        return None
    read, cached, wrote, thought, tools = (
        take_optional(tokens, name, int, "tokens.")
        for name in ("input", "cached", "output", "thoughts", "tool")
    )
    return Usage(
        input=None if read is None else max(0, read - (cached or 0)) + (tools or 0),
        cache_read=cached,
        output=None if wrote is None else wrote + (thought or 0),
        reasoning=thought,
    )
