"""Patterns mean the same under every Python that runs them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
POSSESSIVE_GROUP = re.compile(r"\)[?*+]\+")
SOURCES = sorted(
    path for part in ("domain", "projections", "adapters") for path in (ROOT / part).rglob("*.py")
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_group_is_repeated_possessively(source: Path) -> None:
    """Before 3.11.5 Python goes back into such a group: an atomic group says the same rightly."""
    text = source.read_text("utf-8")

    assert not POSSESSIVE_GROUP.search(text)
