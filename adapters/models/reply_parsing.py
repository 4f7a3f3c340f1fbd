"""Makes a model's reply a summary: handles, sections, true quotes, and what it left out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ...domain.ranges import Ranges
from ...domain.summaries.clean_text import (
    add_handles,
    find_quote,
    fold_lines,
    is_quote_in,
    list_comparable_texts,
    make_printable,
)
from ...domain.summaries.earlier_summary import read_earlier_lines
from ...domain.summaries.findings import gather_lines
from ...domain.summaries.layout import FAILED_MARK, SummaryLine, SummarySection
from ...domain.summaries.needs import LikelyFact, list_likely_facts
from ...domain.summaries.statements import BlockReader
from ...domain.summaries.summarizer import Draft, Material

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


CHECKLIST_SHARE = 0.2
"""The share of a summary's room for what the model leaves out of the checklist."""
LEFT_OUT_HEADING = "Left out above"
"""The heading of the block with these."""
_MAX_FACTS = 60
_MAX_STATE_CHARS = 3_000
_MIN_STATE_WEIGHT = 0.4
MAX_STATE_LINE_CHARS = 240
_MIN_LINE_CHARS = 80
"""The least room for a line with its label and its handles."""
_FACT_FRAME_CHARS = 24
"""The most characters of a fact apart from its text: its handle, and its share of a line."""
_STATE_SECTIONS = frozenset(
    {
        SummarySection.GOAL,
        SummarySection.CONSTRAINTS,
        SummarySection.IN_PROGRESS,
        SummarySection.BLOCKED,
        SummarySection.NEXT,
    }
)
_TELLING_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True)
class Checklist:
    """What rules find in the blocks and in the earlier summary: the model has to say it."""

    state: tuple[SummaryLine, ...] = ()
    """Requests, rules, open failures, work in progress and next steps, the weightiest first."""
    facts: tuple[LikelyFact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.state or self.facts)

    def split_at(self, prefix: Ranges) -> "tuple[Checklist, Checklist]":
        """Return the list of what came before a turn's beginning, and that of the beginning."""
        turn = Checklist(
            tuple([line for line in self.state if line.newest in prefix]),
            tuple([fact for fact in self.facts if fact.newest in prefix]),
        )
        before = Checklist(
            tuple([line for line in self.state if line not in turn.state]),
            tuple([fact for fact in self.facts if fact not in turn.facts]),
        )
        return before, turn

    def write_missing(self, text: str, covers: Ranges, room: int) -> str:
        """Return a block with what the text leaves out, within `room` characters; state first."""
        room -= len(f"## {LEFT_OUT_HEADING}")
        said = [frozenset(_list_telling_words(line)) for line in text.split("\n")]
        written: list[str] = []
        for line in self.state:
            if room < _MIN_LINE_CHARS or line.handles - covers or _is_said(line, text, said):
                continue
            head = "- " if line.is_quote or FAILED_MARK in line.text else f"- {line.section}: "
            left = room - len(f"\n{head}")
            written.append(head + line.write_within(min(left, MAX_STATE_LINE_CHARS)))
            room -= len(f"\n{written[-1]}")
            said.append(frozenset(_list_telling_words(written[-1])))
        rows: dict[int, list[str]] = {}
        shown = "\n".join([text, *written])
        for fact, position in self.facts:
            if fact in shown or position not in covers:
                continue
            room -= len(fact) + _FACT_FRAME_CHARS
            if room < 0:
                break
            rows.setdefault(position, []).append(fold_lines(fact))
        written += [add_handles(f"- {', '.join(rows[at])}", Ranges.of([at])) for at in sorted(rows)]
        return "\n".join([f"## {LEFT_OUT_HEADING}", *written]) if written else ""


def make_checklist(material: Material) -> Checklist:
    """Return what a summary of the material has to say, by the rules of `extractive`."""
    earlier = read_earlier_lines(material.previous_sections, material.previous, material.covers)
    lines = gather_lines(material, list(earlier), BlockReader())
    state, room = list[SummaryLine](), _MAX_STATE_CHARS
    for line in lines:
        if _is_state(line) and line.weight >= _MIN_STATE_WEIGHT and line.handles:
            room -= min(len(line.full_text), MAX_STATE_LINE_CHARS)
            if room < 0:
                break
            state.append(line)
    facts = list_likely_facts(material.removed_items, material.kept_items, _MAX_FACTS)
    return Checklist(tuple(state), tuple(facts))


def _is_state(line: SummaryLine) -> bool:
    if line.section is SummarySection.TURN:
        return line.is_quote or FAILED_MARK in line.text
    return line.section in _STATE_SECTIONS


def _is_said(line: SummaryLine, text: str, said: Sequence[frozenset[str]]) -> bool:
    """Check whether one line of a text has half of the words; of a failure, and of its reason."""
    if line.text in text:
        return True
    parts = [_list_telling_words(part) for part in line.text.split(FAILED_MARK)]
    return any(parts) and any(
        all(2 * len(words & found) >= len(words) for words in parts) for found in said
    )


def _list_telling_words(text: str) -> set[str]:
    return {word.casefold() for word in _TELLING_WORD.findall(text)}
