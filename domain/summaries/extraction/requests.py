"""Takes from a user's messages what is asked for, and the rules that it has to keep to."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from ...blocks import Kind
from ...item import Item
from ...ranges import Ranges
from .prose import is_constraint, sentences
from .sections import Line, Section
from .wording import ELLIPSIS, printable, tidied

WEAK = 0.1
"""What a request weighs that is hardly one."""
# What programs put into a person's message, by the names that the usual agents give it.
_INSERTED = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_LONGEST = 40_000
"""Characters of a message beyond which its middle is no request."""
_GLANCE = 500
_MOST_RULES = 12


def requests_of(items: Iterable[Item]) -> Iterator[Line]:
    """What the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not Kind.USER:
            continue
        said = said_by_user(item.block.text)
        words = tidied(said)
        if not words.strip(ELLIPSIS + " ") or _BRACKETED.fullmatch(words):
            continue
        # A line above or below what a program inserted is the program's too.
        if len(said) > 0.2 * min(len(item.block.text), _GLANCE):
            weight = WEAK if is_small_talk(words) else 0.5
            yield _quote(Section.GOAL, words, item.position, weight)


def rules_of(items: Iterable[Item], goals: Iterable[Line]) -> Iterator[Line]:
    """The sentences in which the user said how things must be; also those of quoted goals."""
    for item in items:
        if item.kind is Kind.USER:
            said = said_by_user(item.block.text)
            # A long text was pasted: what must be in it need not be the user's wish.
            yield from _rules(said, item.position, 0.75 if len(said) < 4_000 else 0.45)
    for line in goals:
        if line.is_quote:
            yield from _rules(line.text, line.newest, 0.6)


def _rules(said: str, position: int, weight: float) -> Iterator[Line]:
    found = (s.text for s in sentences(said) if is_constraint(s.text) and len(s.text) < 600)
    for text in islice(found, _MOST_RULES):
        words = tidied(text).strip(f"{ELLIPSIS} ")
        if words and ELLIPSIS not in words and not words.endswith(":"):
            asked = 0.3 if words.endswith("?") else 0.0
            yield _quote(Section.CONSTRAINTS, words, position, weight - asked)


@lru_cache(maxsize=1_024)
def said_by_user(text: str) -> str:
    """A user's message without what a program put into it."""
    text = printable(text)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} {ELLIPSIS} {text[-_LONGEST // 2 :]}"
    return _without_inserted(text).strip(f"{ELLIPSIS} \t\r\n")


def _without_inserted(text: str) -> str:
    said: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _INSERTED.finditer(text):
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


def is_small_talk(words: str) -> bool:
    """Whether a message says too little to be understood without what it answers."""
    return words.isascii() and len(words) < 30 and words.count(" ") < 4


def _quote(section: Section, words: str, position: int, weight: float) -> Line:
    return Line(section, words, Ranges.of([position]), weight, is_quote=True)
