"""Full-text search over everything ever said, hidden, retracted or compacted away or not."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....domain.errors import StorageError
from ....domain.record import LARGEST
from ....projections.read_models.said import said_in
from ....projections.read_models.search_query import Query, Term
from ....projections.read_models.snippet import Snippet, snippet
from ..event_log.event_store import EventStore
from .read_file import ReadFile
from .search_feed import session_word

RANKED = 2_000
"""Matches of a word up to which all that is found is ranked; beyond it the newest come first."""

HITS = (
    "SELECT blocks.id, sessions.namespace, sessions.key, blocks.position, blocks.turn,"
    " blocks.kind, blocks.name, lineages.name, blocks.boundary, blocks.tokens, blocks.said_at"
    " FROM blocks_fts CROSS JOIN blocks ON blocks.id = blocks_fts.rowid"
    " CROSS JOIN sessions ON sessions.id = blocks.session_id"
    " LEFT JOIN lineages ON lineages.id = blocks.lineage_id"
    " WHERE blocks_fts MATCH ?"
)
RANK = " ORDER BY bm25(blocks_fts, 1.0, 0.0), blocks_fts.rowid DESC LIMIT ?"
NEWEST_FIRST = " ORDER BY blocks_fts.rowid DESC LIMIT ?"
COUNT = "SELECT count(*) FROM (SELECT 1 FROM blocks_fts WHERE blocks_fts MATCH ? LIMIT ?)"


@dataclass(frozen=True, slots=True)
class Found:
    """One block, or one summary, that holds what was searched for."""

    notification: int
    namespace: str
    session: str
    position: int | None
    """None of a summary, which stands in a lineage."""
    turn: int | None
    kind: str
    name: str | None
    lineage: str | None
    """Of a summary: where it was decided, and its boundary."""
    boundary: int | None
    tokens: int
    said_at: datetime
    snippet: Snippet

    @property
    def handle(self) -> str | None:
        return None if self.position is None else f"#{self.position}"


@dataclass(frozen=True, slots=True)
class Part:
    """A session, or what a fork shares of one: its positions up to `last`."""

    session: int
    last: int | None = None


class Search:
    """Finds in the index, and shows the words as the log has them."""

    def __init__(self, store: EventStore, file: ReadFile) -> None:
        self.store = store
        self.file = file

    def find(
        self, query: Query, *, parts: tuple[Part, ...] = (), namespace: str | None, limit: int
    ) -> list[Found]:
        """Those that hold all that is wanted: the best first, or the newest of very many."""
        expression = f"{{excerpt}} : {query.expression}"
        order = RANK if self._is_rare(query) else NEWEST_FIRST
        if parts and order is NEWEST_FIRST:
            # The index itself finds a session's blocks: one of few among very many.
            words = " OR ".join(session_word(part.session) for part in parts)
            expression += f" AND {{session_id}} : ({words})"
        where, parameters = _within(parts, namespace)
        found = self.file.rows(HITS + where + order, (expression, *parameters, min(limit, LARGEST)))
        return [self._shown(row, query) for row in found]

    def parts_of(self, streams: list[tuple[str, int | None]]) -> tuple[Part, ...]:
        """The sessions of these streams, each up to a position."""
        query = "SELECT id FROM sessions WHERE stream = ?"
        found = [(self.file.rows(query, (stream,)), last) for stream, last in streams]
        return tuple(Part(rows[0][0], last) for rows, last in found if rows)

    def _is_rare(self, query: Query) -> bool:
        return all(self._count(term) <= RANKED for term in query.wanted)

    def _count(self, term: Term) -> int:
        if term.is_beginning:
            return RANKED + 1  # to count them is to find them all
        expression = f"{{excerpt}} : {term.expression}"
        return int(self.file.rows(COUNT, (expression, RANKED + 1))[0][0])

    def _shown(self, row: tuple[Any, ...], query: Query) -> Found:
        number, namespace, key, position, turn, kind, name, lineage, boundary, tokens, said = row
        return Found(
            notification=number,
            namespace=namespace,
            session=key,
            position=position,
            turn=turn,
            kind=kind,
            name=name,
            lineage=lineage,
            boundary=boundary,
            tokens=tokens,
            said_at=datetime.fromisoformat(said),
            snippet=snippet(self._text(number), query),
        )

    def _text(self, number: int) -> str:
        events = self.store.recorder.select_notifications(number, 1)
        if not events or events[0].id != number:
            raise StorageError(f"event {number} of the log is gone: run `cutbank rebuild`")
        said = said_in(self.store.mapper.to_domain_event(events[0]))
        return said.text if said else ""


def _within(parts: tuple[Part, ...], namespace: str | None) -> tuple[str, list[str | int]]:
    where = ""
    parameters: list[str | int] = []
    if namespace is not None:
        where += " AND sessions.namespace = ?"
        parameters.append(namespace)
    if parts:
        either = []
        for part in parts:
            if part.last is None:
                either.append("blocks.session_id = ?")
                parameters.append(part.session)
            else:
                # Of a parent's summaries none is the fork's own.
                either.append("(blocks.session_id = ? AND blocks.position <= ?)")
                parameters += [part.session, part.last]
        where += f" AND ({' OR '.join(either)})"
    return where, parameters
