"""Checks stored content against its keyed hashes."""

from collections.abc import Iterator

from .event_store import EventStore
from .keyed_hash import matches_keyed_hash
from .stored_row import StoredRow


def find_row_problems(store: EventStore, row: StoredRow) -> Iterator[str]:
    secret = store.recorder.subject(row.subject)[1]
    try:
        plaintext = store.mapper.read_plaintext(row)
    except Exception as error:  # noqa: BLE001 - damaged bytes may fail in any way
        yield f"cannot be decompressed: {error}"
        return
    if not matches_keyed_hash(row.digest, plaintext, secret):
        yield "its content was changed"
    for digest, content in store.mapper.read_bodies(row):
        if not matches_keyed_hash(digest, content, secret):
            yield "a body of it was changed"
