"""Builds one batch of rows for the session index, digest, context meter and ledger."""

import re
from typing import cast
from uuid import UUID

from sqlite_utils import Database

from ....domain.aggregate import load_state
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session import SessionState, derive_session_id
from ....domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    ContextOverflowed,
    ModelCalled,
    ParentNamed,
    SessionOpened,
    SessionTitled,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    ToolsSet,
)
from ....domain.source_time import parse_source_time
from ....projections.read_models.session_row import SessionRow, SessionRowSettings
from ....projections.read_models.timestamps import format_timestamp
from ..event_log.event_mapper import load_json
from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from .context_batch import ContextBatch, ContextReader, may_be_unsent
from .digest_batch import DigestBatch
from .ledger_batch import LINEAGE_TOPICS, LedgerBatch
from .row_batch import RowBatch
from .touched_streams import TouchedSession, TouchedStreams

FULLY_READ_TOPICS = {
    event.TOPIC
    for event in (
        SessionOpened,
        SessionTitled,
        ParentNamed,
        SystemPromptSet,
        ToolsSet,
        ToolCalled,
        ToolCallAbandoned,
        BlocksRetracted,
        ModelCalled,
        ContextOverflowed,
    )
}
"""The events whose content is needed; for others, a few fields suffice."""

_BLOCK_TOPICS = {event.TOPIC for event in (BlockAppended, ToolCalled, ToolReturned)}

_SOURCE_TIME = re.compile(rb'"origin":\{"format":"[^"]*",(?:"id":"[^"]*",)?"time":"([^"\\]+)"')
_OWN_TIME = re.compile(rb'\{"timestamp":"([^"\\]+)"')


