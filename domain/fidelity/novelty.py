"""What summaries carry, and what of it stands nowhere in history: suspected inventions."""

from .sight import Sight

_LONGEST_HANDLE = 16


def novel(sight: Sight) -> tuple[str, ...]:
    """The facts of a summary that no row had that lay below the spell's first call.

    A position of the log, as summaries name for recalling it, is an address and no fact.
    """
    spell, reading = sight.spell, sight.reading
    if not spell.summary:
        return ()
    below = reading.seen_by(spell.call)
    newest = reading.rows.rows[below - 1].position if below else 0
    first = reading.first_places.get
    new = [key for key in sight.summary.facts if first(key, below) >= below]
    return tuple(sorted(key for key in new if not _is_handle(key, newest)))


def _is_handle(key: str, newest: int) -> bool:
    if key[0] != "#" or len(key) > _LONGEST_HANDLE:
        return False
    number = key[1:]
    return number.isdecimal() and 1 <= int(number) <= newest
