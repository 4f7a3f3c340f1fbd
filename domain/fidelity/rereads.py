"""Which calls read a file again, whose reading they could no longer see."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .files import FileTouch


class FileAgain(NamedTuple):
    """A call that reads a file again, and where it was read last before."""

    call: int
    key: str
    newest: int
    """Position of the newest call below this one that read it."""


def files_again(
    touches: Sequence[FileTouch], newest_below: Callable[[int], int]
) -> tuple[FileAgain, ...]:
    """In the order of the calls; `newest_below` is the newest position that lay below a call."""
    places: dict[str, list[int]] = {}
    again: list[FileAgain] = []
    for touch in touches:
        if touch.modifies:
            continue
        newest = newest_below(touch.call)
        known = places.setdefault(touch.key, [])
        if before := [at for at in known if at <= newest]:
            again.append(FileAgain(touch.call, touch.key, before[-1]))
        known.append(touch.position)
    return tuple(sorted(again))
