"""Fills the page of a summary: each section gets its share of the room."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ..ranges import Ranges
from .clean_text import ELLIPSIS, MAX_CITED, add_handles, list_cited_runs, split_handles
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
_NESTED_MARK = "\n  - "
_MAIN_SHARE = 0.9
"""The least weight of a line that may be long."""

_WrittenLine = tuple[SummaryLine, str]


class SummaryPage:
    """The lines chosen so far for a summary of at most `room` characters; `tags` end it."""

    def __init__(self, room: int, tags: str = "") -> None:
        self.room = room
        self.left = room - len(tags) - len("\n\n")
        self._tags = tags
        self._earlier = ""
        self._headings: set[SummarySection] = set()
        self._groups: dict[object, list[_WrittenLine]] = {}
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
        """Add the lines that fit into the share of each section, best first.

        Earlier requests share the room of the goal.
        """
        of_section: defaultdict[SummarySection, list[SummaryLine]] = defaultdict(list)
        for line in lines:
            is_earlier = line.section is SummarySection.EARLIER_REQUESTS
            of_section[SummarySection.GOAL if is_earlier else line.section].append(line)
        for section, share in shares.items():
            granted = int(self.room * share)
            for line in of_section[section]:
                if granted < _MIN_ROOM_CHARS:
                    break
                granted -= self._add_shortened(line, granted)

    def add_whole(self, line: SummaryLine) -> bool:
        """Add a line if it fits; return whether it does."""
        cost = self._count_chars(line, line.full_text)
        if cost > self.left:
            return False
        self._take(line, line.full_text, cost)
        return True

    def _count_chars(self, line: SummaryLine, written: str) -> int:
        """Return the characters that a line would take, with its heading if that is new."""
        group = self._groups.get(line.group, [])
        heading = 0 if line.section in self._headings else count_heading_chars(line.section)
        return _count_group([*group, (line, written)]) - _count_group(group) + heading

    @property
    def cites(self) -> Ranges:
        lines = (line for group in self._groups.values() for line, _ in group)
        return Ranges({run for line in lines for run in list_cited_runs(line.handles)})

    @property
    def sections(self) -> dict[str, str]:
        """The lines under each heading, oldest first."""
        in_order = sorted(
            self._groups.values(), key=lambda group: max(line.newest for line, _ in group)
        )
        bodies = lay_out_sections(
            (group[0][0].section, text) for group in in_order for text in _iter_written(group)
        )
        return ({EARLIER_HEADING: self._earlier} if self._earlier else {}) | bodies

    @property
    def text(self) -> str:
        parts = [f"## {heading}\n{body}" for heading, body in self.sections.items()]
        return "\n\n".join([*parts, self._tags] if self._tags else parts)

    def _add_shortened(self, line: SummaryLine, granted: int) -> int:
        """Return the characters that the line takes; 0 without room, or if it is repeated."""
        if self._is_said(line):
            return 0
        room = min(granted, self.left)
        written = line.write_within(self._max_line_chars(line))
        cost = self._count_chars(line, written)
        if cost > room:
            rest = len(written) - (cost - room)
            if line.section in self._headings or rest < _MIN_LINE_CHARS:
                return 0
            written = line.write_within(rest)
            cost = self._count_chars(line, written)
        said = split_handles(written)[0].strip(f"`{ELLIPSIS} ")
        if cost > room or (written != line.full_text and not said):
            return 0  # its first word is too long
        self._take(line, written, cost)
        if line.is_quote:
            self._quotes.append(written)
        return cost

    def _take(self, line: SummaryLine, written: str, cost: int) -> None:
        self.left -= cost
        self._groups.setdefault(line.group, []).append((line, written))
        self._headings.add(line.section)
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


def _count_group(lines: Sequence[_WrittenLine]) -> int:
    return sum(len("- \n") + len(text) for text in _iter_written(lines))


def _iter_written(group: Sequence[_WrittenLine]) -> Iterator[str]:
    """Yield a line with others of its block below it, or all below their source.

    Lines of one source are divided, so that what stands above them names all their handles.
    """
    group = sorted(group, key=lambda one: (one[0].newest, one[0].place))
    blocks = [(handles, [*lines]) for handles, lines in groupby(group, lambda one: one[0].handles)]
    while blocks:
        handles, lines = blocks.pop(0)
        while blocks and len((handles | blocks[0][0]).runs) <= MAX_CITED:
            more, below = blocks.pop(0)
            handles, lines = handles | more, [*lines, *below]
        line, head = lines[0]
        if line.source:
            head = add_handles(line.source + SOURCE_END, handles)
        nested = (
            one.nested_text if written == one.full_text else split_handles(written)[0]
            for one, written in (lines if line.source else lines[1:])
        )
        yield _NESTED_MARK.join([head, *nested])
