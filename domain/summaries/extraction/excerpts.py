"""Finds the lines of calls and results that hold several of the facts to keep."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...blocks import AnyBlock, Kind
from ...item import Item
from ...ranges import Ranges
from .block_cache import CachedPerBlock
from .clean_text import mark_code, tidy_line
from .facts import MAX_BLOCK_CHARS as ENDS
from .facts import SummaryFact, find_fact_words, get_searched_text
from .sections import SummaryLine, SummarySection

_MIN_CHARS, _MAX_CHARS = 16, 150
"""The length of a line worth quoting, which excludes lone words and minified files."""
_FRAME = 16
"""The approximate characters that a summary line takes in addition to its words."""
_PARTS = re.compile(r"[./]|::|->")
_NUMBERED = re.compile(r"\s*(?:[\w./-]+:)?\d+(?:→|[:|\t-])\s*(?:\d+[:-])?")


def iter_excerpts(facts: Sequence[SummaryFact], items: Iterable[Item]) -> Iterator[SummaryLine]:
    """Yield lines that name several of the facts, each as last seen; the densest first.

    A line counts only the facts that no earlier line has.
    """
    worth = {fact.text: fact.worth for fact in facts}
    texts = {
        item.position: item for item in items if item.kind in {Kind.TOOL_CALL, Kind.TOOL_RESULT}
    }
    lines = dict.fromkeys(_iter_lines(facts, texts))
    words = {line: tuple(dict.fromkeys(find_fact_words(line[0]))) for line in lines}
    ranked = sorted(lines, key=lambda line: -_compute_density(line[0], words[line], worth))
    for text, position in ranked:
        told = [word for word in words[text, position] if word in worth]
        if len({_PARTS.split(word)[-1] for word in told}) > 1:
            for fact in told:
                del worth[fact]
            yield SummaryLine(SummarySection.CONTEXT, mark_code(text), Ranges.of([position]))


def _iter_lines(
    facts: Iterable[SummaryFact], items: Mapping[int, Item]
) -> Iterator[tuple[str, int]]:
    texts: dict[int, str] = {}
    for fact in facts:
        item = items.get(fact.newest)
        if item is None:
            continue
        if fact.newest not in texts:
            texts[fact.newest] = _read_text(item.block)
        text = texts[fact.newest]
        at = text.find(fact.text)
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        line = text[begin : end if end >= 0 else None]
        if at >= 0 and len(line) < 2 * _MAX_CHARS:
            line = tidy_line(_NUMBERED.sub("", line, count=1) if _NUMBERED.match(line) else line)
            if _MIN_CHARS <= len(line) <= _MAX_CHARS and not line.startswith(("{", "[{")):
                yield line, fact.newest


@CachedPerBlock
def _read_text(block: AnyBlock) -> str:
    return get_searched_text(block, ENDS)


def _compute_density(text: str, words: Iterable[str], worth: Mapping[str, float]) -> float:
    return sum(worth.get(word, 0.0) for word in words) / (len(text) + _FRAME)
