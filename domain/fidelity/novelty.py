"""What summaries carry, and what of it stands nowhere in history: suspected inventions."""

from collections.abc import Iterable

from .session_reading import SessionReading

_MAX_HANDLE_CHARS = 16
"""Characters, more than any log has positions for."""


def find_novel_facts(facts: Iterable[str], reading: SessionReading, call: int) -> tuple[str, ...]:
    """Those of the facts that no row had that lay below a call.

    A position of the log, as summaries name for recalling it, is an address and no fact.
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
