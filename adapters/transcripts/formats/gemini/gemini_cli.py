"""Reads Gemini CLI sessions: one JSON document of messages, each with its tool calls."""

from collections.abc import Iterator
from typing import Any

from ..format import Format
from ..json_lines import SourceLine
from ..reading.entry_steps import EntrySteps, digest_text, read_entry_steps
from ..reading.fields import JsonDict, MalformedError, get_field, require_field
from ..source import TranscriptSource
from ..steps import Append, EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem
from .gemini_cli_message import GeminiMessageReader, SessionProgress
from .gemini_cli_writer import FORMAT_NAME, GEMINI_MESSAGE_PREFIX, GEMINI_SESSION_ENTRY, write

_DISPLAY_TYPES = ("info", "warning", "error")


def recognizes(source: TranscriptSource) -> bool:
    document = source.document
    match document.value if document else None:
        case {"sessionId": str(), "projectHash": _, "startTime": _, "messages": list()}:
            return True
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    line = source.document
    if line is None or line.problem or not isinstance(line.value, dict):
        yield SourceProblem(1, (line and line.problem) or "not one JSON object")
        yield EntryEnd("error", line.end if line else source.size)
        return
    yield from GeminiSessionReader(line, source.stem).read_steps()


class GeminiSessionReader:
    def __init__(self, line: SourceLine, stem: str) -> None:
        self.line = line
        self.document: JsonDict = line.value
        key = self.document.get("sessionId")
        self.key = key if isinstance(key, str) and key else stem
        self.known = SessionProgress(line)

    def read_steps(self) -> Iterator[ImportStep]:
        yield from read_entry_steps(self.line, 0, self._read_header, self.document)
        messages = self.document.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
            yield from read_entry_steps(self.line, number, self._read_message, message)

    def _read_header(self, entry: EntrySteps, document: JsonDict) -> None:
        title = document.get("summary")
        entry.add(SessionStart(self.key, title=title if isinstance(title, str) and title else None))
        raw = self.line.to_json({name: one for name, one in document.items() if name != "messages"})
        entry.add(
            RawEntry(
                f"{GEMINI_SESSION_ENTRY}:{digest_text(raw)}",
                GEMINI_SESSION_ENTRY,
                raw,
                self.key,
                entry.number,
            )
        )

    def _read_message(self, entry: EntrySteps, item: Any) -> None:
        if not isinstance(item, dict):
            raise MalformedError("messages: expected an object")
        kind = require_field(item, "type", str)
        id = get_field(item, "id", str) or f"message-{entry.number}"
        message = GeminiMessageReader(self.known, entry, item, id)
        if kind == "user":
            message.read_user()
        elif kind == "gemini":
            message.read_gemini()
        elif kind not in _DISPLAY_TYPES:
            entry.add_unknown(f"{GEMINI_MESSAGE_PREFIX}{kind}", self.line.to_json(item), id)
            return
        raw = self.line.to_json(message.envelope)
        key = f"{id}:{digest_text(raw)}"
        # A new version, not a piece of another entry.
        entry.add(RawEntry(key, f"{GEMINI_MESSAGE_PREFIX}{kind}", raw, id))
        entry.add(*message.said)
        self.known.has_content |= any(isinstance(one, Append) for one in message.said)


FORMAT = Format(
    name=FORMAT_NAME,
    description="sessions of Gemini CLI",
    recognizes=recognizes,
    read=read,
    write=write,
    suffix=".json",
    home_patterns=("~/.gemini/tmp",),
)
