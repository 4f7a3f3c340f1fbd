"""Ranks the concrete facts in a history, the likeliest to be needed again first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from heapq import nlargest
from math import exp, log
from typing import NamedTuple

from ..blocks import ASSISTANT_KINDS, AnyBlock, Kind, ToolCall, ToolResult
from ..digest import iter_strings, parse_names, read_arguments
from ..item import Item
from .memo import Memo


class FactKind(StrEnum):
    """The kind of a fact, which is also its label in a summary."""

    ERROR = "Errors"
    URL = "Addresses"
    COMMIT = "Hashes"
    PATH = "Paths"
    NUMBER = "Numbers"
    FLAG = "Flags"
    NAME = "Names"


class SummaryFact(NamedTuple):
    """Something that cannot be guessed, only looked up."""

    text: str
    kind: FactKind
    worth: float
    """How likely it is needed again, relative to others."""
    newest: int

    @property
    def density(self) -> float:
        """Its worth for the room that it takes; long facts are harder to guess."""
        return self.worth / float((len(self.text) + 8) ** 0.7)


# Plain words are not facts, even with a capital, nor is the start of an escape sequence. The first
# part skips a whole run of plain words in one step, since they are most of a text.
_WORD = re.compile(
    r"""(?>(?:[^A-Z0-9_/~.#@:-]+(?<![a-z]))?)
    (?:(--[a-z][\w-]++|[/~.#@-]{0,2}\b(?<!\\)[A-Z]?+[a-z]*+
    (?:://[^\s"'<>`)\]}|\\]{4,200}|[A-Z0-9_./:~@-][\w./:@~+%-]{0,126}[\w/]))|\w++|.)""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_KIND_PATTERN = re.compile(
    r"""(?P<URL>https?://.*)
    |(?P<FLAG>--[a-z].*)
    |(?P<COMMIT>(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}(?:-[0-9a-f]{4,12}){0,4})
    |(?P<ERROR>(?:\w+[.:]+)*\w+(?:Error|Exception|Warning|Failure|Panic)
    |(?:TS|CS|PLR|[CDEFW])\d{3,5}|E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|NOTEMPTY|ADDRINUSE
    |CONNREFUSED|CONNRESET|TIMEDOUT|PIPE|AGAIN|INVAL|NOSPC|LIFECYCLE))
    |(?P<NUMBER>v?\d+\.\d+\.\d+[\w.+-]*|\d+(?:\.\d+)?(?:ms|s|h|min|[kKMGT]i?B|%|px|k)|\d{5,12}|\#\d+)
    |(?P<PATH>(?=.*\w{2})(?:(?=[~./])[~.]*/?(?:[\w.@+-]+/)+[\w.@+-]+|(?:[\w.@+-]+/){2,}[\w.@+-]+
    |(?=.*[._\d-])(?!.*\.{3})[\w.@+-]{2,}/[\w.@+-]{2,}
    |[\w-]+\.(?:py|pyi|js|jsx|ts|tsx|mjs|go|rs|c|h|cc|cpp|hpp|cs|java|kt|rb|php|swift|scala|sh|sql
    |md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|lock|csv|html|css|scss|vue|proto|ipynb|xml|log
    |env|tf|lua|zig|exs?|hs|ml|bats|pkl))(?::\d+)?)
    |(?P<NAME>[A-Z]{2,5}\d{2,6}|(?:[\w]+(?:\.|::|->))*(?:[A-Za-z]\w*_\w+|_\w{4,}|[a-z]+\d*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)
    (?:(?:\.|::|->)\w+)*)""",
    re.ASCII | re.VERBOSE,
)
MAX_BLOCK_CHARS, _MAX_OLD_BLOCK_CHARS = 4_000, 1_000
"""Characters searched at both ends of a block, and of a block in the older half."""
_MAX_NAME_CHARS = 60
"""A longer name is encoded data."""
_MAX_FACTS = 400
_CARRIED = 5
# How much a fact's kind adds to its likelihood (see `_rank_words`).
_KIND_BIAS = {
    FactKind.ERROR: 0.2,
    FactKind.URL: 0.0,
    FactKind.COMMIT: -0.2,
    FactKind.PATH: 0.2,
    FactKind.NUMBER: -0.5,
    FactKind.FLAG: 0.2,
    FactKind.NAME: 0.0,
}
# Every model knows these, however often they occur.
_COMMON_NAMES = parse_names(
    "GitHub JavaScript TypeScript PostgreSQL MySQL SQLite OpenAI README.md package.json "
    "and/or TodoWrite true/false yes/no he/she input/output read/write client/server",
)


def rank_facts(
    items: Iterable[Item],
    earlier_facts: Mapping[str, int],
    memo: Memo,
    wanted_stems: frozenset[str] = frozenset(),
) -> list[SummaryFact]:
    """Return the facts in blocks, best first; `earlier_facts` are those of an earlier summary.

    A fact that occurs once counts only if the user or the agent wrote it. `wanted_stems` are the
    beginnings of words of interest.
    """
    items = tuple(items)
    find_kind = memo.cache_words(find_fact_kind)
    skipped = _COMMON_NAMES.union(
        item.block.name for item in items if isinstance(item.block, ToolCall)
    )
    likely = [
        (value, text, newest, sort)
        for value, text, newest in _rank_words(items, earlier_facts, memo)
        if text not in skipped and (sort := find_kind(text))
    ]
    if len(likely) > _MAX_FACTS:
        likely = nlargest(_MAX_FACTS, likely)
    ranked: list[tuple[float, int, str, SummaryFact]] = []
    for value, text, newest, sort in likely:
        wish = 1.0 if wanted_stems and _is_wanted(text, wanted_stems) else 0.0
        fact = SummaryFact(text, sort, exp(value + _KIND_BIAS[sort] + wish), newest)
        ranked.append((-fact.density, -newest, text, fact))
    return [fact for *_, fact in sorted(ranked)]


def _is_wanted(text: str, wished: frozenset[str]) -> bool:
    folded = text.casefold()
    return any(stem in folded for stem in wished)


def find_fact_kind(word: str) -> FactKind | None:
    """Return the kind of fact that a word is, or None."""
    found = _KIND_PATTERN.fullmatch(word)
    sort = FactKind[found.lastgroup or ""] if found else None
    return None if sort is FactKind.NAME and len(word) > _MAX_NAME_CHARS else sort


def find_fact_words(text: str) -> list[str]:
    """Return the words of a text that may be facts."""
    return list(filter(None, _WORD.findall(text)))


def _find_in_block(block: AnyBlock, longest: int, memo: Memo) -> tuple[str, ...]:
    """Return a block's words that are facts; the others need not be counted."""
    words = find_fact_words(get_searched_text(block, longest))
    return tuple(filter(memo.cache_words(find_fact_kind), words))


def _rank_words(
    items: tuple[Item, ...], carried: Mapping[str, int], memo: Memo
) -> Iterator[tuple[float, str, int]]:
    """Yield the logarithm of each word's likelihood up to a constant, the word, and its last place.

    Frequent, recent and long-lived words count more, and most of all those that the agent or the
    user wrote. All are counted in bulk.
    """
    half = items[len(items) // 2].position if items else 0
    ends = items[-1].position if items else 0
    length = ends - items[0].position + 1 if items else 1
    # Facts carried by an earlier summary were in blocks that have left.
    times = Counter(dict.fromkeys(carried, _CARRIED))
    own, by_user = Counter[str](), Counter[str]()
    places: list[dict[str, int]] = []
    for item in items:
        longest = MAX_BLOCK_CHARS if item.position >= half else _MAX_OLD_BLOCK_CHARS
        words = memo.read(_find_in_block, item.block, longest, memo)
        times.update(words)
        if item.kind in ASSISTANT_KINDS:
            own.update(words)
        elif item.kind is Kind.USER:
            by_user.update(words)
        places.append(dict.fromkeys(words, item.position))
    last, first = dict(carried), dict[str, int]()
    for place in places:
        last.update(place)
    for place in [*reversed(places), dict(carried)]:
        first.update(place)
    recency = {place: exp(-4 * max(0, ends - place) / length) for place in {*last.values()}}
    repeated = {text for text, count in times.items() if count > 1}
    for text in repeated.union(own, by_user):
        newest = last[text]
        span = min(1.0, (newest - first[text]) / length)
        value = 0.45 * log(times[text]) + 1.2 * recency[newest] + 0.7 * span
        if text in own:
            value += 0.5 + 0.4 * log(own[text]) + 0.8 * recency[newest]
        if text in by_user:
            value += 0.9
        yield value, text, newest


def get_searched_text(block: AnyBlock, longest: int) -> str:
    """Return a block's text, or both ends of a long one; a call's values have no JSON escapes."""
    if isinstance(block, ToolResult) and block.text.startswith(("{", "[{")):
        return ""  # machine-readable output; the agent repeats what matters
    text = (
        "\n".join(iter_strings(read_arguments(block)))
        if isinstance(block, ToolCall)
        else block.text
    )
    if len(text) > 2 * longest:
        return f"{text[:longest]}\n{text[-longest:]}"
    return text
