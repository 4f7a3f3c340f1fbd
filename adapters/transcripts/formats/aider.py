"""Reads aider's chat history: Markdown, many sessions a file, without ids and tool calls.

A heading of the first level begins a session, one of the fourth is what a person said, a quote is
what aider printed, and all else is the model's answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....domain.blocks import Block, Origin
from ....domain.session_events import Usage
from .format import Format
from .reading.entry_steps import EntrySteps, digest_of
from .source import Source
from .steps import Append, Aside, Begin, Call, EntryRead, Problem, Step

NAME = "aider-history"

_BEGINS = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_PERSON = "####"
_PRINTED = ">"
_TOKENS = re.compile(
    r"Tokens: (?P<sent>[\d.,]+[kM]?) sent"
    r"(?:, (?P<write>[\d.,]+[kM]?) cache write)?"
    r"(?:, (?P<read>[\d.,]+[kM]?) cache hit)?"
    r", (?P<received>[\d.,]+[kM]?) received"
    r"(?:\. Cost: \$(?P<cost>\d+\.\d+))?"
)
_TIMES = {"k": 1_000, "M": 1_000_000}


def recognises(source: Source) -> bool:
    """Whether a session of aider begins anywhere in the file."""
    if source.is_folder or any(isinstance(value, dict | list) for value in source.first):
        return False
    text = source.text
    return text is not None and _BEGINS.search(text) is not None


def read(source: Source) -> Iterator[Step]:
    """The steps of all sessions of the file, each under its own key."""
    if source.text is None:
        yield Problem(1, "not UTF-8 text, or too large")
        yield EntryRead("error", source.size)
        return
    history = History(source.stem)
    size = source.size
    for piece in _pieces(source.text):
        yield from history.read(replace(piece, end=min(piece.end, size)))


@dataclass(slots=True)
class Piece:
    """Lines that were said at once; `end` is where they end, in bytes."""

    kind: str
    text: str
    line: int
    end: int


class History:
    """A chat history while it is read."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.key: str | None = None
        self.started: dict[str, int] = {}
        """How many sessions were started in each second."""
        self.time: str | None = None
        self.number = 0
        """Pieces of the session so far."""
        self.answer: str | None = None
        """The last answer of the model, until its cost was told."""

    def read(self, piece: Piece) -> Iterator[Step]:
        """The steps of one piece."""
        entry = EntrySteps(piece.line, piece.end)
        if piece.kind == "begins":
            self._begin(entry, piece)
        else:
            if self.key is None:
                # A part of a file may begin inside a session.
                self.key = f"aider-{self.stem}-{digest_of(piece.text)}"
                entry.say(Begin(self.key))
            self._say(entry, piece)
        yield from entry.ended()

    def _begin(self, entry: EntrySteps, piece: Piece) -> None:
        time = piece.text
        count = self.started[time] = self.started.get(time, 0) + 1
        started = time.replace(" ", "T")
        self.key = f"aider-{started}" + (f"-{count}" if count > 1 else "")
        self.time, self.number, self.answer = started, 0, None
        entry.say(Begin(self.key), Aside("begins", "session", f"# {time}", line=piece.line))

    def _say(self, entry: EntrySteps, piece: Piece) -> None:
        self.number += 1
        id = f"{self.number}:{digest_of(piece.text)}"
        origin = Origin(format=NAME, id=id, time=self.time, line=piece.line)
        match piece.kind:
            case "person":
                block = Block.user(piece.text, origin=origin)
            case "printed":
                block = Block.note(piece.text, name="printed", origin=origin)
            case _:
                block = Block.assistant(piece.text, origin=origin)
                self.answer = id
        entry.say(Append(id, block, id))
        if piece.kind == "printed" and (call := self._call(piece.text, id)):
            entry.say(call)

    def _call(self, text: str, id: str) -> Call | None:
        """The call of the model whose cost aider printed."""
        told = _TOKENS.search(text)
        if told is None:
            return None
        usage = Usage(
            input=_count(told["sent"]),
            cache_read=_count(told["read"]),
            cache_write=_count(told["write"]),
            output=_count(told["received"]),
        )
        cost = float(told["cost"]) if told["cost"] else None
        before, self.answer = self.answer, None
        fields = {"call_id": id, "usage": usage, "cost_usd": cost}
        return Call(f"{id}:call", fields, before=before)


def _pieces(text: str) -> Iterator[Piece]:
    """The file in pieces. What aider prints is one piece a line: it prints line by line."""
    held: list[str] = []
    kind, first, end, held_end = "", 0, 0, 0

    def let_go() -> Iterator[Piece]:
        whole = "\n".join(held).strip("\n")
        held.clear()
        if whole.strip():
            yield Piece(kind, whole, first, held_end)

    for number, line in enumerate(text.split("\n"), 1):
        end += len(line.encode()) + 1
        now, said = _line(line.removesuffix("\r"))
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


def _line(line: str) -> tuple[str, str]:
    """What kind of line it is, and what it says."""
    if begins := _BEGINS.match(line):
        return "begins", begins[1]
    if not line.strip():
        return "blank", ""
    if line == _PERSON or line.startswith(f"{_PERSON} "):
        return "person", line[len(_PERSON) + 1 :].removesuffix("  ")
    if line == _PRINTED or line.startswith(f"{_PRINTED} "):
        return "printed", line[len(_PRINTED) + 1 :].removesuffix("  ")
    return "model", line


def _count(told: str | None) -> int | None:
    if not told:
        return None
    try:
        number = float(told.rstrip("kM").replace(",", ""))
    except ValueError:
        return None
    return round(number * _TIMES.get(told[-1], 1))


FORMAT = Format(
    name=NAME,
    what="chat histories of aider",
    recognises=recognises,
    read=read,
    suffix=".md",
)
