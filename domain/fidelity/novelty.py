"""Finds facts in summaries that occur nowhere in history: suspected inventions."""

from collections.abc import Iterable

from .session_reading import SessionReading

_MAX_HANDLE_CHARS = 16
"""No log has positions of so many digits."""


def find_novel_facts(facts: Iterable[str], reading: SessionReading, call: int) -> tuple[str, ...]:
    """Return the facts that no row before a call contains.

    A handle, which names a position of the log, is not a fact.
    """
    below = reading.count_rows_seen(call)
    newest = reading.positions[below - 1] if below else 0
    first = reading.first_places.get
    new = [key for key in facts if first(key, below) >= below]
    return tuple(sorted(key for key in new if not _is_handle(key, newest)))


def _is_handle(key: str, newest: int) -> bool:
    if key[0] != "#" or len(key) > _MAX_HANDLE_CHARS:
        return False
    number = key[1:]
    return number.isdecimal() and 1 <= int(number) <= newest
