"""Fills a page: each section gets its share of the room, what weighs most gets the rest."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ...ranges import Ranges
from .facts import words_of_line
from .line_wording import wording_of
from .sections import EARLIER, Line, Section, laid_out, newest_parts, overhead
from .wording import runs_cited

SHORTEST = 60
"""Characters below which a line that was shortened to fit says nothing."""
_LEAST = SHORTEST // 2
"""Characters of room below which no line is looked at."""
_MARKS = len("- \n")
LIST_ROW = 200
"""Characters of a row of the ledger, handles and all."""
MAIN = 0.9
"""Weight from which on a line may be long."""
GLANCE = 200
"""Characters of a quote in which a rule needs no line of its own to be seen."""
SAME = 0.8
FEWEST = 3
"""Two lines that share this much of the shorter one's longer words, and so many, say the same."""


class Page:
    """What was chosen so far of a summary that may have so many characters."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.left = room
        self._tags = ""
        self._earlier = ""
        self._taken: list[tuple[Line, str]] = []
        self._sections: set[Section] = set()
        self._said = _Said()
        self._at_a_glance: list[str] = []
        """Quotes in which a rule needs no line of its own."""
        self._laid_out: tuple[int, dict[str, str]] = (0, {})
        # How long a line may be on a page of this size: what a reader takes in at a glance.
        self._longest_line = min(max(room // 24, 90), 280)
        self._longest_quote = min(max(room // 24, 90), 320)
        self._longest_main = min(max(room // 6, 90), 1_200)
        self._surely_shown = min(LIST_ROW, self._longest_line)

    def add_tags(self, tags: str) -> None:
        """Put the lists of files at the end."""
        self._tags = tags
        self.left -= len(tags) + len("\n\n")

    def add_earlier(self, parts: Sequence[str], room: int) -> None:
        """Put another writer's summary first, as much of it as the room holds.

        Replaces what was put there before, whose room is free again.
        """
        frame = len(f"## {EARLIER}\n\n\n")
        if self._earlier:
            room += frame + len(self._earlier)
            self.left += frame + len(self._earlier)
        self._earlier = newest_parts(parts, room - frame) if room > frame + SHORTEST else ""
        if self._earlier:
            self.left -= frame + len(self._earlier)
            for line in self._earlier.split("\n"):
                self._said.add(wording_of(line.strip(), is_quote=False).long_words)

    def add_shares(self, lines: Sequence[Line], shares: Mapping[Section, float]) -> list[Line]:
        """Take what fits in the share of each section, best first.

        Gives back what it has no room for; what is said already is not worth another look.
        """
        rest: list[Line] = []
        of_section: defaultdict[Section, list[Line]] = defaultdict(list)
        for line in lines:
            of_section[line.section].append(line)
        for section, share in shares.items():
            granted = int(self.room * share)
            for line in of_section[section]:
                if granted < _LEAST:
                    rest.append(line)
                    continue
                taken = self._take(line, granted)
                if taken == 0:
                    rest.append(line)
                granted -= taken or 0
        return sorted(rest, key=lambda line: (-line.weight, -line.newest))

    def add(self, lines: Iterable[Line], spare: int = 0) -> list[Line]:
        """Take what fits, in the order of the lines, and leave some room; gives back as above."""
        return [
            line
            for line in lines
            if self.left - spare < SHORTEST or self._take(line, self.left - spare) == 0
        ]

    @property
    def cites(self) -> Ranges:
        """The handles that are named."""
        return Ranges({run for line, _ in self._taken for run in runs_cited(line.handles)})

    @property
    def sections(self) -> dict[str, str]:
        """What stands under each heading, oldest first."""
        # Asked for several times of a page that is done; lines are only ever added.
        if self._laid_out[0] != len(self._taken):
            taken = sorted(self._taken, key=lambda taken: _place(taken[0]))
            bodies = laid_out((line.section, written) for line, written in taken)
            self._laid_out = (len(taken), bodies)
        earlier = {EARLIER: self._earlier} if self._earlier else {}
        return earlier | self._laid_out[1]

    @property
    def text(self) -> str:
        """All of it, as Markdown."""
        parts = [f"## {heading}\n{body}" for heading, body in self.sections.items()]
        return "\n\n".join([*parts, self._tags] if self._tags else parts)

    @property
    def length(self) -> int:
        """How many lines there are."""
        return len(self._taken)

    def words(self, begin: int = 0) -> set[str]:
        """The words that may be facts, of the lines from the one on that was taken as that; of all
        of them together with the earlier summary and the lists of files. Headings have none."""
        found = set[str]()
        for _, written in self._taken[begin:]:
            found.update(words_of_line(written))
        told = f"{self._earlier}\n{self._tags}".split("\n")
        return found if begin else found.union(*map(words_of_line, told))

    def _take(self, line: Line, granted: int) -> int | None:
        """Characters that the line takes; 0 where it has no room, None where it is said already."""
        is_first = line.section not in self._sections
        cost = _MARKS + (overhead(line.section) if is_first else 0)
        room = min(granted, self.left) - cost
        if room < _LEAST:
            return 0
        written = line.whole
        if len(written) > self._surely_shown:
            written = line.within(self._longest(line))
        if len(written) > room:
            if not is_first or room < SHORTEST:
                return 0
            written = line.within(room)
        words = line.wording.long_words
        if self._is_quoted(line) if line.is_quote else self._said.has(words):
            return None
        self.left -= cost + len(written)
        self._taken.append((line, written))
        self._sections.add(line.section)
        self._said.add(words)
        if line.is_quote and len(line.text) <= GLANCE:
            self._at_a_glance.append(written)
        return cost + len(written)

    def _longest(self, line: Line) -> int:
        if line.is_list:
            return LIST_ROW
        if not line.is_quote:
            return self._longest_line
        return self._longest_main if line.weight >= MAIN else self._longest_quote

    def _is_quoted(self, line: Line) -> bool:
        """Whether another quote that a reader takes in at a glance has these words in it."""
        return line.section is not Section.TURN and any(
            line.text in written for written in self._at_a_glance
        )


def _place(line: Line) -> tuple[bool, int]:
    """Where a line stands in its section: by its age, and the ledger as it was made, at the end."""
    return (True, 0) if line.is_list else (False, line.newest)


class _Said:
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
        if len(found) < FEWEST:
            return False
        lines = sorted(chain.from_iterable(found))
        often = {
            one for one, later in zip(lines, lines[FEWEST - 1 :], strict=False) if one == later
        }
        return any(
            lines.count(line) >= SAME * min(len(words), self._lengths[line]) for line in often
        )
