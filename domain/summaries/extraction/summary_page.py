"""Fills a page: each section gets its share of the room, what weighs most gets the rest."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ...ranges import Ranges
from .clean_text import list_cited_runs
from .facts import collect_line_words
from .line_wording import get_wording
from .sections import (
    EARLIER_HEADING,
    SummaryLine,
    SummarySection,
    count_heading_chars,
    lay_out_sections,
    pick_newest_parts,
)

_MIN_LINE_CHARS = 60
"""Characters below which a line that was shortened to fit says nothing."""
_MIN_ROOM_CHARS = _MIN_LINE_CHARS // 2
"""Characters of room below which no line is looked at."""
_LINE_MARK_CHARS = len("- \n")
LIST_ROW_CHARS = 200
"""Characters of a row of the ledger, handles and all."""
_MAIN_SHARE = 0.9
"""Weight from which on a line may be long."""
_GLANCE_CHARS = 200
"""Characters of a quote in which a rule needs no line of its own to be seen."""
SAME_WORDS_SHARE = 0.8
MIN_WORDS = 3
"""Two lines that share this much of the shorter one's longer words, and so many, say the same."""


class SummaryPage:
    """What was chosen so far of a summary that may have so many characters."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.left = room
        self._tags = ""
        self._earlier = ""
        self._taken: list[tuple[SummaryLine, str]] = []
        self._sections: set[SummarySection] = set()
        self._said = _SaidWords()
        self._at_a_glance: list[str] = []
        """Quotes in which a rule needs no line of its own."""
        self._laid_out: tuple[int, dict[str, str]] = (0, {})
        # How long a line may be on a page of this size: what a reader takes in at a glance.
        self._longest_line = min(max(room // 24, 90), 280)
        self._longest_quote = min(max(room // 24, 90), 320)
        self._longest_main = min(max(room // 6, 90), 1_200)
        self._surely_shown = min(LIST_ROW_CHARS, self._longest_line)

    def add_tags(self, tags: str) -> None:
        """Put the lists of files at the end."""
        self._tags = tags
        self.left -= len(tags) + len("\n\n")

    def add_earlier(self, parts: Sequence[str], room: int) -> None:
        """Put another writer's summary first, as much of it as the room holds.

        Replaces what was put there before, whose room is free again.
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
                self._said.add(get_wording(line.strip(), is_quote=False).long_words)

    def add_shares(
        self, lines: Sequence[SummaryLine], shares: Mapping[SummarySection, float]
    ) -> list[SummaryLine]:
        """Take what fits in the share of each section, best first.

        Gives back what it has no room for; what is said already is not worth another look.
        """
        rest: list[SummaryLine] = []
        of_section: defaultdict[SummarySection, list[SummaryLine]] = defaultdict(list)
        for line in lines:
            of_section[line.section].append(line)
        for section, share in shares.items():
            granted = int(self.room * share)
            for line in of_section[section]:
                if granted < _MIN_ROOM_CHARS:
                    rest.append(line)
                    continue
                taken = self._fit_line(line, granted)
                if taken == 0:
                    rest.append(line)
                granted -= taken or 0
        return sorted(rest, key=lambda line: (-line.weight, -line.newest))

    def add(self, lines: Iterable[SummaryLine], spare: int = 0) -> list[SummaryLine]:
        """Take what fits, in the order of the lines, and leave some room; gives back as above."""
        return [
            line
            for line in lines
            if self.left - spare < _MIN_LINE_CHARS or self._fit_line(line, self.left - spare) == 0
        ]

    @property
    def cites(self) -> Ranges:
        """The handles that are named."""
        return Ranges({run for line, _ in self._taken for run in list_cited_runs(line.handles)})

    @property
    def sections(self) -> dict[str, str]:
        """What stands under each heading, oldest first."""
        # Asked for several times of a page that is done; lines are only ever added.
        if self._laid_out[0] != len(self._taken):
            taken = sorted(self._taken, key=lambda taken: _sort_key(taken[0]))
            bodies = lay_out_sections((line.section, written) for line, written in taken)
            self._laid_out = (len(taken), bodies)
        earlier = {EARLIER_HEADING: self._earlier} if self._earlier else {}
        return earlier | self._laid_out[1]

    @property
    def text(self) -> str:
        """All of it, as Markdown."""
        parts = [f"## {heading}\n{body}" for heading, body in self.sections.items()]
        return "\n\n".join([*parts, self._tags] if self._tags else parts)

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._taken)

    def collect_words(self, begin: int = 0) -> set[str]:
        """The words that may be facts, of the lines from the one on that was taken as that; of all
        of them together with the earlier summary and the lists of files. Headings have none."""
        found = set[str]()
        for _, written in self._taken[begin:]:
            found.update(collect_line_words(written))
        told = f"{self._earlier}\n{self._tags}".split("\n")
        return found if begin else found.union(*map(collect_line_words, told))

    def _fit_line(self, line: SummaryLine, granted: int) -> int | None:
        """Characters that the line takes; 0 where it has no room, None where it is said already."""
        is_first = line.section not in self._sections
        cost = _LINE_MARK_CHARS + (count_heading_chars(line.section) if is_first else 0)
        room = min(granted, self.left) - cost
        if room < _MIN_ROOM_CHARS:
            return 0
        written = line.full_text
        if len(written) > self._surely_shown:
            written = line.write_within(self._max_line_chars(line))
        if len(written) > room:
            if not is_first or room < _MIN_LINE_CHARS:
                return 0
            written = line.write_within(room)
        words = line.wording.long_words
        if self._is_already_quoted(line) if line.is_quote else self._said.has(words):
            return None
        self.left -= cost + len(written)
        self._taken.append((line, written))
        self._sections.add(line.section)
        self._said.add(words)
        if line.is_quote and len(line.text) <= _GLANCE_CHARS:
            self._at_a_glance.append(written)
        return cost + len(written)

    def _max_line_chars(self, line: SummaryLine) -> int:
        if line.is_list:
            return LIST_ROW_CHARS
        if not line.is_quote:
            return self._longest_line
        return self._longest_main if line.weight >= _MAIN_SHARE else self._longest_quote

    def _is_already_quoted(self, line: SummaryLine) -> bool:
        """Whether another quote that a reader takes in at a glance has these words in it."""
        return line.section is not SummarySection.TURN and any(
            line.text in written for written in self._at_a_glance
        )


def _sort_key(line: SummaryLine) -> tuple[bool, int]:
    """Where a line stands in its section: by its age, and the ledger as it was made, at the end."""
    return (True, 0) if line.is_list else (False, line.newest)


class _SaidWords:
    """What the lines of a page say, by their longer words."""

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._lines_with: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, words: frozenset[str]) -> None:
        line = len(self._lengths)
        self._lengths.append(len(words))
        lines_with = self._lines_with
        for word in words:
            lines_with[word].append(line)

    def has(self, words: frozenset[str]) -> bool:
        """Whether a line says the same."""
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
