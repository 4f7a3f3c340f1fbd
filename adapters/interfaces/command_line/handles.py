"""Reads handles as people write them: `12`, `#12`, `3-9,12`, `last`, `last-3`, `5..last`."""

import re
from collections.abc import Callable, Iterable

from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges

Newest = Callable[[int], int]
"""The position of the newest block, or of the one that many blocks before it."""

_NUMBER = r"#?[0-9]{1,15}"
_POINT = re.compile(rf"(?P<number>{_NUMBER})|last(?:-(?P<back>[0-9]{{1,9}}))?", re.IGNORECASE)
_DASHED = re.compile(rf"(?P<first>{_NUMBER})-(?P<last>{_NUMBER})")
_BETWEEN = re.compile(r"[\s,]+")


def parsed(words: Iterable[str], newest: Newest) -> Ranges:
    """The positions that words name; `newest` is asked only where a word says `last`.

    A range is written `3-9`, or `3..9` where one of its ends is `last`: in `last-3` the dash counts
    back. Whatever cutbank prints of handles is read again.
    """
    named = Ranges()
    for word in words:
        for part in filter(None, _BETWEEN.split(word)):
            named |= _range(part, newest)
    if not named:
        raise InvalidPositionError("no handle was given: write 12, 3-9 or last")
    return named


def position(word: str, newest: Newest) -> int:
    """The one position that a word names."""
    found = _POINT.fullmatch(word.strip())
    if found is None:
        raise InvalidPositionError(f"{word!r} is no handle: write 12, '#12', last or last-3")
    if found["number"]:
        return _positive(found["number"])
    return newest(int(found["back"] or 0))


def _range(part: str, newest: Newest) -> Ranges:
    if dashed := _DASHED.fullmatch(part):
        first, last = _positive(dashed["first"]), _positive(dashed["last"])
    elif ".." in part:
        first, last = (position(end, newest) for end in part.split("..", maxsplit=1))
    else:
        first = last = position(part, newest)
    if first > last:
        raise InvalidPositionError(f"{part!r} ends before it begins: write {last}-{first}")
    return Ranges.span(first, last)


def _positive(number: str) -> int:
    found = int(number.removeprefix("#"))
    if found < 1:
        raise InvalidPositionError("handles begin at #1")
    return found
