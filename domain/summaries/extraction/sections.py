"""Defines the sections and lines of a summary, lays them out and reads them back."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from operator import attrgetter

from ...ranges import Ranges
from ..quotes import find_quote
from ..tool_markup import defuse_tool_markup
from .clean_text import (
    LINE_CACHE_SIZE,
    add_handles,
    make_printable,
    shorten_line,
    split_handles,
    tidy_line,
)
from .line_wording import LineWording, get_wording


class SummarySection(StrEnum):
    """The subject of a summary line."""

    GOAL = "Goal"
    CONSTRAINTS = "Constraints & Preferences"
    DONE = "Done"
    IN_PROGRESS = "In Progress"
    BLOCKED = "Blocked"
    DECISIONS = "Key Decisions"
    NEXT = "Next Steps"
    CONTEXT = "Critical Context"
    TURN = "Current turn so far"


PROGRESS_HEADING = "Progress"
EARLIER_HEADING = "Earlier summary"
"""The heading of another writer's summary, which stays as written."""
SECTION_LAYOUT: Mapping[str, tuple[SummarySection, ...]] = {
    SummarySection.GOAL: (SummarySection.GOAL,),
    SummarySection.CONSTRAINTS: (SummarySection.CONSTRAINTS,),
    PROGRESS_HEADING: (SummarySection.DONE, SummarySection.IN_PROGRESS, SummarySection.BLOCKED),
    SummarySection.DECISIONS: (SummarySection.DECISIONS,),
    SummarySection.NEXT: (SummarySection.NEXT,),
    SummarySection.CONTEXT: (SummarySection.CONTEXT,),
    SummarySection.TURN: (SummarySection.TURN,),
}
FAILED_MARK = " failed: "
"""What marks a line as a failure."""


@dataclass(frozen=True)
class SummaryLine:
    """One statement of a summary, with its sources."""

    section: SummarySection
    text: str
    """The text without handles; for a quote, the words alone."""
    handles: Ranges = Ranges()
    weight: float = 0.5
    is_quote: bool = False

    def with_weight(self, weight: float) -> "SummaryLine":
        """Return the same line with another weight, keeping its cached values."""
        line = object.__new__(SummaryLine)
        line.__dict__.update(self.__dict__, weight=weight, full_text=self.full_text)
        return line

    def write_within(self, room: int) -> str:
        if len(self.full_text) <= room:
            return self.full_text
        tail = add_handles("", self.handles)
        return self.wording.write_within(room - len(tail)) + tail

    @cached_property
    def full_text(self) -> str:
        return add_handles(self.wording.full_text, self.handles)

    @cached_property
    def wording(self) -> LineWording:
        return get_wording(self.text, is_quote=self.is_quote)

    @cached_property
    def newest(self) -> int:
        """The newest position among its sources; 0 if it names none."""
        return self.handles.runs[-1][1] if self.handles else 0

    @cached_property
    def is_list(self) -> bool:
        return bool(self.wording.facts)

    @cached_property
    def subject(self) -> tuple[SummarySection, str, bool]:
        """A key: of two lines with the same subject, the newer one replaces the older."""
        return self.section, self._subject_text, self.is_quote

    @property
    def _subject_text(self) -> str:
        if self.is_quote:
            return self.text
        if deed := _DEED.match(self.text):
            return deed[1]
        if self.section is SummarySection.BLOCKED:
            return self.text.partition(FAILED_MARK)[0]
        return self.text.rstrip(" .,;:!…").casefold()


# An action, followed by its count or its outcome.
_DEED = re.compile(r"((?:ran|called|edited|wrote) `[^`]*`)(?: x\d+)?(?:: .*)?$", re.DOTALL)


@cache
def count_heading_chars(section: SummarySection) -> int:
    """Return the characters that a section takes in addition to its lines."""
    heading = len(f"\n\n## {section}\n")
    return (
        heading + len(f"\n## {PROGRESS_HEADING}\n#")
        if section in SECTION_LAYOUT[PROGRESS_HEADING]
        else heading
    )


