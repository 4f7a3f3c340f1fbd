"""What tests of faults share: how an error has to read, and what was said."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutbank import StoredSession
from cutbank.domain.errors import StorageError


@contextmanager
def one_line(*words: str) -> Iterator[None]:
    """What is refused is refused as a StorageError of one line that says these words."""
    with pytest.raises(StorageError) as raised:
        yield
    message = str(raised.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def texts(session: StoredSession) -> list[str]:
    """All that was ever said, in order of position."""
    return [block.block.text for block in session.recall(search="")]


@contextmanager
def closing(path: Path) -> Iterator[sqlite3.Connection]:
    """The file behind the store's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()
