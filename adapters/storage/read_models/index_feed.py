"""Feeds the session index, the context meter and the compaction ledger."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import cast
from uuid import UUID

from sqlite_utils import Database

from ....domain.compaction import MAIN_LINEAGE
from ....domain.event import load_state
from ....domain.ranges import Ranges
from ....domain.session import SessionState, derive_session_id
from ....domain.session_events import (
    ModelCalled,
    ParentNamed,
    SessionOpened,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....projections.read_models.session_row import SessionRow, compute_utilization
from ....projections.read_models.timestamps import (
    BLOCK_EVENTS,
    find_event_time,
    format_timestamp,
    get_event_block,
)
from ...models.model_catalog import PriceLookup
from ..event_log.event_mapper import load_json
from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from ..view_reader import ViewReader
from .compaction_ledger import LINEAGE_TOPICS, add_decision, measure_boundaries
from .model_calls import add_call, measure_session
from .read_model_file import ReadModelDatabase
from .row_batch import ResolveLimit, RowBatch, TouchedSession

_GROWING_TOPICS = {event.TOPIC for event in (ToolCalled, ToolReturned, ToolCallAbandoned)}
"""Events that only make a session larger, by tokens that are stored with them; never parsed."""
_BLOCK_TOPICS = {event.TOPIC for event in BLOCK_EVENTS}


class IndexFeed:
    """Feeds all that needs no large text, writing a session's row once per batch."""

    name = "index"
    page = 2_000

    def __init__(self, store: EventStore, file: ReadModelDatabase, limit_of: ResolveLimit) -> None:
        self.store = store
        self.file = file
        self._limit_of = limit_of
        self._prices = PriceLookup()
        self._open_reader = lru_cache(maxsize=1)(partial(ViewReader, store, lineage=MAIN_LINEAGE))

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        batch = RowBatch(
            self.store,
            db,
            limit_of=self._limit_of,
            open_reader=self._open_reader,
            prices=self._prices,
        )
        read = self.store.mapper.to_domain_event
        for row in events:
            if row.topic in LINEAGE_TOPICS:
                add_decision(batch, row.id, read(row))
            elif row.topic == SessionOpened.TOPIC:
                _open_session(batch, row, cast(SessionOpened, read(row)))
            # Streams of a kind that only a later version of cutbank knows are ignored.
            elif touched := batch.find_session(cast(UUID, row.originator_id)):
                _note_row(batch, touched, row)
                if row.topic in _GROWING_TOPICS:
                    touched.row.grow(row.tokens)
                    continue
                event = read(row)
                touched.row.apply(event, row.tokens)
                if isinstance(event, ModelCalled):
                    add_call(batch, touched.row, row.id, event)
                elif isinstance(event, ParentNamed):
                    _set_parent(batch, touched.row)
        for touched in batch.sessions:
            _finish_session(batch, touched)
        batch.write_sessions()
        measure_boundaries(batch)
        return len(events)


def _open_session(batch: RowBatch, row: LogNotification, event: SessionOpened) -> None:
    opened = SessionRow.from_opened_event(row.id, event)
    touched = batch.open_session(event.originator_id, opened)
    _note_row(batch, touched, row)
    if event.fork:
        opened.forked_from_id = _find_session_id(batch, event.fork.namespace, event.fork.key)
        # A fork's title and parent may have been set before the fork.
        state = load_state(SessionState, load_json(row.carried))
        inherited = Ranges.of(filter(None, (state.titled, state.parented)))
        chain = batch.store.find_session_chain(opened.namespace, opened.key)
        for recorded in batch.store.read(chain, inherited):
            opened.apply(recorded.event, 0)
    _set_parent(batch, opened)
    # Sub-agents may have been imported before their parent session.
    batch.execute(
        "UPDATE sessions SET parent_id = ?"
        " WHERE parent_namespace = ? AND parent_key = ? AND parent_id IS NULL",
        opened.id,
        opened.namespace,
        opened.key,
    )
    for other in batch.sessions:
        if (other.row.parent_namespace, other.row.parent_key) == (opened.namespace, opened.key):
            other.row.parent_id = opened.id


def _set_parent(batch: RowBatch, row: SessionRow) -> None:
    if row.parent_namespace and row.parent_key:
        row.parent_id = _find_session_id(batch, row.parent_namespace, row.parent_key)


def _find_session_id(batch: RowBatch, namespace: str, key: str) -> int | None:
    found = batch.find_session(derive_session_id(namespace, key))
    return found.row.id if found else None


def _note_row(batch: RowBatch, touched: TouchedSession, row: LogNotification) -> None:
    touched.newest = row
    touched.row.position = row.originator_version
    touched.row.reset_attempts()
    if row.topic in _BLOCK_TOPICS:
        touched.blocks.append(row)
    plaintext = batch.store.mapper.read_plaintext(row)
    touched.row.bytes += len(plaintext)
    if b'"bodies":' in plaintext:
        touched.row.bytes += sum(len(body) for _, body in batch.store.mapper.read_bodies(row))


def _finish_session(batch: RowBatch, touched: TouchedSession) -> None:
    read = batch.store.mapper.to_domain_event
    if (newest := touched.newest) is not None:
        state = load_state(SessionState, load_json(newest.carried))
        touched.row.apply_newest(read(newest), state)
    for event in map(read, reversed(touched.blocks)):
        block = get_event_block(event)
        if block is not None and (block.origin is None or block.origin.time):
            touched.row.said_at = format_timestamp(find_event_time(event))
            break
    measure_session(batch, touched.row)
    touched.row.utilisation = compute_utilization(touched.row.in_use, touched.row.context_limit)
