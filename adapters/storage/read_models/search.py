"""Indexes and searches the text of all blocks and summaries, hidden and retracted ones too."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlite_utils import Database

from ....domain.compaction_events import Summary
from ....domain.errors import StorageError
from ....domain.event import MAX_COUNT
from ....projections.search_texts import (
    SEARCHABLE_EVENTS,
    SearchQuery,
    Snippet,
    make_excerpt,
    make_snippet,
    read_searchable_text,
)
from ....projections.timestamps import find_event_time, format_timestamp
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow
from .deleted_sessions import make_session_word
from .read_model_file import ReadModelDatabase

_TEXT_TOPICS = {event.TOPIC for event in SEARCHABLE_EVENTS}
_BATCH_CHARACTERS = 4_000_000
"""The approximate text indexed in one transaction."""
_INSERT_BLOCKS = (
    "INSERT INTO blocks (id, session_id, position, turn, kind, name, lineage_id, boundary, tokens,"
    " said_at, excerpt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_WORDS = "INSERT INTO blocks_fts (rowid, excerpt, session_id) VALUES (?, ?, ?)"
MAX_RANKED = 2_000
"""The most matches that are ranked; with more, the newest come first."""

_HITS_QUERY = (
    "SELECT blocks.id, sessions.namespace, sessions.key, blocks.position, blocks.turn,"
    " blocks.kind, blocks.name, lineages.name, blocks.boundary, blocks.tokens, blocks.said_at"
    " FROM blocks_fts CROSS JOIN blocks ON blocks.id = blocks_fts.rowid"
    " CROSS JOIN sessions ON sessions.id = blocks.session_id"
    " LEFT JOIN lineages ON lineages.id = blocks.lineage_id"
    " WHERE blocks_fts MATCH ?"
)
"""The fields of SearchHit, but for its snippet."""
_RANK_ORDER = " ORDER BY bm25(blocks_fts, 1.0, 0.0), blocks_fts.rowid DESC LIMIT ?"
_NEWEST_ORDER = " ORDER BY blocks_fts.rowid DESC LIMIT ?"
_OWNER_QUERY = (
    "SELECT id, id FROM sessions WHERE stream = ?"
    " UNION ALL SELECT session_id, number FROM inherited WHERE stream = ?"
)
"""A session, and the number in the artificial word of its blocks."""
_COUNT_QUERY = "SELECT count(*) FROM (SELECT 1 FROM blocks_fts WHERE blocks_fts MATCH ? LIMIT ?)"


@dataclass(frozen=True, slots=True)
class SearchHit:
    notification: int
    namespace: str
    session: str
    position: int | None
    """None for a summary, which belongs to a lineage."""
    turn: int | None
    kind: str
    name: str | None
    lineage: str | None
    """For a summary, its lineage and its boundary."""
    boundary: int | None
    tokens: int
    said_at: datetime
    snippet: Snippet

    @property
    def handle(self) -> str | None:
        return None if self.position is None else f"#{self.position}"


def find_blocks(
    store: EventStore,
    file: ReadModelDatabase,
    query: SearchQuery,
    *,
    streams: Sequence[tuple[str, int | None]],
    namespace: str | None,
    limit: int,
) -> list[SearchHit]:
    """Return the matches, best first, or newest first if there are very many.

    `streams` restrict the search to these sessions, each up to a position.
    """
    parts = [
        (session, number, last)
        for stream, last in streams
        for session, number in file.fetch_rows(_OWNER_QUERY, (stream, stream))
    ]
    expression: Any = f"{{excerpt}} : {query.expression}"
    order = _RANK_ORDER if _is_rare(file, query) else _NEWEST_ORDER
    if parts and order is _NEWEST_ORDER:
        # The index itself restricts the search to a session, fast even for frequent words.
        words = " OR ".join(make_session_word(number) for _, number, _ in parts)
        expression += f" AND {{session_id}} : ({words})"
    query_text, parameters = _HITS_QUERY, [expression]
    if namespace is not None:
        query_text += " AND sessions.namespace = ?"
        parameters.append(namespace)
    if parts:
        # A parent's summaries, which have no position, are not the fork's own.
        ends = ["" if last is None else " AND blocks.position <= ?" for *_, last in parts]
        query_text += f" AND ({' OR '.join(f'blocks.session_id = ?{end}' for end in ends)})"
        bounds = [(session, last) for session, _, last in parts]
        parameters += [value for bound in bounds for value in bound if value is not None]
    found = file.fetch_rows(query_text + order, (*parameters, min(limit, MAX_COUNT)))
    return [_make_hit(store, row, query) for row in found]


def _make_hit(store: EventStore, row: tuple[Any, ...], query: SearchQuery) -> SearchHit:
    *values, said_at = row
    values += [datetime.fromisoformat(said_at), make_snippet(_read_text(store, row[0]), query)]
    return SearchHit(*values)


def _is_rare(file: ReadModelDatabase, query: SearchQuery) -> bool:
    for term in query.required_terms:
        if term.is_prefix:
            return False  # counting them would mean finding them all
        expression = f"{{excerpt}} : {term.expression}"
        if file.fetch_rows(_COUNT_QUERY, (expression, MAX_RANKED + 1))[0][0] > MAX_RANKED:
            return False
    return True


def _read_text(store: EventStore, number: int) -> str:
    events = store.recorder.select_notifications(number, 1)
    if not events or events[0].id != number:
        raise StorageError(f"event {number} of the log is gone: run `cutbank rebuild`")
    said = read_searchable_text(store.mapper.to_domain_event(events[0]))
    return said.text if said else ""


class SearchFeed:
    """Writes a row for each block, and its whole text to the index."""

    name = "search"
    page = 2_000

    def __init__(self, store: EventStore) -> None:
        self.store = store

    def apply(self, db: Database, events: Sequence[StoredRow]) -> int:
        blocks: list[tuple[Any, ...]] = []
        words: list[tuple[int, str, str]] = []
        owners: dict[UUID | str, _Owner | None] = {}
        characters = taken = 0
        for row in events:
            taken += 1
            if row.topic not in _TEXT_TOPICS or row.is_erased:
                continue
            if row.originator_id not in owners:
                owners[row.originator_id] = _find_owner(db, row)
            owner = owners[row.originator_id]
            if owner is None or (owner.last and row.originator_version > owner.last):
                continue  # it was deleted
            event = self.store.mapper.to_domain_event(row)
            said = read_searchable_text(event)
            assert said is not None, "its topic is among those that say something"
            summary = event if isinstance(event, Summary) else None
            position = None if summary else row.originator_version
            boundary, tokens = (summary.boundary, summary.tokens) if summary else (None, row.tokens)
            said_at, excerpt = format_timestamp(find_event_time(event)), make_excerpt(said.text)
            place = (row.id, owner.session, position, said.turn, said.kind, said.name)
            blocks.append((*place, owner.lineage, boundary, tokens, said_at, excerpt))
            words.append((row.id, said.text, make_session_word(owner.number)))
            characters += len(said.text)
            if characters >= _BATCH_CHARACTERS:
                break
        db.conn.executemany(_INSERT_BLOCKS, blocks)
        db.conn.executemany(_INSERT_WORDS, words)
        return taken


class _Owner(NamedTuple):
    """The session of a stream, and for summaries the lineage."""

    session: int
    number: int
    """The one in the artificial word of its blocks."""
    lineage: int | None = None
    last: int | None = None
    """The last block that it has of the stream, if that was of a deleted session."""


def _find_owner(db: Database, row: StoredRow) -> _Owner | None:
    """Return whose an event is; None if its session was deleted, and no fork shares it."""
    stream = str(row.originator_id)
    if row.topic == Summary.TOPIC:
        query = "SELECT session_id, session_id, id, NULL FROM lineages WHERE stream = ?"
    else:
        query = "SELECT id, id, NULL, NULL FROM sessions WHERE stream = ?"
        query += " UNION ALL SELECT session_id, number, NULL, last FROM inherited WHERE stream = ?1"
    found = db.execute(query, (stream,)).fetchone()
    return _Owner(*found) if found else None
