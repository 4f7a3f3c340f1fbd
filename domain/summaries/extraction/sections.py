"""The sections of a summary: what a line of one is, how they are laid out and read back."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from operator import attrgetter

from ...ranges import Ranges
from ..quotes import quote_in
from ..tool_markup import harmless
from .line_wording import Wording, wording_of
from .wording import REMEMBERED, printable, shortened, tidied, with_handles, without_handles


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
EARLIER = "Earlier summary"
"""Heads what another writer said; it stays as it was written."""
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


@dataclass(frozen=True)
class Line:
    """One thing that a summary says, and where it was taken from."""

    section: Section
    text: str
    """Without its handles; of a quote the words alone."""
    handles: Ranges = Ranges()
    weight: float = 0.5
    is_quote: bool = False

    def weighing(self, weight: float) -> "Line":
        """The same line with another weight; what is known of it stays known."""
        line = object.__new__(Line)
        line.__dict__.update(self.__dict__, weight=weight, whole=self.whole)
        return line

    def within(self, room: int) -> str:
        """The line as it is written, in at most so many characters."""
        if len(self.whole) <= room:
            return self.whole
        tail = with_handles("", self.handles)
        return self.wording.within(room - len(tail)) + tail

    @cached_property
    def whole(self) -> str:
        """The line as it is written where there is room for all of it."""
        return with_handles(self.wording.whole, self.handles)

    @cached_property
    def wording(self) -> Wording:
        """What its words alone tell."""
        return wording_of(self.text, is_quote=self.is_quote)

    @cached_property
    def newest(self) -> int:
        """The newest position it was taken from; 0 for one that says no source."""
        return self.handles.runs[-1][1] if self.handles else 0

    @cached_property
    def is_list(self) -> bool:
        """Whether it is a row of the ledger of facts."""
        return bool(self.wording.facts)

    @cached_property
    def subject(self) -> tuple[Section, str, bool]:
        """Lines of one subject say the same, or the newer of them says it better."""
        return self.section, self._about, self.is_quote

    @property
    def _about(self) -> str:
        if self.is_quote:
            return self.text
        if deed := _DEED.match(self.text):
            return deed[1]
        if self.section is Section.BLOCKED:
            return self.text.partition(FAILED)[0]
        return self.text.rstrip(" .,;:!…").casefold()


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
    firsts = [first for first, _ in covers.runs]
    section = Section.CONTEXT
    for raw in _said(text or "").split("\n")[:_MOST_CARRIED]:
        read = _read(raw, section)
        if isinstance(read, Section):
            section = read
        elif read is not None:
            holds = _is_within(read.handles, covers, firsts)
            yield read if holds else _read_without_handles(raw, section)


def inherited(sections: Mapping[str, str], text: str | None) -> list[str]:
    """The parts of an earlier summary in another writer's layout, each with its heading.

    Lines are as they were written, except that no line can pass for a user's words or a call.
    """
    if EARLIER in sections or not LAYOUT.keys().isdisjoint(sections):
        text = "\n\n".join(
            body if heading == EARLIER else f"### {heading}\n{body}"
            for heading, body in sections.items()
            if heading not in LAYOUT
        )
    lines = [_attributed(line.rstrip()) for line in _UNFRAMED.sub("", text or "").split("\n")]
    levels = _heading_levels(lines)
    if not any(lines):
        return []
    deeper = "#" * max(0, 3 - min((level for level in levels if level), default=3))
    # A title above all headings heads no part of its own.
    heads = sorted({level for level in levels if level}, key=lambda n: (levels.count(n) < 2, n))
    parts: list[list[str]] = [[]]
    for line, level in zip(lines, levels, strict=True):
        if heads and level == heads[0] and any(parts[-1]):
            parts.append([])
        parts[-1].append(deeper + line if 0 < level < _NOT_MARKDOWN else line)
    return ["\n".join(part).strip("\n") for part in parts]


def newest_parts(parts: Sequence[str], room: int) -> str:
    """The parts that fit in the room, in order: the oldest are left out first, then lines of the
    newest part."""
    kept = list(parts)
    while len(kept) > 1 and len("\n\n".join(kept)) > room:
        del kept[0]
    text = "\n\n".join(kept)
    if len(text) <= room:
        return text
    heading, *lines = text.split("\n")
    while lines and len("\n".join([heading, *lines])) > room:
        del lines[0]
    return "\n".join([heading, *lines]) if lines else shortened(heading, room)


def _heading_levels(lines: Iterable[str]) -> list[int]:
    """For each line the level of the heading that it is; 0 where it is none."""
    levels: list[int] = []
    is_code = False
    for line in lines:
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code or line[:1].isspace() or not (_HEADING.fullmatch(line) or _LABEL.match(line)):
            levels.append(0)
        else:
            levels.append(len(line) - len(line.lstrip("#")) or _NOT_MARKDOWN)
    return levels


def _attributed(line: str) -> str:
    """A line that nobody can take for the user's words, nor for a tool call."""
    text = _QUOTE_MARK.sub(r"\1", harmless(printable(line)))
    if quote_in(text) is None:
        return text
    mark = _BULLET.match(text.lstrip())
    begins = len(text) - len(text.lstrip()) + (mark.end() if mark else 0)
    return f"{text[:begins]}Log: {text[begins:]}"


