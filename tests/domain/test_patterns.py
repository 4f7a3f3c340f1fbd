"""Patterns mean the same under every Python that runs them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
POSSESSIVE_GROUP = re.compile(r"\)[?*+]\+")


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 backtracks into such a group; an atomic group works everywhere."""
    sources = [
        path
        for part in ("domain", "projections", "adapters")
        for path in (ROOT / part).rglob("*.py")
    ]

    assert sources
    assert not [path for path in sources if POSSESSIVE_GROUP.search(path.read_text("utf-8"))]
