"""Takes from a user's messages what is asked for, and the rules that it has to keep to."""

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
"""What a request weighs that is hardly one."""
# What programs put into a person's message, by the names that the usual agents give it.
_INSERTED_TAGS = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_MAX_TEXT_CHARS = 40_000
"""Characters of a message beyond which its middle is no request."""
_GLANCE = 500
_MAX_RULES = 12


def iter_requests(items: Iterable[Item]) -> Iterator[SummaryLine]:
    """What the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not Kind.USER:
            continue
        said = remove_inserted_text(item.block.text)
        words = tidy_line(said)
        if not words.strip(ELLIPSIS + " ") or _BRACKETED.fullmatch(words):
            continue
        # A line above or below what a program inserted is the program's too.
        if len(said) > 0.2 * min(len(item.block.text), _GLANCE):
            weight = LOW_WEIGHT if _is_small_talk(words) else 0.5
            yield _make_quote(SummarySection.GOAL, words, item.position, weight)


def iter_rules(items: Iterable[Item], goals: Iterable[SummaryLine]) -> Iterator[SummaryLine]:
    """The sentences in which the user said how things must be; also those of quoted goals."""
    for item in items:
        if item.kind is Kind.USER:
            said = remove_inserted_text(item.block.text)
            # A long text was pasted: what must be in it need not be the user's wish.
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
    """A user's message without what a program put into it."""
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
    """Whether a message says too little to be understood without what it answers."""
    return words.isascii() and len(words) < 30 and words.count(" ") < 4


def _make_quote(section: SummarySection, words: str, position: int, weight: float) -> SummaryLine:
    return SummaryLine(section, words, Ranges.of([position]), weight, is_quote=True)
