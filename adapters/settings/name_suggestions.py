"""Suggests the nearest known name for an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return by_folded[near[0]] if near else None


def describe_unknown_name(name: str, known: Iterable[str], thing: str) -> str:
    """Return e.g. `is no policy; did you mean reserve-headroom?`, without repeating the name."""
    known = list(known)
    near = find_nearest(name, known)
    meant = f"did you mean {near}?" if near else f"there is {', '.join(known) or 'none'}"
    return f"is no {thing}; {meant}"
