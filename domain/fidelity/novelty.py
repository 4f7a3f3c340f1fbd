"""What summaries carry, and what of it stands nowhere in history: suspected inventions."""

import re

from .sight import Sight

_HANDLE = re.compile(r"#(\d{1,15})\Z")


def novel(sight: Sight) -> tuple[str, ...]:
    """The facts of a summary that no row had that lay below the spell's first call.

    A position of the log, as summaries name for recalling it, is an address and no fact.
    """
    spell, reading = sight.spell, sight.reading
    if not spell.summary:
        return ()
    below = reading.seen_by(spell.call)
    newest = reading.rows.rows[below - 1].position if below else 0
    places = reading.places
    return tuple(
        sorted(
            key
            for key in sight.summary.facts
            if (key not in places or places[key][0] >= below) and not _is_handle(key, newest)
        )
    )


def _is_handle(key: str, newest: int) -> bool:
    handle = _HANDLE.match(key)
    return handle is not None and 1 <= int(handle[1]) <= newest
