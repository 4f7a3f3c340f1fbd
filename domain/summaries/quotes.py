"""Writes and finds a summary's quotes of the user: `- User: "..." (#7)`."""

import re
from collections.abc import Iterable, Iterator

from .clean_text import fold_lines, split_handles

# Words between the name and the colon still attribute it: `User, later: "..."`.
_ATTRIBUTED = re.compile(
    r"[-+•.\d\s*_`'\"“>(\[)]*(?:the\s+)?(?:user|human)\b[^:\"“”]{0,60}:[\s*_]*[\"“](.*)",
    re.IGNORECASE,
)
_QUOTED_LINE = re.compile(r">+\s?(.*)")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_USER_HEADING = re.compile(r"\b(?:goal|constraints?|preferences?|requests?)\b", re.IGNORECASE)
_OMISSION = re.compile(r"…|\.\.\.")
_PIECES = re.compile(r"\"([^\"]+)\"")
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")


def write_quote(words: str) -> str:
    """Return a user's words as a line of a summary."""
    return f'User: "{words}"'


def find_quote(line: str) -> str | None:
    """Return the words that a summary line attributes to the user, or None."""
    if '"' not in line and "“" not in line:
        return None  # as in most lines; a search would take longer
    found = _ATTRIBUTED.match(line.strip())
    if found is None:
        return None
    words = split_handles(found[1])[0].rstrip()
    return words[:-1] if words.endswith(('"', "”")) else words


def iter_quotes(text: str) -> Iterator[str]:
    """Yield all words that a summary attributes to the user.

    These are attributed quotes anywhere, and `> ` lines under the headings of goal and constraints.
    """
    is_users_own = False
    for line in map(str.strip, text.split("\n")):
        if line.startswith("#") and (heading := _HEADING.match(line)):
            is_users_own = bool(_USER_HEADING.search(heading[1]))
        elif (words := find_quote(line)) is not None:
            yield words
        elif is_users_own and (found := _QUOTED_LINE.match(line)):
            yield split_handles(found[1])[0]


def normalize_quotes(text: str) -> str:
    """Return a text as quotes are searched in it: one line, with straight quotation marks."""
    return fold_lines(text).translate(_STRAIGHT)


def list_comparable_texts(text: str) -> tuple[str, ...]:
    """Return the forms of a text to search for quotes: without terminal codes, and with them.

    A quote may begin or end inside a code, and then its characters are the user's too.
    """
    if "\x1b" not in text:
        return (normalize_quotes(text),)
    return normalize_quotes(text), normalize_quotes(text.replace("\x1b", ""))


def is_quote_in(quote: str, texts: Iterable[str]) -> bool:
    """Check whether the words are in one of the texts, in order, except for omissions.

    A line with several quotes may take them from several texts; the words between quotes are not
    the user's.

    Args:
        quote: The words attributed to the user.
        texts: The user's texts, as `list_comparable_texts` returns them.
    """
    known = tuple(texts)
    return any(_is_taken_from(form, known) for form in list_comparable_texts(quote))


def _is_taken_from(quote: str, texts: tuple[str, ...]) -> bool:
    pieces = _PIECES.findall(f'"{quote}"')
    return _is_quote_in_one(quote, texts) or (
        bool(pieces) and all(_is_quote_in_one(piece, texts) for piece in pieces)
    )


def _is_quote_in_one(quote: str, texts: tuple[str, ...]) -> bool:
    parts = [part.strip() for part in _OMISSION.split(quote)]
    return any(_has_in_order(parts, text) for text in texts)


def _has_in_order(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True
