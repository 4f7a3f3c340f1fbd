"""Removes deleted sessions from the read models; what forks share becomes theirs."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from ....domain.errors import NotFoundError
from ....projections.search_texts import read_searchable_text
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow
from .row_batch import RowBatch

_RUN_EVENTS = 500
_REMOVE_WORDS = (
    "INSERT INTO blocks_fts (blocks_fts, rowid, excerpt, session_id) VALUES ('delete', ?, ?, ?)"
)
_LINEAGES = "(SELECT id FROM lineages WHERE session_id = ?)"
_CHILD_ROWS = (
    "DELETE FROM compactions WHERE session_id = ?",
    f"DELETE FROM compaction_requests WHERE lineage_id IN {_LINEAGES}",  # noqa: S608 - ours
    f"UPDATE lineages SET base_id = NULL WHERE base_id IN {_LINEAGES}",  # noqa: S608 - as above
    "DELETE FROM blocks WHERE session_id = ?",
    "DELETE FROM lineages WHERE session_id = ?",
    "DELETE FROM model_calls WHERE session_id = ?",
    "UPDATE sessions SET parent_id = NULL WHERE parent_id = ?",
    "UPDATE sessions SET forked_from_id = NULL WHERE forked_from_id = ?",
    "DELETE FROM inherited WHERE session_id = ?",
    "DELETE FROM sessions WHERE id = ?",
)


class ErasedTextError(Exception):
    """The words of a session cannot be taken out of the index, as their text is gone."""


def remove_session(batch: RowBatch, stream: UUID) -> None:
    """Remove a session that was deleted, with all that is known of it.

    The blocks that a fork shares go to that fork, the one that shares most. Raises ErasedTextError
    if the log has no more what the index holds.
    """
    touched = batch.find_session(stream)
    if touched is None:
        return
    number = touched.row.id
    _bequeath_blocks(batch, number, str(stream))
    batch.drop_session(stream)
    _remove_words(batch, number)
    copied = batch.execute(
        "UPDATE model_calls SET copy_of = NULL WHERE copy_of IN"
        " (SELECT id FROM model_calls WHERE session_id = ?) RETURNING id",
        number,
    )
    for statement in _CHILD_ROWS:
        batch.execute(statement, number)
    batch.copied_calls += sorted(id for (id,) in copied)


def _bequeath_blocks(batch: RowBatch, number: int, stream: str) -> None:
    """Give the blocks that forks share to these, by their streams."""
    owned = [(stream, number)]
    owned += batch.execute("SELECT stream, number FROM inherited WHERE session_id = ?", number)
    for shared, words in owned:
        heirs = sorted(_find_heirs(batch, UUID(shared)), reverse=True)
        for last, first, heir in heirs[:1]:
            batch.execute(
                "UPDATE blocks SET session_id = ?"
                " WHERE session_id = ? AND position BETWEEN ? AND ?",
                heir,
                number,
                first,
                last,
            )
            batch.execute(
                "INSERT OR REPLACE INTO inherited (stream, number, session_id, last)"
                " VALUES (?, ?, ?, ?)",
                shared,
                words,
                heir,
                last,
            )


def _find_heirs(batch: RowBatch, stream: UUID) -> Iterator[tuple[int, int, int]]:
    """Yield the last and first position that each fork shares of a stream, and its session."""
    for touched in batch.list_forks():
        row = touched.row
        try:
            chain = batch.store.find_session_chain(row.namespace, row.key)
        except NotFoundError:
            continue  # it was deleted since
        if str(chain.segments[-1].originator_id) == row.stream:
            for segment in chain.segments[:-1]:
                if segment.originator_id == stream and segment.last:
                    yield segment.last, segment.first, row.id


def _remove_words(batch: RowBatch, number: int) -> None:
    """Take the words of a session's remaining blocks out of the index."""
    words = dict(
        batch.execute(
            "SELECT blocks.id, coalesce(inherited.number, blocks.session_id) FROM blocks"
            " LEFT JOIN inherited ON inherited.session_id = blocks.session_id"
            " AND blocks.position <= inherited.last WHERE blocks.session_id = ?",
            number,
        )
    )
    gone: list[tuple[int, str, str]] = []
    for row in _read_events(batch.store, sorted(words)):
        if row.is_erased:
            raise ErasedTextError
        said = read_searchable_text(batch.store.mapper.to_domain_event(row))
        if said is not None:
            gone.append((row.id, said.text, make_session_word(words[row.id])))
        if len(gone) == _RUN_EVENTS:
            batch.execute_many(_REMOVE_WORDS, gone)
            gone.clear()
    batch.execute_many(_REMOVE_WORDS, gone)


def _read_events(store: EventStore, ids: Sequence[int]) -> Iterator[StoredRow]:
    """Yield the events of these notifications, in order, and read those of a run together."""
    at = 0
    while at < len(ids):
        end = at + 1
        while end < len(ids) and ids[end] == ids[end - 1] + 1 and end - at < _RUN_EVENTS:
            end += 1
        yield from store.recorder.read_log(ids[at] - 1, ids[end - 1], end - at, ())
        at = end


def make_session_word(session: int) -> str:
    """Return the artificial word that finds a session's blocks in the index."""
    return f"sessionnumber{session}"
