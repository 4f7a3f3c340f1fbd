"""Takes requests and rules from a user's messages."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from ...blocks import Kind
from ...item import Item
from ...ranges import Ranges
from .clean_text import ELLIPSIS, make_printable, tidy_line
from .prose import is_constraint, split_sentences
from .sections import SummaryLine, SummarySection

LOW_WEIGHT = 0.1
"""The weight of a message that is hardly a request."""
# Tags of text that common agent programs insert into a user's message.
_INSERTED_TAGS = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_MAX_TEXT_CHARS = 40_000
"""The middle of a longer message is not a request."""
_GLANCE = 500
_MAX_RULES = 12


def iter_requests(items: Iterable[Item]) -> Iterator[SummaryLine]:
    """Yield what the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not Kind.USER:
            continue
        said = remove_inserted_text(item.block.text)
        words = tidy_line(said)
        if not words.strip(ELLIPSIS + " ") or _BRACKETED.fullmatch(words):
            continue
        # A line next to inserted text comes from the program as well.
        if len(said) > 0.2 * min(len(item.block.text), _GLANCE):
            weight = LOW_WEIGHT if _is_small_talk(words) else 0.5
            yield _make_quote(SummarySection.GOAL, words, item.position, weight)


def iter_rules(items: Iterable[Item], goals: Iterable[SummaryLine]) -> Iterator[SummaryLine]:
    """Yield the sentences in which the user stated rules, also from quoted goals."""
    for item in items:
        if item.kind is Kind.USER:
            said = remove_inserted_text(item.block.text)
            # A long text was pasted, so its rules need not be the user's.
            yield from _iter_rules_in(said, item.position, 0.75 if len(said) < 4_000 else 0.45)
    for line in goals:
        if line.is_quote:
            yield from _iter_rules_in(line.text, line.newest, 0.6)


def _iter_rules_in(said: str, position: int, weight: float) -> Iterator[SummaryLine]:
    found = (s.text for s in split_sentences(said) if is_constraint(s.text) and len(s.text) < 600)
    for text in islice(found, _MAX_RULES):
        words = tidy_line(text).strip(f"{ELLIPSIS} ")
        if words and ELLIPSIS not in words and not words.endswith(":"):
            asked = 0.3 if words.endswith("?") else 0.0
            yield _make_quote(SummarySection.CONSTRAINTS, words, position, weight - asked)


@lru_cache(maxsize=1_024)
def remove_inserted_text(text: str) -> str:
    """Return a user's message without the text that a program inserted."""
    text = make_printable(text)
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[: _MAX_TEXT_CHARS // 2]} {ELLIPSIS} {text[-_MAX_TEXT_CHARS // 2 :]}"
    return _cut_inserted_text(text).strip(f"{ELLIPSIS} \t\r\n")


def _cut_inserted_text(text: str) -> str:
    said: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _INSERTED_TAGS.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        said.append(text[at : tag.start()])
        at = end + len(closing)
    return f" {ELLIPSIS} ".join([*said, text[at:]])


def _is_small_talk(words: str) -> bool:
    return words.isascii() and len(words) < 30 and words.count(" ") < 4


def _make_quote(section: SummarySection, words: str, position: int, weight: float) -> SummaryLine:
    return SummaryLine(section, words, Ranges.of([position]), weight, is_quote=True)
