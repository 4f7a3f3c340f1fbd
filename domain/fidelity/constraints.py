"""Finds the sentences in which users stated rules, and their words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..summaries.findings import remove_inserted_text
from .plain_words import PlainWords
from .rows import RowKind, SessionRows

_SURVIVAL_SHARE = 0.8
"""The share of a sentence's plain words that must remain."""

_CONSTRAINT = re.compile(
    r"""\b(?:
        must | mustn['\u2019]t | should | shouldn['\u2019]t | do\ not | don['\u2019]?t | cannot
        | can['\u2019]t | never | always | only | please | avoid | ensure | make\ sure | without
        | instead | require[ds]? | at\ least | at\ most | no\ more | not\ allowed | forbidden
        | prefer | keep | important
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?])\s+|\n+")
_MAX_SENTENCE_CHARS = 600
"""A longer text without an end is pasted, not a sentence."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A user's sentence that states a rule."""

    text: str
    words: frozenset[str]
    indices: tuple[int, ...]
    """The rows that contain it, ascending."""

    def is_kept_in(self, words: frozenset[str]) -> bool:
        return len(self.words & words) >= _SURVIVAL_SHARE * len(self.words)


def find_constraints(rows: SessionRows, plain: PlainWords) -> tuple[Constraint, ...]:
    """Return each distinct sentence once, in the order of first occurrence."""
    said: dict[str, list[int]] = {}
    for index, row in enumerate(rows.rows):
        if row.kind is RowKind.USER:
            for sentence in _split_sentences(remove_inserted_text(row.text)):
                said.setdefault(sentence, []).append(index)
    return tuple(
        Constraint(sentence, words, tuple(dict.fromkeys(indices)))
        for sentence, indices in said.items()
        if (words := plain.collect_words(sentence))
    )


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        if len(sentence) <= _MAX_SENTENCE_CHARS and _CONSTRAINT.search(sentence):
            yield " ".join(sentence.split())