class IndexBatch:
    def __init__(
        self, store: EventStore, db: Database, settings: SessionRowSettings, contexts: ContextReader
    ) -> None:
        self.store = store
        self.settings = settings
        self.rows = RowBatch(db)
        self.streams = TouchedStreams(self.rows)
        self.ledger = LedgerBatch(self.rows, self.streams)
        self.digest = DigestBatch(self.rows, store.mapper)
        self.meter = ContextBatch(store, self.rows, settings, contexts)

    def add_event(self, row: LogNotification) -> None:
        stream = cast(UUID, row.originator_id)
        if row.topic in LINEAGE_TOPICS:
            self.ledger.add_event(row.id, self.store.mapper.to_domain_event(row))
        elif row.topic == SessionOpened.TOPIC:
            self._open(row, cast(SessionOpened, self.store.mapper.to_domain_event(row)))
        # Streams of a kind that only a later version of cutbank knows are ignored.
        elif touched := self.streams.find_session(stream):
            self._apply(touched, row)

    def write(self) -> None:
        """Store the rows, sessions first, since the others refer to them."""
        for touched in self.streams.sessions:
            self._finish_session(touched)
        unmeasured = self.ledger.list_unmeasured()
        self.rows.write([touched.row.columns for touched in self.streams.sessions])
        self.ledger.measure(self.store, unmeasured)

    def _open(self, row: LogNotification, event: SessionOpened) -> None:
        opened = SessionRow.from_opened_event(row.id, event)
        touched = self.streams.open_session(event.originator_id, opened)
        self._note_event(touched, row)
        if event.fork:
            parent = self.streams.find_session(
                derive_session_id(event.fork.namespace, event.fork.key)
            )
            opened.forked_from_id = parent.row.id if parent else None
            self._inherit(opened, load_state(SessionState, load_json(row.carried)))
        self._set_parent(opened)
        # Sub-agents may have been imported before their parent session.
        self.rows.change(
            "UPDATE sessions SET parent_id = ?"
            " WHERE parent_namespace = ? AND parent_key = ? AND parent_id IS NULL",
            (opened.id, opened.namespace, opened.key),
        )

    def _inherit(self, fork: SessionRow, state: SessionState) -> None:
        """Set a fork's title and parent if they were set before the fork."""
        said = Ranges.of(filter(None, (state.titled, state.parented)))
        chain = self.store.find_session_chain(fork.namespace, fork.key)
        for recorded in self.store.read(chain, said):
            fork.apply(recorded.event, 0)

    def _set_parent(self, row: SessionRow) -> None:
        if row.parent_namespace and row.parent_key:
            parent = self.streams.find_session(
                derive_session_id(row.parent_namespace, row.parent_key)
            )
            row.parent_id = parent.row.id if parent else None

    def _apply(self, touched: TouchedSession, row: LogNotification) -> None:
        plaintext = self._note_event(touched, row)
        if row.topic in FULLY_READ_TOPICS or may_be_unsent(row, plaintext):
            event = self.store.mapper.to_domain_event(row)
            grown = touched.row.apply(event, row.tokens)
            self._apply_content(touched, row, event)
        else:
            grown = touched.row.grow(row.tokens)
            if touched.row.first_prompt is None and _is_prompt(row, plaintext):
                event = cast(BlockAppended, self.store.mapper.to_domain_event(row))
                touched.row.record_prompt(event.block.text)
            if row.topic == ToolReturned.TOPIC:
                self.digest.add_answer(touched, row, plaintext)
        if row.tokens:
            touched.growth.append((row.originator_version, grown))

    def _note_event(self, touched: TouchedSession, row: LogNotification) -> bytes:
        plaintext = self.store.mapper.read_plaintext(row)
        touched.newest = row
        touched.row.reset_attempts()
        if row.topic in _BLOCK_TOPICS and (said := _find_said_time(plaintext)):
            touched.last_said_at = said
        touched.first = touched.first or row.originator_version
        touched.row.bytes += len(plaintext)
        if b'"bodies":' in plaintext:
            bodies = self.store.mapper.read_bodies(row)
            touched.row.bytes += sum(len(content) for _, content in bodies)
        return plaintext

    def _apply_content(self, touched: TouchedSession, row: LogNotification, event: Event) -> None:
        position = row.originator_version
        match event:
            case ToolCalled(block=block, turn=turn) | BlockAppended(block=block, turn=turn):
                self.digest.add_block(touched, position, turn, block)
            case ToolCallAbandoned(call=call):
                self.digest.end_call(touched, call, "abandoned")
            case BlocksRetracted(positions=positions, reopened=reopened):
                self.digest.retract(touched, positions)
                for call in reopened.values():
                    self.digest.end_call(touched, call, None)
            case ParentNamed():
                self._set_parent(touched.row)
            case ModelCalled():
                self.meter.add_call(touched, row.id, event)
            case ContextOverflowed(message=message, model=model):
                self.rows.add(
                    "context_overflows",
                    id=row.id,
                    session_id=touched.row.id,
                    position=position,
                    model=model,
                    message=message,
                    recorded_at=format_timestamp(event.timestamp),
                )
            case _:
                pass

    def _finish_session(self, touched: TouchedSession) -> None:
        row = touched.row
        if touched.newest is not None:
            event = self.store.mapper.to_domain_event(touched.newest)
            state = load_state(SessionState, load_json(touched.newest.carried))
            row.apply_newest(event, state)
        if touched.last_said_at and (time := parse_source_time(touched.last_said_at)):
            row.said_at = format_timestamp(time)
        self.meter.measure_view(row, row.position)
        self.meter.update_use(row)
        self.meter.update_limit(row)
        row.measure(self.settings)


def _is_prompt(row: LogNotification, plaintext: bytes) -> bool:
    return row.topic == BlockAppended.TOPIC and b'"kind":"user"' in plaintext


def _find_said_time(plaintext: bytes) -> str | None:
    """Return the time of a block, from its source or the log; None if its source has none."""
    pattern = _SOURCE_TIME if b'"origin":' in plaintext else _OWN_TIME
    found = pattern.search(plaintext)
    return found[1].decode() if found else None
