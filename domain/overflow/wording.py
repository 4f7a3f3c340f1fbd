"""One way to say that a prompt is too long."""

import re
from dataclasses import dataclass

N = r"[\d,]+"


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence, by its pattern; the pattern may name the groups `tokens` and `limit`."""

    name: str
    pattern: re.Pattern[str]
    provider: str | None = None
    """Who alone says it so."""


def wording(name: str, pattern: str, provider: str | None = None) -> Wording:
    """`<tokens>` and `<limit>` stand for the numbers of those names, `<n>` for any other."""
    for group in ("tokens", "limit"):
        pattern = pattern.replace(f"<{group}>", f"(?P<{group}>{N})")
    return Wording(name, re.compile(pattern.replace("<n>", N), re.IGNORECASE), provider)
