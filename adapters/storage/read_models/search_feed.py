"""Feeds full-text search with all text, at its own pace behind the index."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlite_utils import Database

from ....domain.compaction_events import Summary
from ....projections.read_models.searchable_text import (
    SEARCHABLE_EVENTS,
    make_excerpt,
    read_searchable_text,
)
from ....projections.read_models.timestamps import find_event_time, format_timestamp
from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification

_TEXT_TOPICS = {event.TOPIC for event in SEARCHABLE_EVENTS}
_BATCH_CHARACTERS = 4_000_000
"""The approximate text indexed in one transaction."""
INSERT_WORDS = "INSERT INTO blocks_fts (rowid, excerpt, session_id) VALUES (?, ?, ?)"


class SearchFeed:
    """Writes a row for each block, and its whole text to the index."""

    name = "search"
    page = 2_000

    def __init__(self, store: EventStore) -> None:
        self.store = store

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        blocks: list[dict[str, Any]] = []
        words: list[tuple[int, str, str]] = []
        owners: dict[UUID | str, tuple[int, int | None]] = {}
        characters = taken = 0
        for row in events:
            taken += 1
            if row.topic not in _TEXT_TOPICS:
                continue
            event = self.store.mapper.to_domain_event(row)
            said = read_searchable_text(event)
            assert said is not None, "its topic is among those that say something"
            if row.originator_id not in owners:
                owners[row.originator_id] = _find_owner(db, row)
            session, lineage = owners[row.originator_id]
            is_summary = isinstance(event, Summary)
            blocks.append(
                {
                    "id": row.id,
                    "session_id": session,
                    "position": None if is_summary else row.originator_version,
                    "turn": said.turn,
                    "kind": said.kind,
                    "name": said.name,
                    "lineage_id": lineage,
                    "boundary": event.boundary if isinstance(event, Summary) else None,
                    "tokens": event.tokens if isinstance(event, Summary) else row.tokens,
                    "said_at": format_timestamp(find_event_time(event)),
                    "excerpt": make_excerpt(said.text),
                }
            )
            words.append((row.id, said.text, make_session_word(session)))
            characters += len(said.text)
            if characters >= _BATCH_CHARACTERS:
                break
        db.table("blocks").insert_all(blocks)
        db.conn.executemany(INSERT_WORDS, words)
        return taken


def make_session_word(session: int) -> str:
    """Return the artificial word that finds a session's blocks in the index."""
    return f"sessionnumber{session}"


def _find_owner(db: Database, row: LogNotification) -> tuple[int, int | None]:
    """Return the session of an event, and for a summary the lineage."""
    stream = str(row.originator_id)
    if row.topic == Summary.TOPIC:
        query = "SELECT session_id, id FROM lineages WHERE stream = ?"
    else:
        query = "SELECT id, NULL FROM sessions WHERE stream = ?"
    found: tuple[int, int | None] | None = db.conn.execute(query, (stream,)).fetchone()
    assert found is not None, "the index is ahead, and knows every stream"
    return found
