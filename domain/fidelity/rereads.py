"""Finds calls that read a file again although an earlier call had read it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .file_touches import FileTouch


class RepeatedRead(NamedTuple):
    """A call that reads a file again, and where it was last read before."""

    call: int
    key: str
    newest: int
    """Position of the newest earlier call that read it."""


def find_repeated_reads(
    touches: Sequence[FileTouch], newest_below: Callable[[int], int]
) -> tuple[RepeatedRead, ...]:
    """Return repeated reads by call; `newest_below` gives the newest position before a call."""
    places: dict[str, list[int]] = {}
    again: list[RepeatedRead] = []
    for touch in touches:
        if touch.modifies:
            continue
        newest = newest_below(touch.call)
        known = places.setdefault(touch.key, [])
        if before := [at for at in known if at <= newest]:
            again.append(RepeatedRead(touch.call, touch.key, before[-1]))
        known.append(touch.position)
    return tuple(sorted(again))
