"""Rows of a log that are made by hand, for tests of the storage itself."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from cutbank.adapters.storage.event_log.log_tables import StoredRow

ONE, TWO = UUID(int=1), UUID(int=2)
ODD = "\u00e9 \U0001f600 'quoted' \"twice\" % $1 ? \\ \t"
"""Text that SQL would misread if it were not passed as a parameter."""
Change = Callable[[str], None]


def row(stream: UUID, version: int, **fields: Any) -> StoredRow:
    """Return a row of which all that a test does not name is the same."""
    usual = {
        "topic": "a topic",
        "state": b"{}",
        "subject": "a subject",
        "key_id": None,
        "tokens": 0,
        "digest": b"a digest",
        "carried": b"{}",
    }
    return StoredRow(stream, version, **(usual | fields))
