"""Reads aider's chat history: Markdown with many sessions per file, without ids or tool calls.

A level-1 heading begins a session, a level-4 heading is a user message, a quote is aider's output,
and all else is the model's answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....domain.blocks import Block, Origin
from ....domain.session_events import Usage
from .entry_steps import EntrySteps, digest_text
from .format import Format
from .json_lines import SourceLine
from .source import TranscriptSource
from .steps import (
    Append,
    EntryEnd,
    ImportStep,
    ReportedCall,
    Rewind,
    SessionStart,
    SourceProblem,
)

FORMAT_NAME = "aider-history"

_SESSION_START = re.compile(
    r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE
)
_USER_PREFIX = "####"
_OUTPUT_PREFIX = ">"
_BREAK = "  "
"""Ends each message of the user's and of aider's, unless an editor stripped the file's lines."""
_BROKEN_PROMPT = re.compile(rf"^{_USER_PREFIX} .*{_BREAK}\r?$", re.MULTILINE)
_COMMAND_MARKS = ("/", "!")
_CLEARING_COMMANDS = ("/clear", "/reset")
_MODEL = re.compile(r"(?:Main model|Models?): (\S+)")
_TOKENS = re.compile(
    r"Tokens: (?P<input>[\d.,]+[kM]?) sent"
    r"(?:, (?P<cache_write>[\d.,]+[kM]?) cache write)?"
    r"(?:, (?P<cache_read>[\d.,]+[kM]?) cache hit)?"
    r", (?P<output>[\d.,]+[kM]?) received"
    r"(?:\. Cost: \$(?P<cost>\d+\.\d+))?"
)
_COUNTS = ("input", "cache_read", "cache_write", "output")
_UNIT_FACTORS = {"k": 1_000, "M": 1_000_000}


def recognizes(source: TranscriptSource) -> bool:
    """Return whether a session of aider begins anywhere in the file."""
    if source.is_folder or any(isinstance(value, dict | list) for value in source.first_values):
        return False
    text = source.text
    return text is not None and _SESSION_START.search(text) is not None


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the steps of all sessions of the file, each under its own key."""
    if source.text is None:
        yield SourceProblem(1, "not UTF-8 text, or too large")
        yield EntryEnd(source.size)
        return
    history = AiderHistory(source.stem)
    size = source.size
    for piece in _split_pieces(source.text):
        yield from history.read(replace(piece, end=min(piece.end, size)))


@dataclass(frozen=True, slots=True)
class AiderPiece:
    """Lines of one message; `end` is their end, in bytes."""

    kind: str
    text: str
    id: str
    """The text without the prefixes of its lines, which identifies the piece."""
    line: int
    end: int


class AiderHistory:
    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.key: str | None = None
        self.started: dict[str, int] = {}
        self.time: str | None = None
        self.number = 0
        """The number of pieces of the session so far."""
        self.answer: str | None = None
        """The last answer of the model, until its cost is read."""
        self.model: str | None = None

    def read(self, piece: AiderPiece) -> Iterator[ImportStep]:
        entry = EntrySteps(FORMAT_NAME, SourceLine(piece.line, piece.end), piece.line, None)
        if piece.kind == "begins":
            self._begin_session(entry, piece)
        else:
            if self.key is None:
                # A part of a file may begin inside a session.
                self.key = f"aider-{self.stem}-{digest_text(piece.id)}"
                entry.add(SessionStart(self.key))
            self._append_block(entry, piece)
        yield from entry.finish()

    def _begin_session(self, entry: EntrySteps, piece: AiderPiece) -> None:
        time = piece.text
        count = self.started[time] = self.started.get(time, 0) + 1
        started = time.replace(" ", "T")
        self.key = f"aider-{started}" + (f"-{count}" if count > 1 else "")
        self.time, self.number, self.answer, self.model = started, 0, None, None
        entry.add(SessionStart(self.key))
        entry.skip()

    def _append_block(self, entry: EntrySteps, piece: AiderPiece) -> None:
        self.number += 1
        id = f"{self.number}:{digest_text(piece.id)}"
        origin = Origin(format=FORMAT_NAME, id=id, time=self.time, line=piece.line)
        if piece.kind == "printed":
            entry.add(Append(id, Block.note(piece.text, name="printed", origin=origin), id))
            if named := _MODEL.match(piece.text):
                self.model = named[1]
            entry.add(*self._read_call(piece.text, id))
        elif piece.kind == "person" and piece.text.startswith(_COMMAND_MARKS):
            # What a command asks of the model follows as a message of its own.
            if piece.text.split()[0] in _CLEARING_COMMANDS:
                entry.add(Rewind(f"{id}:cleared", None))
            entry.add(Append(id, Block.note(piece.text, name="command", origin=origin), id))
        elif piece.kind == "person":
            entry.add(Append(id, Block.user(piece.text, origin=origin), id))
        else:
            entry.add(Append(id, Block.assistant(piece.text, origin=origin), id))
            self.answer = id

    def _read_call(self, text: str, id: str) -> Iterator[ReportedCall]:
        """Yield the model call whose cost aider printed."""
        if told := _TOKENS.search(text):
            counts = {name: _parse_count(told[name]) for name in _COUNTS}
            cost = float(told["cost"]) if told["cost"] else None
            fields = {
                "call_id": id,
                "model": self.model,
                "usage": Usage(**counts),
                "cost_usd": cost,
            }
            yield ReportedCall(f"{id}:call", fields, first_answer_id=self.answer)
            self.answer = None


@dataclass(frozen=True, slots=True)
class _Line:
    shape: str
    """What it looks like: `begins`, `person`, `printed`, `blank` or else `model`."""
    kind: str
    """What it is: the model also writes headings and quotes, and aider prints several lines."""
    text: str
    said: str
    """The line without its prefix."""


def _split_pieces(text: str) -> Iterator[AiderPiece]:
    """Split the file. Each line of aider's output is a piece, since aider prints line by line."""
    held: list[_Line] = []
    shape, first, end, held_end = "", 0, 0, 0

    def let_go() -> Iterator[AiderPiece]:
        whole = "\n".join(line.text for line in held).strip("\n")
        said = "\n".join(line.said for line in held).strip("\n")
        if whole.strip():
            yield AiderPiece(held[0].kind, whole, said, first, held_end)
        held.clear()

    raw_lines = text.split("\n")
    for number, (raw, line) in enumerate(zip(raw_lines, _read_lines(text), strict=True), 1):
        end += len(raw.encode()) + 1
        if line.shape == "blank" and shape == "model":
            held.append(line)
            continue
        is_same = line.shape == shape and (not held or line.kind == held[0].kind)
        if not is_same or line.shape == "printed":
            yield from let_go()
            shape, first = line.shape, number
        if line.shape != "blank":
            held.append(line)
            held_end = end
    yield from let_go()


