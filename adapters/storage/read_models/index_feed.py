"""Feeds the session index, the digest, the context meter and the compaction ledger."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import cast
from uuid import UUID

from sqlite_utils import Database

from ....domain.blocks import AnyBlock, Kind, ToolCall
from ....domain.compaction import MAIN_LINEAGE
from ....domain.digest import SHELL_TOOLS, find_touched_files, normalize_tool_name, read_arguments
from ....domain.event import Event, load_state
from ....domain.ranges import Ranges
from ....domain.session import SessionState, derive_session_id
from ....domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    ModelCalled,
    ParentNamed,
    SessionOpened,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....domain.summaries.commands import get_command
from ....projections.read_models.session_row import SessionRow
from ....projections.read_models.timestamps import (
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

_MAX_DIGEST_CHARACTERS = 1_000
"""The longest command or path in the digest."""


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
            self.file.read_settings(),
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
                event = read(row)
                _note_event(batch, touched, row, event)
                touched.row.apply(event, row.tokens)
                _apply_event(batch, touched, row, event)
        for touched in batch.sessions:
            _finish_session(batch, touched)
        batch.write_sessions()
        measure_boundaries(batch)
        return len(events)


def _open_session(batch: RowBatch, row: LogNotification, event: SessionOpened) -> None:
    opened = SessionRow.from_opened_event(row.id, event)
    touched = batch.open_session(event.originator_id, opened)
    _note_event(batch, touched, row, event)
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


def _note_event(
    batch: RowBatch, touched: TouchedSession, row: LogNotification, event: Event
) -> None:
    touched.newest = row, event
    touched.row.position = event.originator_version
    touched.row.reset_attempts()
    block = get_event_block(event)
    if block is not None and (block.origin is None or block.origin.time):
        touched.newest_block = event
    plaintext = batch.store.mapper.read_plaintext(row)
    touched.row.bytes += len(plaintext)
    if b'"bodies":' in plaintext:
        touched.row.bytes += sum(len(body) for _, body in batch.store.mapper.read_bodies(row))


def _finish_session(batch: RowBatch, touched: TouchedSession) -> None:
    if touched.newest is not None:
        row, event = touched.newest
        touched.row.apply_newest(event, load_state(SessionState, load_json(row.carried)))
    if touched.newest_block is not None:
        touched.row.said_at = format_timestamp(find_event_time(touched.newest_block))
    measure_session(batch, touched.row)
    touched.row.measure(batch.settings)


def _apply_event(
    batch: RowBatch, touched: TouchedSession, row: LogNotification, event: Event
) -> None:
    session, position = touched.row.id, event.originator_version
    match event:
        case ToolCalled(block=block, turn=turn) | BlockAppended(block=block, turn=turn):
            for kind, what in _list_touched(block):
                batch.add(
                    "digest_entries",
                    session_id=session,
                    position=position,
                    turn=turn,
                    kind=kind,
                    what=what[:_MAX_DIGEST_CHARACTERS],
                    tool=block.name if isinstance(block, ToolCall) else None,
                    retracted=0,
                )
        case ToolReturned(call=call, block=block):
            _end_call(batch, session, call, "error" if block.is_error else "ok")
        case ToolCallAbandoned(call=call):
            _end_call(batch, session, call, "abandoned")
        case BlocksRetracted(positions=positions, reopened=reopened):
            for first, last in positions.runs:
                batch.execute(
                    "UPDATE digest_entries SET retracted = 1"
                    " WHERE session_id = ? AND position BETWEEN ? AND ?",
                    session,
                    first,
                    last,
                )
            for call in reopened.values():
                _end_call(batch, session, call, None)
        case ParentNamed():
            _set_parent(batch, touched.row)
        case ModelCalled():
            add_call(batch, touched.row, row.id, event)
        case _:
            pass


def _end_call(batch: RowBatch, session: int, call: int, outcome: str | None) -> None:
    # A fork's answer to its parent's call finds no entry, and does not change the parent's.
    batch.execute(
        "UPDATE digest_entries SET outcome = ? WHERE session_id = ? AND position = ?",
        outcome,
        session,
        call,
    )


def _list_touched(block: AnyBlock) -> Iterator[tuple[str, str]]:
    """Yield what a block touched: `read` or `modified` files, a `command`, or an `artifact`."""
    if isinstance(block, ToolCall):
        touch = find_touched_files(block)
        kind = "modified" if touch.modifies else "read"
        yield from ((kind, path) for path in dict.fromkeys(touch.paths))
        if normalize_tool_name(block.name) in SHELL_TOOLS and (
            command := get_command(read_arguments(block))
        ):
            yield "command", command
    elif block.kind is Kind.ARTIFACT:
        yield "artifact", getattr(block, "name", None) or "unnamed"
