"""The sections of a summary: what a line of one is, how they are laid out and read back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache

from ...ranges import Ranges
from ..quotes import quote_in, quoted
from ..tool_markup import harmless
from .facts import Sort, sort_of
from .wording import (
    REMEMBERED,
    shortened,
    shortened_inside,
    tidied,
    with_handles,
    without_handles,
)


class Section(StrEnum):
    """What a line of a summary is about."""

    GOAL = "Goal"
    CONSTRAINTS = "Constraints & Preferences"
    DONE = "Done"
    IN_PROGRESS = "In Progress"
    BLOCKED = "Blocked"
    DECISIONS = "Key Decisions"
    NEXT = "Next Steps"
    CONTEXT = "Critical Context"
    TURN = "Current turn so far"


PROGRESS = "Progress"
LAYOUT: Mapping[str, tuple[Section, ...]] = {
    Section.GOAL: (Section.GOAL,),
    Section.CONSTRAINTS: (Section.CONSTRAINTS,),
    PROGRESS: (Section.DONE, Section.IN_PROGRESS, Section.BLOCKED),
    Section.DECISIONS: (Section.DECISIONS,),
    Section.NEXT: (Section.NEXT,),
    Section.CONTEXT: (Section.CONTEXT,),
    Section.TURN: (Section.TURN,),
}
FAILED = " failed: "
"""What tells a line of trouble from one of progress."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a summary says, and where it was taken from."""

    section: Section
    text: str
    """Without its handles; of a quote the words alone."""
    handles: Ranges = Ranges()
    weight: float = 0.5
    is_quote: bool = False

    def within(self, room: int) -> str:
        """The line as it is written, in at most so many characters."""
        tail = with_handles("", self.handles)
        return _within(self.text, room - len(tail), is_quote=self.is_quote) + tail

    @property
    def newest(self) -> int:
        """The newest position it was taken from; 0 for one that says no source."""
        return self.handles.runs[-1][1] if self.handles else 0

    @property
    def is_list(self) -> bool:
        """Whether it is a row of the ledger of facts."""
        return _is_list(self.text)

    @property
    def subject(self) -> str:
        """Lines of one subject say the same, or the newer of them says it better."""
        if self.is_quote:
            return self.text
        if deed := _DEED.match(self.text):
            return deed[1]
        if self.section is Section.BLOCKED:
            return self.text.partition(FAILED)[0]
        return self.text.rstrip(" .,;:!…").casefold()


@lru_cache(maxsize=REMEMBERED)
def _within(text: str, room: int, *, is_quote: bool) -> str:
    """The words of a line as they are written, without its handles."""
    if is_quote:
        return quoted(shortened_inside(text, room - len(quoted(""))))
    told = _as_told(text)
    said = shortened(told, room)
    return shortened(told, room - 1) + "`" if said.count("`") % 2 else said


@lru_cache(maxsize=REMEMBERED)
def _is_list(text: str) -> bool:
    sort, listed, facts = text.partition(": ")
    return bool(listed) and sort in _SORTS and all(map(sort_of, facts.split(", ")))


@lru_cache(maxsize=REMEMBERED)
def _as_told(text: str) -> str:
    """Words of the log that can be taken neither for the user's nor for a tool call."""
    text = harmless(text)
    return text if quote_in(text) is None else f"Log: {text}"


_SORTS = frozenset(Sort)
# What was done is followed by how often, or by what came of it.
_DEED = re.compile(r"((?:ran|called|edited|wrote) `[^`]*`)(?: x\d+)?(?:: .*)?$", re.DOTALL)


@cache
def overhead(section: Section) -> int:
    """Characters that a section takes besides its lines."""
    heading = len(f"\n\n## {section}\n")
    return heading + len(f"\n## {PROGRESS}\n#") if section in LAYOUT[PROGRESS] else heading


def laid_out(written: Iterable[tuple[Section, str]]) -> dict[str, str]:
    """Written lines under their headings, empty ones left out."""
    under: dict[Section, list[str]] = {}
    for section, line in written:
        under.setdefault(section, []).append(f"- {line}")
    bodies: dict[str, str] = {}
    for heading, sections in LAYOUT.items():
        parts = [(s, "\n".join(under[s])) for s in sections if s in under]
        if heading == PROGRESS:
            parts = [(s, f"### {s}\n{lines}") for s, lines in parts]
        if parts:
            bodies[heading] = "\n".join(lines for _, lines in parts)
    return bodies