def lay_out_sections(written: Iterable[tuple[SummarySection, str]]) -> dict[str, str]:
    under: dict[SummarySection, list[str]] = {}
    for section, line in written:
        under.setdefault(section, []).append(f"- {line}")
    bodies: dict[str, str] = {}
    for heading, sections in SECTION_LAYOUT.items():
        parts = [(s, "\n".join(under[s])) for s in sections if s in under]
        if heading == PROGRESS_HEADING:
            parts = [(s, f"### {s}\n{lines}") for s, lines in parts]
        if parts:
            bodies[heading] = "\n".join(lines for _, lines in parts)
    return bodies


def read_earlier_lines(
    sections: Mapping[str, str], text: str | None, covers: Ranges
) -> Iterator[SummaryLine]:
    """Yield the lines of an earlier summary, by any writer, with the handles that are still valid.

    Words count as the user's only if the earlier summary names their block.
    """
    if sections:
        text = "\n".join(f"## {heading}\n{body}" for heading, body in sections.items())
    firsts = [first for first, _ in covers.runs]
    section = SummarySection.CONTEXT
    for raw in _unwrap_summary(text or "").split("\n")[:_MAX_CARRIED_LINES]:
        read = _parse_line(raw, section)
        if isinstance(read, SummarySection):
            section = read
        elif read is not None:
            holds = _is_within(read.handles, covers, firsts)
            yield read if holds else _parse_line_without_handles(raw, section)


def split_foreign_summary(sections: Mapping[str, str], text: str | None) -> list[str]:
    """Return the parts of a summary in another writer's layout, each with its heading.

    Lines stay as written, except that none can pass for a user's words or a tool call.
    """
    if EARLIER_HEADING in sections or not SECTION_LAYOUT.keys().isdisjoint(sections):
        text = "\n\n".join(
            body if heading == EARLIER_HEADING else f"### {heading}\n{body}"
            for heading, body in sections.items()
            if heading not in SECTION_LAYOUT
        )
    lines = [_defuse_quotes(line.rstrip()) for line in _UNFRAMED.sub("", text or "").split("\n")]
    levels = _find_heading_levels(lines)
    if not any(lines):
        return []
    deeper = "#" * max(0, 3 - min((level for level in levels if level), default=3))
    # A title above all headings does not begin a part.
    heads = sorted({level for level in levels if level}, key=lambda n: (levels.count(n) < 2, n))
    parts: list[list[str]] = [[]]
    for line, level in zip(lines, levels, strict=True):
        if heads and level == heads[0] and any(parts[-1]):
            parts.append([])
        parts[-1].append(deeper + line if 0 < level < _NOT_MARKDOWN else line)
    return ["\n".join(part).strip("\n") for part in parts]


def pick_newest_parts(parts: Sequence[str], room: int) -> str:
    """Return the parts that fit, in order, dropping the oldest first, then lines of the newest."""
    kept = list(parts)
    while len(kept) > 1 and len("\n\n".join(kept)) > room:
        del kept[0]
    text = "\n\n".join(kept)
    if len(text) <= room:
        return text
    heading, *lines = text.split("\n")
    while lines and len("\n".join([heading, *lines])) > room:
        del lines[0]
    return "\n".join([heading, *lines]) if lines else shorten_line(heading, room)


def _find_heading_levels(lines: Iterable[str]) -> list[int]:
    """Return the heading level of each line; 0 for other lines."""
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


def _defuse_quotes(line: str) -> str:
    """Return a line that reads neither as the user's words nor as a tool call."""
    text = _QUOTE_MARK.sub(r"\1", defuse_tool_markup(make_printable(line)))
    if find_quote(text) is None:
        return text
    mark = _BULLET.match(text.lstrip())
    begins = len(text) - len(text.lstrip()) + (mark.end() if mark else 0)
    return f"{text[:begins]}Log: {text[begins:]}"


def _unwrap_summary(text: str) -> str:
    """Return a summary without its wrapping and without the lists that the next one repeats."""
    # Most summaries have none of these marks, which is faster to see without a pattern.
    return (
        _NOT_SUMMARY_TEXT.sub("", text)
        if any(mark in text for mark in _NOT_SUMMARY_MARKS)
        else text
    )


