"""Checks session names and block positions as callers pass them."""

from collections.abc import Iterable

from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges


def collect_positions(positions: Iterable[int | Ranges]) -> Ranges:
    """Return all positions passed singly or in ranges. Raises InvalidPositionError if none."""
    wanted = Ranges()
    for position in positions:
        if isinstance(position, Ranges):
            wanted |= position
        elif position < 1:
            raise InvalidPositionError(f"positions begin at 1, not {position}")
        else:
            wanted |= Ranges.of([position])
    if not wanted:
        raise InvalidPositionError("no positions were given")
    return wanted


def check_name(what: str, name: str) -> None:
    """Raise InvalidPositionError, naming `what`, if it cannot be a key or namespace."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidPositionError(f"{what} {name!r} is not valid Unicode") from None
    if not name or "\0" in name:
        raise InvalidPositionError(f"{what} {name!r} must have characters, and no NUL among them")
