"""Parses handles as people write them: `12`, `#12`, `3-9,12`, `last`, `last-3`, `5..last`."""

import re
from collections.abc import Callable, Iterable

from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges

FindNewest = Callable[[int], int]
"""Returns the position of the newest block, or of the one that many blocks before it."""

_NUMBER = r"#?[0-9]{1,15}"
_POINT = re.compile(rf"(?P<number>{_NUMBER})|last(?:-(?P<back>[0-9]{{1,9}}))?", re.IGNORECASE)
_RANGE = re.compile(rf"(?P<first>{_NUMBER})-(?P<last>{_NUMBER})")
_SEPARATOR = re.compile(r"[\s,]+")


def parse_handles(words: Iterable[str], newest: FindNewest) -> Ranges:
    """Return the positions that words name; `newest` is only called for `last`.

    A range is written `3-9`, or `3..9` if one end is `last`: in `last-3` the dash counts back. All
    handles that cutbank prints are accepted.
    """
    named = Ranges()
    for word in words:
        for part in filter(None, _SEPARATOR.split(word)):
            named |= _parse_range(part, newest)
    if not named:
        raise InvalidPositionError("no handle was given: write 12, 3-9 or last")
    return named


def parse_handle(word: str, newest: FindNewest) -> int:
    """Return the one position that a word names."""
    found = _POINT.fullmatch(word.strip())
    if found is None:
        raise InvalidPositionError(f"{word!r} is no handle: write 12, '#12', last or last-3")
    if found["number"]:
        return _parse_positive(found["number"])
    return newest(int(found["back"] or 0))


def _parse_range(part: str, newest: FindNewest) -> Ranges:
    if dashed := _RANGE.fullmatch(part):
        first, last = _parse_positive(dashed["first"]), _parse_positive(dashed["last"])
    elif ".." in part:
        first, last = (parse_handle(end, newest) for end in part.split("..", maxsplit=1))
    else:
        first = last = parse_handle(part, newest)
    if first > last:
        raise InvalidPositionError(f"{part!r} ends before it begins: write {last}-{first}")
    return Ranges.span(first, last)


def _parse_positive(number: str) -> int:
    found = int(number.removeprefix("#"))
    if found < 1:
        raise InvalidPositionError("handles begin at #1")
    return found
