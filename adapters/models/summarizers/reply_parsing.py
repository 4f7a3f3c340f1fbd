"""Makes a model's reply a summary: handles, sections, true quotes, and the facts it left out."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from ....domain.ranges import Ranges
from ....domain.summaries.clean_text import (
    add_handles,
    find_quote,
    fold_lines,
    is_quote_in,
    list_comparable_texts,
    make_printable,
)
from ....domain.summaries.layout import SummarySection
from ....domain.summaries.needs import LikelyFact
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
_OMISSION = re.compile(r"…|\.\.\.")
_WORD = re.compile(r"\w+")


def correct_quotes(text: str, user_texts: Iterable[str]) -> str:
    """Return the text with quotes replaced by the user's own spelling, if their words match.

    Case and punctuation may differ; other quotes are left to the gate.
    """
    texts = tuple(user_texts)
    comparable = tuple(chain.from_iterable(map(list_comparable_texts, texts)))
    said = [fold_lines(one[:_MAX_TEXT_CHARACTERS]) for one in texts]
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = find_quote(line)
        if words is None or is_quote_in(words, comparable):
            continue
        if (true := _find_original(words, said)) is not None:
            lines[number] = line.replace(words, true, 1)
    return "\n".join(lines)


def _find_original(words: str, said: Iterable[str]) -> str | None:
    """Return the user's spelling of a quote, part for part."""
    parts = [_WORD.findall(part) for part in _OMISSION.split(words)]
    if not parts or any(len("".join(part)) < _MIN_QUOTE_LETTERS for part in parts if part):
        return None
    # A quotation mark within the user's text would end the quote.
    pattern = ".*?".join(
        "(" + r'[^\w"]+'.join(map(re.escape, part)) + ")" for part in parts if part
    )
    found = filter(None, (re.search(pattern, one, re.IGNORECASE) for one in said))
    return next((" … ".join(one.groups()) for one in found if one.groups()), None)


FACTS_SHARE = 0.12
"""The share of a summary's room for facts that the model does not name."""
_FACT_FRAME_CHARS = 24
"""The most characters of a fact apart from its text: its handle, and its share of a line."""


def write_missing_facts(text: str, facts: Sequence[LikelyFact], covers: Ranges, room: int) -> str:
    """Return lines with the best facts that the text lacks, within that many characters."""
    heading = f"## {SummarySection.CONTEXT}"
    room -= len(heading)
    rows: dict[int, list[str]] = {}
    for fact, position in facts:
        if fact in text or position not in covers:
            continue
        room -= len(fact) + _FACT_FRAME_CHARS
        if room < 0:
            break
        rows.setdefault(position, []).append(fold_lines(fact))
    lines = [add_handles(f"- {', '.join(rows[at])}", Ranges.of([at])) for at in sorted(rows)]
    return "\n".join([heading, *lines]) if lines else ""
