"""Feeds the session index, the context meter and the compaction ledger."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import cast

from sqlite_utils import Database

from ....domain.compaction import MAIN_LINEAGE
from ....domain.context_limit import LoggedContext
from ....domain.errors import NotFoundError
from ....domain.event import load_state, parse_source_time
from ....domain.ranges import Ranges
from ....domain.session import SessionState, derive_session_id
from ....domain.session_events import (
    RECORD_TOPICS,
    ModelCalled,
    ParentNamed,
    SessionDeleted,
    SessionOpened,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    Usage,
)
from ....domain.token_estimate import estimate_text
from ....projections.session_row import SessionRow, compute_utilization, name_level
from ....projections.timestamps import (
    BLOCK_EVENTS,
    find_event_time,
    format_timestamp,
    get_event_block,
)
from ...models.model_catalog import PriceLookup
from ..earlier_calls import read_logged_context
from ..event_log.event_mapper import load_json
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow
from ..view_reader import ViewReader
from .compaction_ledger import LINEAGE_TOPICS, add_decision, measure_boundaries
from .deleted_sessions import remove_session
from .row_batch import ResolveLimit, RowBatch, TouchedSession, copy_fields

_GROWING_TOPICS = {event.TOPIC for event in (ToolCalled, ToolReturned, ToolCallAbandoned)}
"""Events that only make a session larger, by tokens that are stored with them; never parsed."""
_BLOCK_TOPICS = {event.TOPIC for event in BLOCK_EVENTS}

_PRICE_COLUMNS = ("input_usd", "cached_usd", "cache_write_usd", "output_usd")
_MARK_COPIES = """
    UPDATE model_calls SET copy_of = (
        SELECT min(other.id) FROM model_calls AS other
        WHERE other.call_id = model_calls.call_id AND other.session_id <> model_calls.session_id
            AND other.id < model_calls.id AND other.copy_of IS NULL
            AND other.fingerprint IS NULL AND other.model IS model_calls.model
            AND other.input_tokens IS model_calls.input_tokens
            AND other.cached_tokens IS model_calls.cached_tokens
            AND other.cache_write_tokens IS model_calls.cache_write_tokens
    ) WHERE id = ? AND prompt_tokens IS NOT NULL
