"""Fixtures for transcripts in the making."""

from pathlib import Path

import pytest
from claude_code_talk import SESSION, Reading, Talk, Tell, reading_of


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Writes a talk, or any bytes, to a file, and reads it."""

    def tell(told: Talk | bytes, name: str = f"{SESSION}.jsonl") -> Reading:
        return reading_of(tmp_path / name, told if isinstance(told, bytes) else told.raw())

    return tell


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"
