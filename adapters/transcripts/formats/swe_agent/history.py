"""What each message of SWE-agent's history becomes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import Kind, ToolCall
from .....domain.compaction_events import Trigger
from ..content.holes import Hole
from ..json_lines import Line
from ..reading.chat_content import contents, say, think, tool_calls
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Pieces, Whence
from ..steps import Aside, Asked, Compacted, Step, Unknown
from ..summary_mark import summary_of

NAME = "swe-agent-traj"
SHELL = "bash"
"""The tool that a command is for which the model wrote into its text."""
DEVELOPER = "developer"
PERSON = "user"
"""Tags of messages that are no observation, though the role is a user's: by whom they are."""
DEMONSTRATION = "demonstration"


@dataclass(slots=True)
class History:
    """What is known of a history at some message of it."""

    line: Line
    open: list[str] = field(default_factory=list)
    """Calls without an answer, oldest first."""
    spoke: int = 0
    """Which message the model spoke last."""
    said: bool = False
    lost: set[int] = field(default_factory=set)
    """Messages that could not even be kept as they came."""

    def read(self, message: Any, number: int, key: str, raw: str) -> list[Step]:
        """The steps of one message."""
        if not isinstance(message, dict):
            raise MalformedError(f"expected an object, got {json_name(message)}")
        whence = Whence(NAME, key, self.line, number)
        match take(message, "role", str):
            case "system":
                return list(self._system(message, whence, raw))
            case "assistant":
                return list(self._assistant(message, whence, raw))
            case "user":
                return list(self._user(message, whence, raw))
            case "tool":
                ids = take(message, "tool_call_ids", list)
                if not ids or not isinstance(ids[0], str) or not ids[0]:
                    raise MalformedError("tool_call_ids: expected ids")
                return list(self._answer(message, ids[0], whence))
            case role:
                return [Unknown(key, f"history/{role}", raw, number)]

    def _system(self, message: dict[str, Any], whence: Whence, raw: str) -> Iterator[Step]:
        texts = [value for value, _ in contents(message) if isinstance(value, str)]
        yield Asked(f"{whence.key}:asked", "\n\n".join(texts))
        yield Aside(whence.key, "history/system", raw, line=whence.number)

    def _assistant(self, message: dict[str, Any], whence: Whence, raw: str) -> Iterator[Step]:
        pieces = Pieces()
        think(pieces, message, self.line)
        say(pieces, Kind.ASSISTANT, message)
        action = take_optional(message, "action", str)
        calls = list(tool_calls(message))
        for index, call in calls:
            at = ("tool_calls", index, "function", "arguments")
            function = call["function"]
            pieces.add(_call(call["id"], function["name"], function["arguments"]), at)
        if not calls and action and action.strip():
            # Older versions: the call is a stretch of the text, and its id is made of its place.
            at_call = Hole(("action",), "argument", "command", len(pieces.blocks))
            pieces.holes.append(at_call)
            arguments = self.line.json({"command": action})
            pieces.add(_call(f"call-{whence.number}", SHELL, arguments))
        self.open = [block.tool_call_id for block in pieces.blocks if isinstance(block, ToolCall)]
        self.spoke = whence.number
        yield from self._blocks(pieces, message, whence, raw, f"message-{whence.number}")

    def _user(self, message: dict[str, Any], whence: Whence, raw: str) -> Iterator[Step]:
        tags = take_optional(message, "tags", list) or []
        found = _summary(message)
        if found and self.said:
            yield Compacted(
                key=f"{whence.key}:compacted",
                trigger=Trigger.THRESHOLD,
                summary=found,
                partial="which blocks stayed is not said",
            )
            yield Aside(whence.key, "history/user", raw, line=whence.number)
            return
        if self.open and PERSON not in tags and DEVELOPER not in tags and not found:
            yield from self._answer(message, self.open[0], whence)
            return
        pieces = Pieces()
        if found:
            say(pieces, Kind.DEVELOPER, message)
            pieces.call_summary(found)
        elif message.get("is_demo") is True:
            say(pieces, Kind.DEVELOPER, message)
            pieces.name(DEMONSTRATION)
        else:
            # After its first words the model hears from the program, unless it is said who speaks.
            by_person = PERSON in tags or not (self.spoke or DEVELOPER in tags)
            say(pieces, Kind.USER if by_person else Kind.DEVELOPER, message)
        yield from self._blocks(pieces, message, whence, raw)

    def _answer(self, message: dict[str, Any], call: str, whence: Whence) -> Iterator[Step]:
        pieces = Pieces()
        parts = contents(message)
        pieces.result(call, parts)
        if call in self.open:
            self.open.remove(call)
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
            yield Aside(whence.key, f"history/{message['role']}", raw, line=whence.number)


def _call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=id, name=name, arguments=arguments)


def _summary(message: dict[str, Any]) -> str | None:
    match contents(message):
        case [(str(text), _)]:
            found = summary_of(message, text)
            return found.text if found else None
        case _:
            return None