"""
"""Files of resumed or forked agents repeat the calls of the file that they continue."""


class IndexFeed:
    """Feeds all that needs no large text, writing a session's row once per batch."""

    name = "index"
    page = 2_000

    def __init__(self, store: EventStore, limit_of: ResolveLimit) -> None:
        self.store = store
        self._limit_of = limit_of
        self._prices = PriceLookup()
        # The last one is cached, as events come in runs.
        self._open_reader = lru_cache(maxsize=1)(partial(ViewReader, store, lineage=MAIN_LINEAGE))

    def apply(self, db: Database, events: Sequence[StoredRow]) -> int:
        batch = RowBatch(self.store, db)
        read = self.store.mapper.to_domain_event
        for row in events:
            if row.is_erased:
                continue
            if row.topic == SessionDeleted.TOPIC:
                remove_session(batch, row.originator_id)
                self._open_reader.cache_clear()
            elif row.topic in LINEAGE_TOPICS:
                add_decision(batch, row.id, read(row))
            elif row.topic == SessionOpened.TOPIC:
                _open_session(batch, row, cast(SessionOpened, read(row)))
            # Streams of a kind that only a later version of cutbank knows are ignored.
            elif touched := batch.find_session(row.originator_id):
                _note_row(batch, touched, row)
                if row.topic in RECORD_TOPICS:
                    continue
                if row.topic in _GROWING_TOPICS:
                    touched.row.grow(row.tokens)
                    continue
                event = read(row)
                touched.row.apply(event, row.tokens)
                if isinstance(event, ModelCalled):
                    self._add_call(batch, touched.row, row.id, event)
                elif isinstance(event, ParentNamed):
                    _set_parent(batch, touched.row)
        for touched in batch.sessions:
            self._finish_session(touched)
        batch.write_sessions()
        for call in batch.copied_calls:
            batch.execute(_MARK_COPIES, call)
        measure_boundaries(batch)
        return len(events)

    def _finish_session(self, touched: TouchedSession) -> None:
        read = self.store.mapper.to_domain_event
        if (newest := touched.newest) is not None:
            state = load_state(SessionState, load_json(newest.carried))
            touched.row.apply_newest(read(newest), state)
        for event in map(read, reversed(touched.blocks)):
            block = get_event_block(event)
            if block is not None and (block.origin is None or block.origin.time):
                touched.row.said_at = format_timestamp(find_event_time(event))
                break
        try:
            self._measure_session(touched.row)
        except NotFoundError:  # it was deleted, as a later batch will say
            touched.row.view_tokens = touched.row.view_tokens or 0
            self._open_reader.cache_clear()
        touched.row.utilisation = compute_utilization(touched.row.in_use, touched.row.context_limit)

    def _add_call(
        self, batch: RowBatch, session: SessionRow, number: int, call: ModelCalled
    ) -> None:
        usage = call.usage or Usage()
        prompt = usage.context
        called_at = (call.source_time and parse_source_time(call.source_time)) or call.timestamp
        logged = LoggedContext(call.model, call.context_window, prompt or 0)
        limit = self._limit_of(logged).tokens
        share = compute_utilization(prompt, limit) if prompt is not None else None
        prices = self._prices.price_call(call.model, call.usage, called_at)
        session.has_calls = 1
        session.model = call.model or session.model
        batch.execute(
            "UPDATE model_calls SET repeated = 1 WHERE session_id = ? AND call_id = ? AND id < ?",
            session.id,
            call.call_id,
            number,
        )
        batch.add(
            "model_calls",
            id=number,
            session_id=session.id,
            position=call.originator_version,
            repeated=0,
            view_position=call.position,
            prompt_tokens=prompt,
            cached_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            cache_write_1h_tokens=usage.cache_write_1h,
            input_tokens=usage.input,
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            utilisation=share,
            level=name_level(share) if share is not None else None,
            called_at=format_timestamp(called_at),
            **copy_fields(call, "call_id model lineage lineage_version renderer fingerprint"),
            **copy_fields(call, "cost_usd latency_s stop_reason"),
            **dict(zip(_PRICE_COLUMNS, prices or (), strict=False)),
        )
        if session.source is not None:
            batch.execute(_MARK_COPIES, number)

    def _measure_session(self, row: SessionRow) -> None:
        """Measure a session's view, the context in use, and its limit.

        What is appended is counted; only a view that changed otherwise is read again.
        """
        reader = self._open_reader(row.namespace, row.key)
        if row.view_tokens is None:
            view = reader.read_view(row.position, row.served_version)
            row.view_tokens = view.tokens
            row.system_tokens = estimate_text(view.system_prompt or "")
            tools = view.tool_definitions
            row.tools_tokens = estimate_text(str(tools)) if tools else 0
        row.in_use, row.reported = row.view_tokens, None
        if not row.has_calls:
            return  # without reported usage, the estimate cannot improve
        use = reader.read_history()[0].measure_usage()
        row.in_use, row.reported = use.used_tokens, use.reported_tokens
        logged = read_logged_context(self.store, row.namespace, row.key, at=row.position)
        found = self._limit_of(logged)
        row.context_limit, row.limit_source = found.tokens, found.source.value


def _open_session(batch: RowBatch, row: StoredRow, event: SessionOpened) -> None:
    if batch.store.recorder.is_deleted(event.originator_id):
        return
    opened = SessionRow.from_opened_event(row.id, event)
    touched = batch.open_session(event.originator_id, opened)
    _note_row(batch, touched, row)
    if event.fork:
        fork = event.fork
        parent = derive_session_id(fork.namespace, fork.key, fork.generation)
        found = batch.find_session(parent)
        opened.forked_from_id = found.row.id if found else None
        # A fork's title and parent may have been set before the fork.
        state = load_state(SessionState, load_json(row.carried))
        inherited = Ranges.of(filter(None, (state.titled, state.parented)))
        chain = batch.store.find_session_chain(opened.namespace, opened.key, event.generation)
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
        parent = batch.find_named_session(row.parent_namespace, row.parent_key)
        row.parent_id = parent.row.id if parent else None


def _note_row(batch: RowBatch, touched: TouchedSession, row: StoredRow) -> None:
    touched.row.position = row.originator_version
    if row.topic not in RECORD_TOPICS:
        touched.newest = row
        touched.row.reset_attempts()
    if row.topic in _BLOCK_TOPICS:
        touched.blocks.append(row)
    plaintext = batch.store.mapper.read_plaintext(row)
    touched.row.bytes += len(plaintext)
    if b'"bodies":' in plaintext:
        touched.row.bytes += sum(len(body) for _, body in batch.store.mapper.read_bodies(row))
