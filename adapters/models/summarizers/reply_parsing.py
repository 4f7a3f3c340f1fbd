"""Makes a model's reply a summary: handles, sections, true quotes, and the facts it left out."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.clean_text import add_handles, fold_lines, make_printable
from ....domain.summaries.facts import FactKind, SummaryFact, rank_facts
from ....domain.summaries.layout import SummarySection
from ....domain.summaries.memo import Memo
from ....domain.summaries.quotes import find_quote, is_quote_in, list_comparable_texts
from ....domain.summaries.summarizer import Draft

_NUMBER = r"#?\d{1,15}(?:\s*[-\u2013\u2014]\s*#?\d{1,15})?"
_CITATION = re.compile(
    rf" ?[(\[](?=\s*#)\s*({_NUMBER}(?:(?:\s*(?:[,;&]|and)\s*|\s+){_NUMBER})*)\s*[)\]](?!\()",
    re.IGNORECASE,
)
_RUN = re.compile(r"#?(\d{1,15})(?:\s*[-\u2013\u2014]\s*#?(\d{1,15}))?")
_THOUGHTS = re.compile(r"<(think|thinking|analysis|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FRAME = re.compile(r"</?(?:summary|notes|answer)>", re.IGNORECASE)
_FENCED = re.compile(r"```(?:markdown|md)?\n(.*)\n```", re.DOTALL | re.IGNORECASE)
_LISTS = re.compile(r"<(read-files|modified-files)>.*?(?:</\1>|\Z)", re.DOTALL)
_HEADING = re.compile(
    r"#{1,2}\s+(?P<first>.*?)\s*#*|\*\*(?P<split>(?:Turn|Task) Context \([a-z ]+\)):?\*\*:?"
)
"""Also matches the separate line above a split turn's summary."""
_RULE = re.compile(r"\n-{3,}\Z")


def parse_reply(reply: str, covers: Ranges) -> Draft:
    """Parse a model's reply: spell handles uniformly, and remove those of other blocks.

    Lists of files are removed too, since exact ones are added later.
    """
    text = strip_frame(reply)
    cited: list[tuple[int, int]] = []

    def respelt(found: re.Match[str]) -> str:
        named = Ranges(_parse_runs(found[1])) & covers
        cited.extend(named.runs)
        return f" ({str(named).replace(' ', ', ')})" if named else ""

    lines = (_CITATION.sub(respelt, line).rstrip() for line in text.split("\n"))
    text = _BLANK.sub("\n\n", "\n".join(lines)).strip()
    return Draft(text, split_sections(text), Ranges(cited))


def strip_frame(reply: str) -> str:
    """Return a model's reply without thoughts, file lists and wrapping."""
    text = _LISTS.sub("", _THOUGHTS.sub("", make_printable(reply))).strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    return _FRAME.sub("", text).strip()


_BLANK = re.compile(r"\n{3,}")


def _parse_runs(numbers: str) -> list[tuple[int, int]]:
    runs = [(int(a), int(b or a)) for a, b in _RUN.findall(numbers)]
    return [(first, last) for first, last in runs if 1 <= first <= last]


def split_sections(text: str) -> dict[str, str]:
    """Return the parts of a Markdown text by first or second level heading, without file lists."""
    sections: dict[str, list[str]] = {}
    under: list[str] | None = None
    for line in _FRAME.sub("", _LISTS.sub("", text)).split("\n"):
        if heading := _HEADING.fullmatch(line.strip()):
            named = heading["split"] or heading["first"].strip("*: ")
            under = sections.setdefault(named, [])
        elif under is not None:
            under.append(line)
    bodies = {
        heading: _RULE.sub("", "\n".join(lines).strip()).strip()
        for heading, lines in sections.items()
    }
    return {heading: body for heading, body in bodies.items() if heading and body}


_MIN_QUOTE_LETTERS = 8
"""The fewest letters for a match that is not chance."""
_MAX_TEXT_CHARACTERS = 50_000
"""The most characters of a user's text that are searched; longer ones are pasted."""
_OMISSION = re.compile(r"\s*(?:…|\.\.\.)\s*")


