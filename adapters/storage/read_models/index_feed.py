"""Feeds the session index, the digest, the context meter and the compaction ledger."""

import re
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
from ....domain.summaries.commands import get_command
from ....projections.read_models.session_row import SessionRow
from ....projections.read_models.timestamps import format_timestamp
from ..event_log.event_mapper import load_json
from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from ..view_reader import ViewReader
from .context_batch import ContextBatch, ResolveLimit, may_be_unsent
from .ledger_batch import LINEAGE_TOPICS, LedgerBatch
from .read_model_file import ReadModelDatabase
from .row_batch import RowBatch, TouchedSession

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
_MAX_DIGEST_CHARACTERS = 1_000
"""The longest command or path in the digest."""

_SOURCE_TIME = re.compile(rb'"origin":\{"format":"[^"]*",(?:"id":"[^"]*",)?"time":"([^"\\]+)"')
_OWN_TIME = re.compile(rb'\{"timestamp":"([^"\\]+)"')


class IndexFeed:
    """Feeds all that needs no large text, writing a session's row once per batch."""

    name = "index"
    page = 2_000

    def __init__(self, store: EventStore, file: ReadModelDatabase, limit_of: ResolveLimit) -> None:
        self.store = store
        self.file = file
        self._limit_of = limit_of
        self._open_reader = lru_cache(maxsize=1)(partial(ViewReader, store, lineage=MAIN_LINEAGE))

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        settings = self.file.read_settings(db)
        rows = RowBatch(db)
        meter = ContextBatch(self.store, rows, settings, self._limit_of, self._open_reader)
        ledger = LedgerBatch(rows)
        batch = _IndexBatch(self.store, rows, meter)
        for event in events:
            if event.topic in LINEAGE_TOPICS:
                ledger.add_event(event.id, self.store.mapper.to_domain_event(event))
            else:
                batch.add_event(event)
        for touched in rows.sessions:
            batch.finish_session(touched)
            meter.measure_session(touched.row)
            touched.row.measure(settings)
        rows.write_sessions()
        ledger.measure_boundaries(self.store)
        return len(events)


class _IndexBatch:
    """One batch of rows for the session index and the digest."""

    def __init__(self, store: EventStore, rows: RowBatch, meter: ContextBatch) -> None:
        self.store = store
        self.rows = rows
        self.meter = meter

    def add_event(self, row: LogNotification) -> None:
        if row.topic == SessionOpened.TOPIC:
            self._open(row, cast(SessionOpened, self.store.mapper.to_domain_event(row)))
        # Streams of a kind that only a later version of cutbank knows are ignored.
        elif touched := self.rows.find_session(cast(UUID, row.originator_id)):
            self._apply(touched, row)

    def finish_session(self, touched: TouchedSession) -> None:
        if touched.newest is not None:
            event = self.store.mapper.to_domain_event(touched.newest)
            state = load_state(SessionState, load_json(touched.newest.carried))
            touched.row.apply_newest(event, state)
        if touched.last_said_at and (time := parse_source_time(touched.last_said_at)):
            touched.row.said_at = format_timestamp(time)

    def _open(self, row: LogNotification, event: SessionOpened) -> None:
        opened = SessionRow.from_opened_event(row.id, event)
        touched = self.rows.open_session(event.originator_id, opened)
        self._note_event(touched, row)
        if event.fork:
            opened.forked_from_id = self._find_session_id(event.fork.namespace, event.fork.key)
            # A fork's title and parent may have been set before the fork.
            state = load_state(SessionState, load_json(row.carried))
            inherited = Ranges.of(filter(None, (state.titled, state.parented)))
            chain = self.store.find_session_chain(opened.namespace, opened.key)
            for recorded in self.store.read(chain, inherited):
                opened.apply(recorded.event, 0)
        self._set_parent(opened)
        # Sub-agents may have been imported before their parent session.
        self.rows.execute(
            "UPDATE sessions SET parent_id = ?"
            " WHERE parent_namespace = ? AND parent_key = ? AND parent_id IS NULL",
            opened.id,
            opened.namespace,
            opened.key,
        )
        for other in self.rows.sessions:
            if (other.row.parent_namespace, other.row.parent_key) == (opened.namespace, opened.key):
                other.row.parent_id = opened.id

    def _set_parent(self, row: SessionRow) -> None:
        if row.parent_namespace and row.parent_key:
            row.parent_id = self._find_session_id(row.parent_namespace, row.parent_key)

    def _find_session_id(self, namespace: str, key: str) -> int | None:
        found = self.rows.find_session(derive_session_id(namespace, key))
        return found.row.id if found else None

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
                self._add_answer(touched, row, plaintext)
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
                self._add_digest(touched, position, turn, block)
            case ToolCallAbandoned(call=call):
                self._end_call(touched, call, "abandoned")
            case BlocksRetracted(positions=positions, reopened=reopened):
                for first, last in positions.runs:
                    self.rows.execute(
                        "UPDATE digest_entries SET retracted = 1"
                        " WHERE session_id = ? AND position BETWEEN ? AND ?",
                        touched.row.id,
                        first,
                        last,
                    )
                for call in reopened.values():
                    self._end_call(touched, call, None)
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

    def _add_digest(
        self, touched: TouchedSession, position: int, turn: int, block: AnyBlock
    ) -> None:
        for kind, what in _list_touched(block):
            self.rows.add(
                "digest_entries",
                session_id=touched.row.id,
                position=position,
                turn=turn,
                kind=kind,
                what=what[:_MAX_DIGEST_CHARACTERS],
                tool=block.name if isinstance(block, ToolCall) else None,
                retracted=0,
            )

    def _add_answer(self, touched: TouchedSession, row: LogNotification, plaintext: bytes) -> None:
        if b'"class_version"' in plaintext:
            event = cast(ToolReturned, self.store.mapper.to_domain_event(row))
            call, is_error = event.call, event.block.is_error
        else:
            state = load_json(plaintext)
            call, is_error = state["call"], state["block"].get("is_error", False)
        self._end_call(touched, call, "error" if is_error else "ok")

    def _end_call(self, touched: TouchedSession, call: int, outcome: str | None) -> None:
        # A fork's answer to its parent's call finds no entry, and does not change the parent's.
        self.rows.execute(
            "UPDATE digest_entries SET outcome = ? WHERE session_id = ? AND position = ?",
            outcome,
            touched.row.id,
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


def _is_prompt(row: LogNotification, plaintext: bytes) -> bool:
    return row.topic == BlockAppended.TOPIC and b'"kind":"user"' in plaintext


def _find_said_time(plaintext: bytes) -> str | None:
    """Return the time of a block, from its source or the log; None if its source has none."""
    pattern = _SOURCE_TIME if b'"origin":' in plaintext else _OWN_TIME
    found = pattern.search(plaintext)
    return found[1].decode() if found else None
