"""One way to say that a prompt is too long."""

import re
from dataclasses import dataclass

_NUMBER = r"[\d,]+"


@dataclass(frozen=True, slots=True)
class OverflowWording:
    """A sentence, by its pattern; the pattern may name the groups `tokens` and `limit`."""

    name: str
    pattern: re.Pattern[str]
    provider: str | None = None
    """Who alone says it so."""


def make_wording(name: str, pattern: str, provider: str | None = None) -> OverflowWording:
    """`<tokens>` and `<limit>` stand for the numbers of those names, `<n>` for any other."""
    for group in ("tokens", "limit"):
        pattern = pattern.replace(f"<{group}>", f"(?P<{group}>{_NUMBER})")
    return OverflowWording(
        name, re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE), provider
    )