class _UserText:
    """A user's text, and its letters alone with their positions."""

    def __init__(self, text: str) -> None:
        self._line = fold_lines(text[:_MAX_TEXT_CHARACTERS])
        folded = [(letter, at) for at, c in enumerate(self._line) for letter in c.casefold()]
        found = [(letter, at) for letter, at in folded if self._line[at].isalnum()]
        self._letters = "".join(letter for letter, _ in found)
        self._places = [at for _, at in found]

    def find_words(self, words: str, since: int) -> tuple[str, int] | None:
        """Return the user's own spelling of words, and where they end among the letters."""
        letters = "".join(c for c in words.casefold() if c.isalnum())
        at = self._letters.find(letters, since) if len(letters) >= _MIN_QUOTE_LETTERS else -1
        if at < 0:
            return None
        end = at + len(letters)
        return self._line[self._places[at] : self._places[end - 1] + 1], end


def correct_quotes(text: str, user_texts: Iterable[str]) -> str:
    """Return the text with quotes replaced by the user's own spelling, if their letters match.

    Case, spaces and punctuation may differ; other quotes are left to the gate.
    """
    texts = tuple(user_texts)
    comparable = tuple(chain.from_iterable(map(list_comparable_texts, texts)))
    said: list[_UserText] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = find_quote(line)
        if words is None or is_quote_in(words, comparable):
            continue
        said = said or [_UserText(one) for one in texts]
        if (true := _find_original(words, said)) is not None:
            lines[number] = line.replace(words, true, 1)
    return "\n".join(lines)


def _find_original(words: str, said: Sequence[_UserText]) -> str | None:
    parts = [part for part in _OMISSION.split(words) if part.strip()]
    for one in said:
        found: list[str] = []
        since = 0
        for part in parts:
            taken = one.find_words(part, since)
            if taken is None:
                break
            found.append(taken[0])
            since = taken[1]
        else:
            # A quotation mark within the user's text would end the quote.
            return " … ".join(found) if found and not any('"' in part for part in found) else None
    return None


FACTS_SHARE = 0.12
"""The share of a summary's room for facts that the model does not name."""
_MAX_FACTS = 60
"""The most facts to look for."""
MAX_ROW_CHARACTERS = 160
"""The most characters of facts in one line."""


def choose_facts(items: Iterable[Item]) -> list[SummaryFact]:
    """Return the facts that are most likely to be needed again, best first."""
    return rank_facts(items, {}, Memo())[:_MAX_FACTS]


def find_missing_rows(text: str, facts: Sequence[SummaryFact], covers: Ranges, room: int) -> str:
    """Return lines with the best facts that the text lacks, within that many characters."""
    heading = f"## {SummarySection.CONTEXT}"
    room -= len(heading)
    chosen: list[SummaryFact] = []
    for fact in facts:
        if fact.text in text or fact.newest not in covers:
            continue
        room -= len(fact.text) + _ROW_OVERHEAD
        if room < 0:
            break
        chosen.append(fact)
    rows = [
        row
        for sort in FactKind
        for row in _make_rows(sort, [fact for fact in chosen if fact.kind is sort])
    ]
    return "\n".join([heading, *rows]) if rows else ""


_ROW_OVERHEAD = 24
"""The most characters of a fact apart from its text: its handle, and its share of a line."""


def _make_rows(sort: FactKind, facts: Sequence[SummaryFact]) -> list[str]:
    rows: list[list[SummaryFact]] = []
    for fact in sorted(facts, key=lambda fact: fact.newest):
        if rows and _has_room(rows[-1], fact):
            rows[-1].append(fact)
        else:
            rows.append([fact])
    return [
        add_handles(
            f"- {sort}: {', '.join(fold_lines(fact.text) for fact in row)}",
            Ranges.of(fact.newest for fact in row),
        )
        for row in rows
    ]


def _has_room(row: Sequence[SummaryFact], fact: SummaryFact) -> bool:
    """Return whether the fact fits; a line names three handles at most."""
    handles = {one.newest for one in row} | {fact.newest}
    return (
        len(handles) <= 3
        and sum(len(one.text) for one in row) + len(fact.text) <= MAX_ROW_CHARACTERS
    )
