"""Fills a summary: each section gets its share of the room, the highest weights the rest."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from ..ranges import Ranges
from .clean_text import list_cited_runs
from .earlier_summary import EARLIER_HEADING, pick_newest_parts
from .layout import (
    SummaryLine,
    SummarySection,
    count_heading_chars,
    find_long_words,
    lay_out_sections,
)

_MIN_LINE_CHARS = 60
"""A line shortened below this length says nothing."""
_MIN_ROOM_CHARS = _MIN_LINE_CHARS // 2
"""The least room for which a line is tried."""
_LINE_MARK_CHARS = len("- \n")
_MAIN_SHARE = 0.9
"""The least weight of a line that may be long."""
_GLANCE_CHARS = 200
"""A rule inside a quote of this length needs no line of its own."""
SAME_WORDS_SHARE = 0.8
MIN_WORDS = 3
"""Two lines say the same if they share this much of the shorter one's longer words, and this many.
"""


class SummaryPage:
    """The lines chosen so far for a summary of at most `room` characters."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.left = room
        self._tags = ""
        self._earlier = ""
        self._taken: list[tuple[SummaryLine, str]] = []
        self._headings: set[SummarySection] = set()
        self._said = _SaidWords()
        self._at_a_glance: list[str] = []
        """Short quotes; a rule inside one needs no line of its own."""
        # The length of a line on a page of this size, so that a reader takes it in quickly.
        self._longest_line = min(max(room // 24, 90), 280)
        self._longest_quote = min(max(room // 24, 90), 320)
        self._longest_main = min(max(room // 6, 90), 1_200)

    def add_tags(self, tags: str) -> None:
        self._tags = tags
        self.left -= len(tags) + len("\n\n")

    def add_earlier(self, parts: Sequence[str], room: int) -> None:
        """Put another writer's summary first, shortened to `room` characters.

        Replaces an earlier one and frees its room.
        """
        frame = len(f"## {EARLIER_HEADING}\n\n\n")
        if self._earlier:
            room += frame + len(self._earlier)
            self.left += frame + len(self._earlier)
        self._earlier = (
            pick_newest_parts(parts, room - frame) if room > frame + _MIN_LINE_CHARS else ""
        )
        if self._earlier:
            self.left -= frame + len(self._earlier)
            for line in self._earlier.split("\n"):
                self._said.add(find_long_words(line.strip()))

    def add_shares(
        self, lines: Sequence[SummaryLine], shares: Mapping[SummarySection, float]
    ) -> list[SummaryLine]:
        """Add the lines that fit into the share of each section, best first, and return the rest.

        The rest holds lines without room, but not those that the page already says.
        """
        rest: list[SummaryLine] = []
        of_section: defaultdict[SummarySection, list[SummaryLine]] = defaultdict(list)
        for line in lines:
            of_section[line.section].append(line)
        for section, share in shares.items():
            granted = int(self.room * share)
            for line in of_section[section]:
                taken = 0 if granted < _MIN_ROOM_CHARS else self._fit_line(line, granted)
                if taken == 0:
                    rest.append(line)
                granted -= taken or 0
        return sorted(rest, key=lambda line: (-line.weight, -line.newest))

    def add(self, lines: Iterable[SummaryLine], spare: int = 0) -> list[SummaryLine]:
        """Add lines in order, leaving `spare` characters, and return those that do not fit."""
        return [
            line
            for line in lines
            if self.left - spare < _MIN_LINE_CHARS or self._fit_line(line, self.left - spare) == 0
        ]

    def add_whole(self, line: SummaryLine) -> bool:
        """Add a line if it fits without being shortened."""
        cost = self.count_chars(line)
        if cost > self.left:
            return False
        self.left -= cost
        self._taken.append((line, line.full_text))
        self._headings.add(line.section)
        self._said.add(line.long_words)
        return True

    def count_chars(
        self, line: SummaryLine, opened: AbstractSet[SummarySection] = frozenset()
    ) -> int:
        """Return the characters that a line takes, with its heading if that is new.

        `opened` are the sections of lines that are still to be added.
        """
        is_first = line.section not in self._headings and line.section not in opened
        heading = count_heading_chars(line.section) if is_first else 0
        return _LINE_MARK_CHARS + heading + len(line.full_text)

    @property
    def cites(self) -> Ranges:
        return Ranges({run for line, _ in self._taken for run in list_cited_runs(line.handles)})

    @property
    def sections(self) -> dict[str, str]:
        """The lines under each heading, oldest first."""
        taken = sorted(self._taken, key=lambda taken: taken[0].newest)
        bodies = lay_out_sections((line.section, written) for line, written in taken)
        return ({EARLIER_HEADING: self._earlier} if self._earlier else {}) | bodies

    @property
    def text(self) -> str:
        parts = [f"## {heading}\n{body}" for heading, body in self.sections.items()]
        return "\n\n".join([*parts, self._tags] if self._tags else parts)

    @property
    def has_room(self) -> bool:
        """Whether a line could still fit."""
        return self.left >= _MIN_LINE_CHARS

    def _fit_line(self, line: SummaryLine, granted: int) -> int | None:
        """Return the characters that the line takes; 0 without room, None if it is repeated."""
        is_first = line.section not in self._headings
        cost = _LINE_MARK_CHARS + (count_heading_chars(line.section) if is_first else 0)
        room = min(granted, self.left) - cost
        if room < _MIN_ROOM_CHARS:
            return 0
        written = line.write_within(self._max_line_chars(line))
        if len(written) > room:
            if not is_first or room < _MIN_LINE_CHARS:
                return 0
            written = line.write_within(room)
        words = line.long_words
        if self._is_already_quoted(line) if line.is_quote else self._said.has(words):
            return None
        self.left -= cost + len(written)
        self._taken.append((line, written))
        self._headings.add(line.section)
        self._said.add(words)
        if line.is_quote and len(line.text) <= _GLANCE_CHARS:
            self._at_a_glance.append(written)
        return cost + len(written)

    def _max_line_chars(self, line: SummaryLine) -> int:
        if line.is_quote:
            return self._longest_main if line.weight >= _MAIN_SHARE else self._longest_quote
        return self._longest_line

    def _is_already_quoted(self, line: SummaryLine) -> bool:
        """Check whether a short quote on the page contains these words."""
        return line.section is not SummarySection.TURN and any(
            line.text in written for written in self._at_a_glance
        )


class _SaidWords:
    """Finds lines that say the same, by their longer words."""

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._lines_with: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, words: frozenset[str]) -> None:
        line = len(self._lengths)
        self._lengths.append(len(words))
        for word in words:
            self._lines_with[word].append(line)

    def has(self, words: frozenset[str]) -> bool:
        found = [*filter(None, map(self._lines_with.get, words))]
        if len(found) < MIN_WORDS:
            return False
        lines = sorted(chain.from_iterable(found))
        often = {
            one for one, later in zip(lines, lines[MIN_WORDS - 1 :], strict=False) if one == later
        }
        return any(
            lines.count(line) >= SAME_WORDS_SHARE * min(len(words), self._lengths[line])
            for line in often
        )
