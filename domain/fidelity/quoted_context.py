"""Checks whether a text has a fact with its context in one quote of what it replaces."""

import re
from collections.abc import Iterable, Iterator

from .words import MIN_SHARED_WORDS, WordContexts

_MIN_QUOTE_WORDS = 4
"""A shorter quote says nothing: a list of labels next to facts would have its context too."""
_HANDLES = re.compile(r" \(#[\d, #-]+\)$")
_MARKS = "`\"'“”"
"""What a summary puts around a quote."""


def has_quoted_context(
    text: str,
    key: str,
    expected: frozenset[str],
    sources: Iterable[str],
    contexts: WordContexts,
) -> bool:
    """Check whether a line of a text quotes a fact with enough of the expected words around it.

    The quote is contiguous in one of the sources, apart from white space, and four words or longer.
    """
    folded = [" ".join(source.split()) for source in sources]
    lines = (_HANDLES.sub("", line).split() for line in text.split("\n") if key in line)
    return any(
        len(words & expected) >= MIN_SHARED_WORDS
        for line in lines
        for source in folded
        for quote in _iter_quotes(line, key, source)
        for words in contexts.list_nearby_words(quote, key)
    )


def _iter_quotes(line: list[str], key: str, source: str) -> Iterator[str]:
    """Yield the longest run of words around each occurrence of a key that the source has too."""
    for at, word in enumerate(line):
        if key not in word:
            continue
        quote = word if word in source else word.strip(_MARKS)
        if quote not in source:
            continue
        count = 1
        for template, words in (("{1} {0}", reversed(line[:at])), ("{0} {1}", line[at + 1 :])):
            for added in words:
                longer = (template.format(quote, form) for form in (added, added.strip(_MARKS)))
                found = next((one for one in longer if one.strip() == one and one in source), None)
                if found is None:
                    break
                quote, count = found, count + 1
        if count >= _MIN_QUOTE_WORDS:
            yield quote