@lru_cache(maxsize=LINE_CACHE_SIZE)
def _parse_line(raw: str, section: SummarySection) -> SummarySection | SummaryLine | None:
    """Return a parsed line, the section that a heading begins, or None for an empty line."""
    line = raw.strip()
    if not line or _RULE.fullmatch(line):
        return None
    if heading := _HEADING.fullmatch(line):
        return _find_section(next(filter(None, heading.groups())))
    return _make_earlier_line(section, *split_handles(_strip_bullet(line)))


def _parse_line_without_handles(raw: str, section: SummarySection) -> SummaryLine:
    """Parse a line whose handles are no longer valid and count as text."""
    return _make_earlier_line(section, _strip_bullet(raw.strip()), _NO_HANDLES)


def _strip_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line[bullet.end() :] if bullet else line


def _make_earlier_line(section: SummarySection, said: str, handles: Ranges) -> SummaryLine:
    words = find_quote(said)
    is_quote = words is not None and bool(handles)
    if section is SummarySection.TURN:
        # Whether or not the turn goes on, this is what it had done.
        trouble = SummarySection.BLOCKED if FAILED_MARK in said else SummarySection.DONE
        section = SummarySection.GOAL if is_quote else trouble
    text = tidy_line(words if words is not None and is_quote else said)
    return SummaryLine(section, text, handles, weight=0.4, is_quote=is_quote)


def _is_within(handles: Ranges, covers: Ranges, firsts: Sequence[int]) -> bool:
    """Check whether a line's handles are all covered; `firsts` are the starts of covered runs."""
    for first, last in handles.runs:
        begun = bisect_right(firsts, first)
        if not begun or covers.runs[begun - 1][1] < last:
            return False
    return True


def _find_section(heading: str) -> SummarySection:
    return next((s for s, words in _NAMES.items() if words.search(heading)), SummarySection.CONTEXT)


def merge_lines(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """Return one line for each subject: the newest words, with the handles and weight of all."""
    by_subject: dict[tuple[SummarySection, str, bool], SummaryLine] = {}
    for line in sorted(lines, key=attrgetter("newest")):
        older = by_subject.get(line.subject)
        by_subject[line.subject] = _join_lines(older, line) if older else line
    return list(by_subject.values())


def _join_lines(older: SummaryLine, newer: SummaryLine) -> SummaryLine:
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
_MAX_CARRIED_LINES = 400
_UNFRAMED = re.compile(
    r"<(read-files|modified-files)>.*?</\1>\n?|</?(?:summary|analysis)>\n?", re.DOTALL
)
_LABEL = re.compile(r"[A-Z][A-Z0-9_]{3,30}:(?=\s|$)")
_NOT_MARKDOWN = 7
_QUOTE_MARK = re.compile(r"^(\s*)>[>\s]*")
_NO_HANDLES = Ranges()
_NOT_SUMMARY_TEXT = re.compile(
    r"<(read-files|modified-files)>.*?</\1>|^```.*?^```|</?summary>|</?analysis>",
    re.DOTALL | re.MULTILINE,
)
_NOT_SUMMARY_MARKS = ("<read-files>", "<modified-files>", "```", "summary>", "analysis>")
_RULE = re.compile(r"[-*_=\s]{3,}")
_BULLET = re.compile(r"(?:(?:[-*+•>]|\d{1,3}[.)])\s+)+")
_HEADING = re.compile(
    r"#{1,6}\s+(.+)|\*\*([^*]{3,60})\*\*:?|\d{1,2}\.\s+(?:\*\*)?([^:*]{3,60}):(?:\*\*)?"
)
_NAMES = {
    section: re.compile(rf"\b(?:{words})", re.IGNORECASE)
    for section, words in {
        SummarySection.TURN: "current turn|turn context|task context|split turn",
        SummarySection.GOAL: "goal|objective|primary request|original request|intent",
        SummarySection.CONSTRAINTS: "constraint|preference|requirement|user message|rule",
        SummarySection.IN_PROGRESS: "in progress|current work|current state|ongoing",
        SummarySection.NEXT: "next|pending|to-?do|remaining|not started|plan",
        SummarySection.BLOCKED: "block|error|problem|issue|failure",
        SummarySection.DECISIONS: "decision|rationale",
        SummarySection.DONE: "done|progress|completed|accomplish|changes",
    }.items()
}