def _read_lines(text: str) -> Iterator[_Line]:
    raw_lines = [line.removesuffix("\r") for line in text.split("\n")]
    has_breaks = _BROKEN_PROMPT.search(text) is not None
    is_printing = False
    prints_on = _find_long_outputs(raw_lines)
    for number, line in enumerate(raw_lines, 1):
        shape, said = _classify_line(line)
        kind, shown = shape, said
        # The end of the file is stripped.
        is_end = line.endswith(_BREAK) or number == len(raw_lines)
        if not has_breaks or shape in {"begins", "blank"}:
            pass
        elif is_printing:
            kind, shown = "printed", line.removesuffix(_BREAK)
            is_printing = not is_end
        elif shape != "model" and not is_end:
            is_printing = shape == "printed" and prints_on[number - 1]
            kind, shown = ("printed", said) if is_printing else ("model", line)
        yield _Line(shape, kind, shown, said)


def _find_long_outputs(lines: list[str]) -> list[bool]:
    """Return, for each line, whether the next one that ends a message has no prefix itself."""
    found: list[bool] = []
    is_plain = False
    for line in reversed(lines):
        shape, _ = _classify_line(line)
        if shape == "begins" or (shape != "blank" and line.endswith(_BREAK)):
            is_plain = shape == "model"
        found.append(is_plain)
    return found[::-1]


def _classify_line(line: str) -> tuple[str, str]:
    if begins := _SESSION_START.match(line):
        return "begins", begins[1]
    if not line.strip():
        return "blank", ""
    if line == _USER_PREFIX or line.startswith(f"{_USER_PREFIX} "):
        return "person", line[len(_USER_PREFIX) + 1 :].removesuffix(_BREAK)
    if line == _OUTPUT_PREFIX or line.startswith(f"{_OUTPUT_PREFIX} "):
        return "printed", line[len(_OUTPUT_PREFIX) + 1 :].removesuffix(_BREAK)
    return "model", line


def _parse_count(text: str | None) -> int | None:
    if not text:
        return None
    try:
        number = float(text.rstrip("kM").replace(",", ""))
    except ValueError:
        return None
    return round(number * _UNIT_FACTORS.get(text[-1], 1))


FORMAT = Format(
    name=FORMAT_NAME,
    description="chat histories of aider",
    recognizes=recognizes,
    read=read,
    suffix=".md",
)
