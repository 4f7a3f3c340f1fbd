"""Fills the page of a summary: each section gets its share of the room."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from ..ranges import Ranges
from .clean_text import ELLIPSIS, add_handles, list_cited_runs, split_handles
from .earlier_summary import EARLIER_HEADING, pick_newest_parts
from .layout import (
    SOURCE_END,
    SummaryLine,
    SummarySection,
    count_heading_chars,
    lay_out_sections,
)

_MIN_LINE_CHARS = 60
"""A line shortened below this length says nothing."""
_MIN_ROOM_CHARS = _MIN_LINE_CHARS // 2
"""The least room for which a line is tried."""
_LINE_MARK_CHARS = len("- \n")
_NESTED_MARK = "\n  - "
_MAIN_SHARE = 0.9
"""The least weight of a line that may be long."""


class SummaryPage:
    """The lines chosen so far for a summary of at most `room` characters; `tags` end it."""

    def __init__(self, room: int, tags: str = "") -> None:
        self.room = room
        self.left = room - len(tags) - len("\n\n")
        self._tags = tags
        self._earlier = ""
        self._taken: list[tuple[SummaryLine, str]] = []
        self._headings: set[SummarySection] = set()
        self._groups: Counter[tuple[SummarySection, Ranges | str, str]] = Counter()
        self._said: set[tuple[SummarySection, str]] = set()
        self._quotes: list[str] = []
        """A rule inside one of these needs no line of its own."""
        # The length of a line on a page of this size, so that a reader takes it in quickly.
        self._longest_line = min(max(room // 24, 90), 280)
        self._longest_quote = min(max(room // 24, 90), 320)
        self._longest_main = min(max(room // 6, 90), 1_200)

    def set_earlier(self, parts: Sequence[str], spare: int = 0) -> None:
        """Put another writer's summary first, shortened to leave `spare` characters."""
        frame = len(f"## {EARLIER_HEADING}\n\n\n")
        self.left += frame + len(self._earlier) if self._earlier else 0
        room = self.left - spare - frame
        self._earlier = pick_newest_parts(parts, room) if parts and room > _MIN_LINE_CHARS else ""
        self.left -= frame + len(self._earlier) if self._earlier else 0

    def add_shares(
        self, lines: Sequence[SummaryLine], shares: Mapping[SummarySection, float]
    ) -> None:
        """Add the lines that fit into the share of each section, best first."""
        of_section: defaultdict[SummarySection, list[SummaryLine]] = defaultdict(list)
        for line in lines:
            of_section[line.section].append(line)
        for section, share in shares.items():
            granted = int(self.room * share)
            for line in of_section[section]:
                if granted < _MIN_ROOM_CHARS:
                    break
                granted -= self._add_shortened(line, granted)

    def add_whole(self, line: SummaryLine) -> None:
        self.left -= self.count_chars(line, {})
        self._take(line, line.full_text)

    def count_chars(self, line: SummaryLine, opened: Mapping[object, int]) -> int:
        """Return the characters that a whole line takes, with its heading if that is new.

        `opened` counts the sections and groups of lines that are still to be added.
        """
        if self._groups[line.group] + opened.get(line.group, 0):
            return len(_NESTED_MARK) + len(line.nested_text)
        return len(line.full_text) + self._count_frame(line, opened)

    def _count_frame(self, line: SummaryLine, opened: Mapping[object, int]) -> int:
        is_first = line.section not in self._headings and line.section not in opened
        again = len(line.nested_text) - len(line.wording)
        source = len(_NESTED_MARK) + len(line.source) + len(SOURCE_END) if line.source else 0
        heading = count_heading_chars(line.section) if is_first else 0
        return _LINE_MARK_CHARS + again + source + heading

    @property
    def cites(self) -> Ranges:
        return Ranges({run for line, _ in self._taken for run in list_cited_runs(line.handles)})

    @property
    def sections(self) -> dict[str, str]:
        """The lines under each heading, oldest first."""
        taken = sorted(self._taken, key=lambda taken: _place(taken[0]))
        bodies = lay_out_sections(
            (group[0], self._write_group([*lines]))
            for group, lines in groupby(taken, key=lambda taken: taken[0].group)
        )
        return ({EARLIER_HEADING: self._earlier} if self._earlier else {}) | bodies

    @property
    def text(self) -> str:
        parts = [f"## {heading}\n{body}" for heading, body in self.sections.items()]
        return "\n\n".join([*parts, self._tags] if self._tags else parts)

    def _write_group(self, lines: Sequence[tuple[SummaryLine, str]]) -> str:
        """Return a line with others of its block below it, or all below their source."""
        line, head = lines[0]
        if line.source:
            head = add_handles(line.source + SOURCE_END, line.handles)
        nested = (
            line.nested_text if written == line.full_text else split_handles(written)[0]
            for line, written in (lines if line.source else lines[1:])
        )
        return _NESTED_MARK.join([head, *nested])

    def _add_shortened(self, line: SummaryLine, granted: int) -> int:
        """Return the characters that the line takes; 0 without room, or if it is repeated."""
        frame = self._count_frame(line, {})
        room = min(granted, self.left) - frame
        if room < _MIN_ROOM_CHARS or self._is_said(line):
            return 0
        written = line.write_within(self._max_line_chars(line))
        if len(written) > room:
            if line.section in self._headings or room < _MIN_LINE_CHARS:
                return 0
            written = line.write_within(room)
        said = split_handles(written)[0].strip(f"`{ELLIPSIS} ")
        if written != line.full_text and not said:
            return 0  # its first word is too long
        self.left -= frame + len(written)
        self._take(line, written)
        if line.is_quote:
            self._quotes.append(written)
        return frame + len(written)

    def _take(self, line: SummaryLine, written: str) -> None:
        self._taken.append((line, written))
        self._headings.add(line.section)
        self._groups[line.group] += 1
        self._said.add((line.section, line.text))

    def _max_line_chars(self, line: SummaryLine) -> int:
        if line.is_quote:
            return self._longest_main if line.weight >= _MAIN_SHARE else self._longest_quote
        return self._longest_line

    def _is_said(self, line: SummaryLine) -> bool:
        """Check whether the page says the same, or a quote on it contains these words."""
        if (line.section, line.text) in self._said:
            return True
        is_rule = line.is_quote and line.section is not SummarySection.TURN
        return is_rule and any(line.text in written for written in self._quotes)


def _place(line: SummaryLine) -> tuple[int, SummarySection, str, str]:
    """Return a key that sorts lines as the log has them, and those of one group together."""
    return line.newest, line.section, str(line.handles), line.source
