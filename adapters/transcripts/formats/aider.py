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
from .steps import Append, EntryEnd, ImportStep, ReportedCall, SessionStart, SourceProblem

FORMAT_NAME = "aider-history"

_SESSION_START = re.compile(
    r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE
)
_USER_PREFIX = "####"
_OUTPUT_PREFIX = ">"
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

    def read(self, piece: AiderPiece) -> Iterator[ImportStep]:
        entry = EntrySteps(FORMAT_NAME, SourceLine(piece.line, piece.end), piece.line, None)
        if piece.kind == "begins":
            self._begin_session(entry, piece)
        else:
            if self.key is None:
                # A part of a file may begin inside a session.
                self.key = f"aider-{self.stem}-{digest_text(piece.text)}"
                entry.add(SessionStart(self.key))
            self._append_block(entry, piece)
        yield from entry.finish()

    def _begin_session(self, entry: EntrySteps, piece: AiderPiece) -> None:
        time = piece.text
        count = self.started[time] = self.started.get(time, 0) + 1
        started = time.replace(" ", "T")
        self.key = f"aider-{started}" + (f"-{count}" if count > 1 else "")
        self.time, self.number, self.answer = started, 0, None
        entry.add(SessionStart(self.key))
        entry.skip()

    def _append_block(self, entry: EntrySteps, piece: AiderPiece) -> None:
        self.number += 1
        id = f"{self.number}:{digest_text(piece.text)}"
        origin = Origin(format=FORMAT_NAME, id=id, time=self.time, line=piece.line)
        if piece.kind == "printed":
            entry.add(Append(id, Block.note(piece.text, name="printed", origin=origin), id))
            entry.add(*self._read_call(piece.text, id))
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
            fields = {"call_id": id, "usage": Usage(**counts), "cost_usd": cost}
            yield ReportedCall(f"{id}:call", fields, first_answer_id=self.answer)
            self.answer = None


def _split_pieces(text: str) -> Iterator[AiderPiece]:
    """Split the file. Each line of aider's output is a piece, since aider prints line by line."""
    held: list[str] = []
    kind, first, end, held_end = "", 0, 0, 0

    def let_go() -> Iterator[AiderPiece]:
        whole = "\n".join(held).strip("\n")
        held.clear()
        if whole.strip():
            yield AiderPiece(kind, whole, first, held_end)

    for number, line in enumerate(text.split("\n"), 1):
        end += len(line.encode()) + 1
        now, said = _classify_line(line.removesuffix("\r"))
        if now == "blank" and kind == "model":
            held.append("")
            continue
        if now != kind or now == "printed":
            yield from let_go()
            kind, first = now, number
        if now != "blank":
            held.append(said)
            held_end = end
    yield from let_go()


def _classify_line(line: str) -> tuple[str, str]:
    if begins := _SESSION_START.match(line):
        return "begins", begins[1]
    if not line.strip():
        return "blank", ""
    if line == _USER_PREFIX or line.startswith(f"{_USER_PREFIX} "):
        return "person", line[len(_USER_PREFIX) + 1 :].removesuffix("  ")
    if line == _OUTPUT_PREFIX or line.startswith(f"{_OUTPUT_PREFIX} "):
        return "printed", line[len(_OUTPUT_PREFIX) + 1 :].removesuffix("  ")
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
