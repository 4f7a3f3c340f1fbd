"""Sessions that Gemini CLI records: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from typing import Any

from ..format import Format
from ..json_lines import Line
from ..reading.entry_steps import EntrySteps, digest_of, entry_steps
from ..reading.fields import Item, MalformedError, take, take_optional
from ..source import Source
from ..steps import Append, Aside, Begin, EntryRead, Problem, Step
from .cli_message import Known, Message
from .cli_writer import MESSAGE, NAME, SESSION, write

_SHOWN = ("info", "warning", "error")


def recognises(source: Source) -> bool:
    """Whether this is a session that Gemini CLI recorded."""
    document = source.document
    match document.value if document else None:
        case {"sessionId": str(), "projectHash": _, "startTime": _, "messages": list()}:
            return True
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The steps of a recorded session."""
    line = source.document
    if line is None or line.problem or not isinstance(line.value, dict):
        yield Problem(1, (line and line.problem) or "not one JSON object")
        yield EntryRead("error", line.end if line else source.size)
        return
    yield from Recording(line, source.stem).steps()


class Recording:
    """A recorded session while it is read."""

    def __init__(self, line: Line, stem: str) -> None:
        self.line = line
        self.document: Item = line.value
        key = self.document.get("sessionId")
        self.key = key if isinstance(key, str) and key else stem
        self.known = Known(line)

    def steps(self) -> Iterator[Step]:
        yield from entry_steps(self.line, 0, self._header, self.document)
        messages = self.document.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
            yield from entry_steps(self.line, number, self._message, message)

    def _header(self, entry: EntrySteps, document: Item) -> None:
        title = document.get("summary")
        entry.say(Begin(self.key, title=title if isinstance(title, str) and title else None))
        raw = self.line.json({name: one for name, one in document.items() if name != "messages"})
        entry.say(Aside(f"{SESSION}:{digest_of(raw)}", SESSION, raw, self.key, entry.number))

    def _message(self, entry: EntrySteps, item: Any) -> None:
        if not isinstance(item, dict):
            raise MalformedError("messages: expected an object")
        kind = take(item, "type", str)
        id = take_optional(item, "id", str) or f"message-{entry.number}"
        message = Message(self.known, entry, item, id)
        if kind == "user":
            message.user()
        elif kind == "gemini":
            message.gemini()
        elif kind not in _SHOWN:
            entry.unknown(f"{MESSAGE}{kind}", self.line.json(item), id)
            return
        raw = self.line.json(message.envelope)
        key = f"{id}:{digest_of(raw)}"
        entry.say(Aside(key, f"{MESSAGE}{kind}", raw, id))  # told again, it is no piece of another
        entry.say(*message.said)
        self.known.has_said |= any(isinstance(one, Append) for one in message.said)


FORMAT = Format(
    name=NAME,
    what="sessions of Gemini CLI",
    recognises=recognises,
    read=read,
    write=write,
    suffix=".json",
    homes=("~/.gemini/tmp",),
)
