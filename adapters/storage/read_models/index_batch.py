"""One batch of events as rows of the session index, digest, context meter and ledger."""

import re
from typing import cast
from uuid import UUID

from sqlite_utils import Database

from ....domain.aggregate import restored
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session import SessionState, session_id
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
from ....domain.source_time import parsed
from ....projections.read_models.moments import moment
from ....projections.read_models.session_row import SessionRow, Settings
from ..event_log.event_mapper import loads
from ..event_log.event_store import EventStore
from ..event_log.recorder import LogNotification
from .digest_batch import DigestBatch
from .ledger_batch import OF_LINEAGES, LedgerBatch
from .meter import Contexts, Meter, may_be_unsent
from .rows import Rows
from .streams import Streams, Touched

READ_WHOLE = {
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
"""Events whose content the rows are made of; of others a glance is enough."""

SAYS = {event.TOPIC for event in (BlockAppended, ToolCalled, ToolReturned)}

_SOURCE_TIME = re.compile(rb'"origin":\{"format":"[^"]*",(?:"id":"[^"]*",)?"time":"([^"\\]+)"')
_OWN_TIME = re.compile(rb'\{"timestamp":"([^"\\]+)"')


class IndexBatch:
    """Folds events in the order of the log, and writes what came of them."""

    def __init__(
        self, store: EventStore, db: Database, settings: Settings, contexts: Contexts
    ) -> None:
        self.store = store
        self.settings = settings
        self.rows = Rows(db)
        self.streams = Streams(self.rows)
        self.ledger = LedgerBatch(self.rows, self.streams)
        self.digest = DigestBatch(self.rows, store.mapper)
        self.meter = Meter(store, self.rows, settings, contexts)

    def take(self, row: LogNotification) -> None:
        """Fold one event."""
        stream = cast(UUID, row.originator_id)
        if row.topic in OF_LINEAGES:
            self.ledger.take(row.id, self.store.mapper.to_domain_event(row))
        elif row.topic == SessionOpened.TOPIC:
            self._open(row, cast(SessionOpened, self.store.mapper.to_domain_event(row)))
        # What a later version of cutbank says in streams of its own is passed by.
        elif touched := self.streams.session(stream):
            self._take(touched, row)

    def write(self) -> None:
        """Store the rows, sessions first: the others refer to them."""
        for touched in self.streams.touched:
            self._settle(touched)
        unmeasured = self.ledger.unmeasured()
        self.rows.write([touched.row.columns for touched in self.streams.touched])
        self.ledger.measure(self.store, unmeasured)

    def _open(self, row: LogNotification, event: SessionOpened) -> None:
        opened = SessionRow.opened(row.id, event)
        touched = self.streams.open_session(event.originator_id, opened)
        self._note(touched, row)
        if event.fork:
            parent = self.streams.session(session_id(event.fork.namespace, event.fork.key))
            opened.forked_from_id = parent.row.id if parent else None
            self._inherit(opened, restored(SessionState, loads(row.carried)))
        self._name_parent(opened)
        # Sub-agents may have been imported before the session that they worked for.
        self.rows.change(
            "UPDATE sessions SET parent_id = ?"
            " WHERE parent_namespace = ? AND parent_key = ? AND parent_id IS NULL",
            (opened.id, opened.namespace, opened.key),
        )

    def _inherit(self, fork: SessionRow, state: SessionState) -> None:
        """What a fork is called, and whom it works for, where that was said before it left."""
        said = Ranges.of(filter(None, (state.titled, state.parented)))
        chain = self.store.session_chain(fork.namespace, fork.key)
        for recorded in self.store.read(chain, said):
            fork.apply(recorded.event, 0)

    def _name_parent(self, row: SessionRow) -> None:
        if row.parent_namespace and row.parent_key:
            parent = self.streams.session(session_id(row.parent_namespace, row.parent_key))
            row.parent_id = parent.row.id if parent else None

    def _take(self, touched: Touched, row: LogNotification) -> None:
        plaintext = self._note(touched, row)
        if row.topic in READ_WHOLE or may_be_unsent(row, plaintext):
            event = self.store.mapper.to_domain_event(row)
            grown = touched.row.apply(event, row.tokens)
            self._take_content(touched, row, event)
        else:
            grown = touched.row.grow(row.tokens)
            if touched.row.first_prompt is None and _is_prompt(row, plaintext):
                event = cast(BlockAppended, self.store.mapper.to_domain_event(row))
                touched.row.prompt(event.block.text)
            if row.topic == ToolReturned.TOPIC:
                self.digest.answer(touched, row, plaintext)
        if row.tokens:
            touched.grown.append((row.originator_version, grown))

    def _note(self, touched: Touched, row: LogNotification) -> bytes:
        """That there was an event, and its size."""
        plaintext = self.store.mapper.plaintext(row)
        touched.newest = row
        touched.row.stir()
        if row.topic in SAYS and (said := _said_at(plaintext)):
            touched.said = said
        touched.first = touched.first or row.originator_version
        touched.row.bytes += len(plaintext)
        if b'"bodies":' in plaintext:
            bodies = self.store.mapper.bodies_of(row)
            touched.row.bytes += sum(len(content) for _, content in bodies)
        return plaintext

    def _take_content(self, touched: Touched, row: LogNotification, event: Event) -> None:
        position = row.originator_version
        match event:
            case ToolCalled(block=block, turn=turn) | BlockAppended(block=block, turn=turn):
                self.digest.take(touched, position, turn, block)
            case ToolCallAbandoned(call=call):
                self.digest.end(touched, call, "abandoned")
            case BlocksRetracted(positions=positions, reopened=reopened):
                self.digest.retract(touched, positions)
                for call in reopened.values():
                    self.digest.end(touched, call, None)
            case ParentNamed():
                self._name_parent(touched.row)
            case ModelCalled():
                self.meter.take(touched, row.id, event)
            case ContextOverflowed(message=message, model=model):
                self.rows.add(
                    "context_overflows",
                    id=row.id,
                    session_id=touched.row.id,
                    position=position,
                    model=model,
                    message=message,
                    recorded_at=moment(event.timestamp),
                )
            case _:
                pass

    def _settle(self, touched: Touched) -> None:
        row = touched.row
        if touched.newest is not None:
            event = self.store.mapper.to_domain_event(touched.newest)
            state = restored(SessionState, loads(touched.newest.carried))
            row.settle(event, state)
        if touched.said and (time := parsed(touched.said)):
            row.said_at = moment(time)
        self.meter.measured(row, row.position)
        self.meter.use(row)
        self.meter.limit(row)
        row.measure(self.settings)


def _is_prompt(row: LogNotification, plaintext: bytes) -> bool:
    return row.topic == BlockAppended.TOPIC and b'"kind":"user"' in plaintext


def _said_at(plaintext: bytes) -> str | None:
    """When a block was said, as its source or the log wrote it; None of what a source dates not."""
    pattern = _SOURCE_TIME if b'"origin":' in plaintext else _OWN_TIME
    found = pattern.search(plaintext)
    return found[1].decode() if found else None
