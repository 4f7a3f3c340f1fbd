"""What each message of a trajectory of mini-SWE-agent becomes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..json_lines import Line
from ..openhands.usage import number_of, usage_of
from ..reading.chat_content import contents, say, think, tool_calls
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Pieces, Whence
from ..steps import Aside, Asked, Call, Compacted, Step, Unknown
from ..summary_mark import summary_of
from .talk import FENCED

NAME = "mini-swe-agent"
SHELL = "bash"
"""The only tool of this agent."""
BY = "by"
"""The field of `extra` that says who spoke in a user's role, where cutbank wrote it."""


@dataclass(slots=True)
class Messages:
    """What is known of a trajectory at some message of it."""

    line: Line
    model: str | None = None
    open: list[str] = field(default_factory=list)
    said: bool = False

    def read(self, message: Any, number: int, key: str, raw: str) -> list[Step]:
        """The steps of one message."""
        if not isinstance(message, dict):
            raise MalformedError(f"expected an object, got {json_name(message)}")
        extra = take_optional(message, "extra", dict) or {}
        time = number_of(extra.get("timestamp"))
        told = self.line.json(extra["timestamp"]) if time is not None else None
        whence = Whence(NAME, key, self.line, number, None, told)
        match take(message, "role", str):
            case "system":
                texts = [value for value, _ in contents(message) if isinstance(value, str)]
                asked = Asked(f"{key}:asked", "\n\n".join(texts))
                return [asked, Aside(key, "system", raw, line=number)]
            case "assistant":
                return list(self._assistant(message, extra, whence, raw))
            case "user":
                return list(self._user(message, extra, whence, raw))
            case "tool":
                call = take(message, "tool_call_id", str)
                if not call:
                    raise MalformedError("tool_call_id: expected an id, but it is empty")
                return list(self._answer(message, call, extra, whence))
            case "exit":
                return [Aside(key, "exit", raw, line=number)]
            case role:
                return [Unknown(key, f"messages/{role}", raw, number)]

    def _assistant(
        self, message: dict[str, Any], extra: dict[str, Any], whence: Whence, raw: str
    ) -> Iterator[Step]:
        pieces = Pieces()
        think(pieces, message, self.line)
        say(pieces, Kind.ASSISTANT, message)
        for index, call in tool_calls(message):
            at = ("tool_calls", index, "function", "arguments")
            function = call["function"]
            pieces.add(_call(call["id"], function["name"], function["arguments"]), at)
        self._find_commands(pieces, message, whence)
        self.open = [block.tool_call_id for block in pieces.blocks if isinstance(block, ToolCall)]
        response = extra.get("response")
        told = response if isinstance(response, dict) else {}
        id = told.get("id")
        call_id = id if isinstance(id, str) and id else f"message-{whence.number}"
        yield from self._blocks(pieces, message, whence, raw, call_id)
        if pieces.blocks and (told or extra.get("cost") is not None):
            yield self._spent(told, extra, call_id, whence)

    def _find_commands(self, pieces: Pieces, message: dict[str, Any], whence: Whence) -> None:
        """The command that stands in the text, where the message calls no tool."""
        if any(isinstance(block, ToolCall) for block in pieces.blocks):
            return
        # Older versions tell nothing beside the text, newer ones which actions they found in it.
        match message:
            case {"extra": {"actions": [_, *_]}}:
                pass
            case _ if message.keys() > {"role", "content"}:
                return
            case _:
                pass
        found = [match[1] for block in pieces.blocks for match in FENCED.finditer(block.text or "")]
        # The agent runs a command only where there is just one.
        if len(found) == 1:
            arguments = self.line.json({"command": found[0]})
            pieces.add(_call(f"call-{whence.number}", SHELL, arguments))

    def _user(
        self, message: dict[str, Any], extra: dict[str, Any], whence: Whence, raw: str
    ) -> Iterator[Step]:
        by = extra.get(BY)
        found = _summary(message)
        if found and self.said:
            yield Compacted(
                key=f"{whence.key}:compacted",
                trigger=Trigger.THRESHOLD,
                summary=found,
                source_time=whence.time,
                partial="which blocks stayed is not said",
            )
            yield Aside(whence.key, "user", raw, line=whence.number)
            return
        if self.open and by is None and not found and self._is_output(self.open[0], extra):
            yield from self._answer(message, self.open[0], extra, whence)
            return
        pieces = Pieces()
        if found:
            say(pieces, Kind.DEVELOPER, message)
            pieces.call_summary(found)
        else:
            by_program = by == "developer" or isinstance(extra.get("interrupt_type"), str)
            say(pieces, Kind.DEVELOPER if by_program else Kind.USER, message)
        yield from self._blocks(pieces, message, whence, raw)

    def _is_output(self, call: str, extra: dict[str, Any]) -> bool:
        # A call that was found in the text is answered by a user's message, and by no other role.
        return call.startswith("call-") and not isinstance(extra.get("interrupt_type"), str)

    def _answer(
        self, message: dict[str, Any], call: str, extra: dict[str, Any], whence: Whence
    ) -> Iterator[Step]:
        pieces = Pieces()
        pieces.result(call, contents(message), is_error=bool(extra.get("exception_info")))
        if call in self.open:
            self.open.remove(call)
        self.said = True
        yield from pieces.appends(whence, message)

    def _blocks(
        self,
        pieces: Pieces,
        message: dict[str, Any],
        whence: Whence,
        raw: str,
        message_id: str | None = None,
    ) -> Iterator[Step]:
        if pieces.blocks:
            self.said = True
            yield from pieces.appends(whence, message, message_id)
        else:
            yield Aside(whence.key, str(message["role"]), raw, line=whence.number)

    def _spent(
        self, response: dict[str, Any], extra: dict[str, Any], call_id: str, whence: Whence
    ) -> Call:
        model, choices = response.get("model"), response.get("choices")
        match choices:
            case [{"finish_reason": str(reason)}, *_]:
                stop: str | None = reason
            case _:
                stop = None
        fields = {
            "call_id": call_id,
            "model": model if isinstance(model, str) else self.model,
            "usage": usage_of(response.get("usage")),
            "cost_usd": number_of(extra.get("cost")),
            "stop_reason": stop,
            "source_time": whence.time,
        }
        return Call(f"call:{whence.key}", fields, whence.key)


def _call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=id, name=name, arguments=arguments)


def _summary(message: dict[str, Any]) -> str | None:
    match contents(message):
        case [(str(text), _)]:
            found = summary_of(message, text)
            return found.text if found else None
        case _:
            return None