def carried(sections: Mapping[str, str], text: str | None, covers: Ranges) -> Iterator[Line]:
    """The lines of an earlier summary, whoever wrote it, with the handles that still hold.

    Words are the user's only where the earlier summary says of which block.
    """
    if sections:
        text = "\n".join(f"## {heading}\n{body}" for heading, body in sections.items())
    section = Section.CONTEXT
    for raw in _UNSAID.sub("", text or "").split("\n")[:_MOST_CARRIED]:
        read = _read(raw)
        if read is None:
            continue
        if isinstance(read, Section):
            section = read
            continue
        line, said, handles = read
        if not handles or handles - covers:
            said, handles = line, _NO_HANDLES
        yield _carried_line(section, said, handles)


@lru_cache(maxsize=REMEMBERED)
def _read(raw: str) -> Section | tuple[str, str, Ranges] | None:
    """A line of a summary: a heading as the section that it begins; else the line, and what it
    says without its handles; None for one that says nothing."""
    line = raw.strip()
    if not line or _RULE.fullmatch(line):
        return None
    if heading := _HEADING.fullmatch(line):
        return _section_named(next(filter(None, heading.groups())))
    bullet = _BULLET.match(line)
    line = line[bullet.end() :] if bullet else line
    return line, *without_handles(line)


@lru_cache(maxsize=REMEMBERED)
def _carried_line(section: Section, said: str, handles: Ranges) -> Line:
    words = quote_in(said)
    is_quote = words is not None and bool(handles)
    if section is Section.TURN:
        # The turn goes on or is over; either way this is how far it had come.
        trouble = Section.BLOCKED if FAILED in said else Section.DONE
        section = Section.GOAL if is_quote else trouble
    text = tidied(words if words is not None and is_quote else said)
    return Line(section, text, handles, weight=0.4, is_quote=is_quote)


def _section_named(heading: str) -> Section:
    return next((s for s, words in _NAMES.items() if words.search(heading)), Section.CONTEXT)


def merged(lines: Iterable[Line]) -> list[Line]:
    """One line for each subject of a section: the newest words, the handles and weight of all."""
    by_subject: dict[tuple[Section, str, bool], Line] = {}
    for line in sorted(lines, key=lambda line: line.newest):
        key = (line.section, line.subject, line.is_quote)
        older = by_subject.get(key)
        by_subject[key] = _joined(older, line) if older else line
    return list(by_subject.values())


def _joined(older: Line, newer: Line) -> Line:
    text = newer.text
    if not newer.is_quote and (edit := _EDIT.fullmatch(text)):
        before = _EDIT.fullmatch(older.text)
        text = f"{edit[1]} x{int(edit[2] or 1) + (int(before[2] or 1) if before else 0)}"
    return replace(
        newer,
        text=text,
        handles=older.handles | newer.handles,
        weight=max(older.weight, newer.weight),
    )


_EDIT = re.compile(r"((?:edited|wrote) `[^`]*`)(?: x(\d{1,6}))?")
_MOST_CARRIED = 400
_NO_HANDLES = Ranges()
_UNSAID = re.compile(
    r"<(read-files|modified-files)>.*?</\1>|^```.*?^```|</?summary>|</?analysis>",
    re.DOTALL | re.MULTILINE,
)
_RULE = re.compile(r"[-*_=\s]{3,}")
_BULLET = re.compile(r"(?:(?:[-*+•>]|\d{1,3}[.)])\s+)+")
_HEADING = re.compile(
    r"#{1,6}\s+(.+)|\*\*([^*]{3,60})\*\*:?|\d{1,2}\.\s+(?:\*\*)?([^:*]{3,60}):(?:\*\*)?"
)
_NAMES = {
    section: re.compile(rf"\b(?:{words})", re.IGNORECASE)
    for section, words in {
        Section.TURN: "current turn|turn context|task context|split turn",
        Section.GOAL: "goal|objective|primary request|original request|intent",
        Section.CONSTRAINTS: "constraint|preference|requirement|user message|rule",
        Section.IN_PROGRESS: "in progress|current work|current state|ongoing",
        Section.NEXT: "next|pending|to-?do|remaining|not started|plan",
        Section.BLOCKED: "block|error|problem|issue|failure",
        Section.DECISIONS: "decision|rationale",
        Section.DONE: "done|progress|completed|accomplish|changes",
    }.items()
}
