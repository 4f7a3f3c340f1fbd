"""Defines one wording of a refusal."""

import re
from dataclasses import dataclass

_NUMBER = r"[\d,]+"


@dataclass(frozen=True, slots=True)
class OverflowWording:
    """A sentence, as a pattern with the optional groups `tokens` and `limit`."""

    name: str
    pattern: re.Pattern[str]
    provider: str | None = None
    """The only provider that uses it, if there is one."""


def make_wording(name: str, pattern: str, provider: str | None = None) -> OverflowWording:
    """Return a wording; `<tokens>` and `<limit>` match numbers as groups, `<n>` any number."""
    for group in ("tokens", "limit"):
        pattern = pattern.replace(f"<{group}>", f"(?P<{group}>{_NUMBER})")
    return OverflowWording(
        name, re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE), provider
    )