def _said(text: str) -> str:
    """A summary without what is only wrapped around it, or listed again by the next one."""
    # Most have none of it, which takes no pattern to see.
    return _UNSAID.sub("", text) if any(mark in text for mark in _UNSAID_MARKS) else text


@lru_cache(maxsize=REMEMBERED)
def _read(raw: str, section: Section) -> Section | Line | None:
    """A line of a summary: a heading as the section that it begins; None where it says nothing."""
    line = raw.strip()
    if not line or _RULE.fullmatch(line):
        return None
    if heading := _HEADING.fullmatch(line):
        return _section_named(next(filter(None, heading.groups())))
    return _carried_line(section, *without_handles(_without_bullet(line)))


def _read_without_handles(raw: str, section: Section) -> Line:
    """The same of a line whose handles no longer hold: they are words like any other."""
    return _carried_line(section, _without_bullet(raw.strip()), _NO_HANDLES)


def _without_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line[bullet.end() :] if bullet else line


def _carried_line(section: Section, said: str, handles: Ranges) -> Line:
    words = quote_in(said)
    is_quote = words is not None and bool(handles)
    if section is Section.TURN:
        # The turn goes on or is over; either way this is how far it had come.
        trouble = Section.BLOCKED if FAILED in said else Section.DONE
        section = Section.GOAL if is_quote else trouble
    text = tidied(words if words is not None and is_quote else said)
    return Line(section, text, handles, weight=0.4, is_quote=is_quote)


def _is_within(handles: Ranges, covers: Ranges, firsts: Sequence[int]) -> bool:
    """Whether all of a line's few handles are among the many of a summary, whose runs begin so."""
    for first, last in handles.runs:
        begun = bisect_right(firsts, first)
        if not begun or covers.runs[begun - 1][1] < last:
            return False
    return True


def _section_named(heading: str) -> Section:
    return next((s for s, words in _NAMES.items() if words.search(heading)), Section.CONTEXT)


def merged(lines: Iterable[Line]) -> list[Line]:
    """One line for each subject of a section: the newest words, the handles and weight of all."""
    by_subject: dict[tuple[Section, str, bool], Line] = {}
    for line in sorted(lines, key=attrgetter("newest")):
        older = by_subject.get(line.subject)
        by_subject[line.subject] = _joined(older, line) if older else line
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
_UNFRAMED = re.compile(
    r"<(read-files|modified-files)>.*?</\1>\n?|</?(?:summary|analysis)>\n?", re.DOTALL
)
_LABEL = re.compile(r"[A-Z][A-Z0-9_]{3,30}:(?=\s|$)")
_NOT_MARKDOWN = 7
_QUOTE_MARK = re.compile(r"^(\s*)>[>\s]*")
_NO_HANDLES = Ranges()
_UNSAID = re.compile(
    r"<(read-files|modified-files)>.*?</\1>|^```.*?^```|</?summary>|</?analysis>",
    re.DOTALL | re.MULTILINE,
)
_UNSAID_MARKS = ("<read-files>", "<modified-files>", "```", "summary>", "analysis>")
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
