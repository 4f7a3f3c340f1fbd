"""Applies a batch of a transcript's steps to its sessions, to be stored in one transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from ....domain.blocks import ASSISTANT_KINDS, AnyBlock, Block, Origin, ToolCall, ToolResult
from ....domain.cached_property import cached_property
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.errors import DuplicateToolCallError, NotFoundError, OrphanToolResultError
from ....domain.ranges import Ranges
from ....domain.session import Session
from ....domain.session_events import BlocksRetracted, ToolCallAbandoned, ToolCalled
from ....projections.view_content import RecordedEvent
from ...storage.event_log.event_mapper import dump_json
from ...storage.event_log.log_tables import AppendKey
from ...storage.event_log.source_segments import SourceKeeper
from ...storage.view_reader import ViewReader
from ...transcripts.formats.steps import (
    ANSWERED_LATER,
    Append,
    ReportedCall,
    RequestParameters,
    SessionStart,
)
from ..sessions.session_store import SessionStore
from ..sessions.stored_session import StoredSession

BatchStep = Append | ReportedCall | RequestParameters
"""The steps that are stored in batches."""
UNANSWERED_REASON = "never answered in the source"
BATCH_STEPS = 500
"""The number of steps in a batch."""


@dataclass
class ImportTarget:
    begin: SessionStart
    title: str | None = None
    session: StoredSession | None = None
    session_id: UUID | None = None
    """The stream of the session when it was opened, to see whether it was deleted since."""
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The positions of each entry's first and last block, by source id."""
    stored_keys: dict[str, int] | None = None
    """The keys that this import stored, if it opened the session; if None, ask the database."""


class ImportBatch:
    """A batch of decisions on sessions; its counts apply once it is stored."""

    def __init__(
        self,
        store: SessionStore,
        namespace: str,
        batch: list[tuple[ImportTarget, BatchStep]],
        keeper: SourceKeeper | None = None,
    ) -> None:
        self.store = store
        self.keeper = keeper
        self.namespace = namespace
        self.keys: list[AppendKey] = []
        self.errors: list[str] = []
        """Error messages; each begins with its line, if it has one."""
        self.added = 0
        self.abandoned = 0
        self._parts: dict[str, _SessionBatch] = {}
        for target, step in batch:
            key = target.begin.key
            if key not in self._parts:
                self._parts[key] = _SessionBatch(self, target)
            self._parts[key].decide(step)

    @property
    def sessions(self) -> dict[str, Session]:
        return {key: part.session for key, part in self._parts.items()}

    def mark_stored(self) -> None:
        """Note that the batch is stored, so that later steps may refer to it."""
        for part in self._parts.values():
            part.target.positions |= part.places
            if part.target.stored_keys is not None:
                part.target.stored_keys |= part.taken


class _SessionBatch:
    """The decisions of a batch on one session."""

    def __init__(self, batch: ImportBatch, target: ImportTarget) -> None:
        self.batch = batch
        self.target = target
        self.key = target.begin.key
        self.events = batch.store.events
        session = self.events.load_session(batch.namespace, self.key)
        if session is None or target.session_id not in {None, session.id}:
            raise NotFoundError(f"session {self.key!r} was deleted while it was read")
        self.session = session
        self.taken: dict[str, int] = {}
        """The position of each step, by its key."""
        self.places: dict[str, tuple[int, int]] = {}
        """The positions of each entry's first and last block, by source id."""
        self._turns: dict[int, int] = {}
        """The turn of a call, by position."""
        self._cancelled: dict[str, tuple[int, int]] = {}
        """The calls closed without a result, each with the positions of closing and call."""
        self._is_log_searched = False
        """Whether the log was searched for such calls."""

    def decide(self, step: BatchStep) -> None:
        known = self._find_known(step.key)
        if isinstance(step, Append):
            if not known:
                self._append(step)
                self.batch.added += 1
                self._keep_key(step.key)
            self._set_position(step, known)
        elif not known and self._record(step):
            self._keep_key(step.key)

    def _record(self, step: ReportedCall | RequestParameters) -> bool:
        """Record a call, or what requests hold from here on; return whether anything was new."""
        session = self.session
        before = session.version
        try:
            if isinstance(step, ReportedCall):
                session.record_call(step.fields | self._make_coordinate(step))
                return True
            if step.system_prompt is not None:
                session.set_system_prompt(step.system_prompt)
            if step.tools is not None:
                session.set_tools(step.tools)
            if step.settings is not None:
                session.set_request_settings(step.settings)
        except ValidationError as error:
            # The JSON may be nested too deeply for Python.
            what = "a call reported" if isinstance(step, ReportedCall) else "requests held"
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            self.batch.errors.append(f" what {what}: {reason}; left out")
            return False
        return session.version > before

    def _keep_key(self, key: str) -> None:
        at = self.taken[key] = self.session.version
        self.batch.keys.append(AppendKey(self.session.id, key, at, at))

    def _append(self, step: Append) -> None:
        try:
            self._locate(step.block)
            self._append_block(step.block)
        except (OrphanToolResultError, DuplicateToolCallError) as error:
            # Blocks that cannot be in a view are kept as notes, so nothing is lost.
            origin = step.block.origin or Origin(format="")
            where = f"{origin.line}: " if origin.line else " "
            self.batch.errors.append(f"{where}entry {step.source_id}: {error}")
            kept = dump_json(step.block.model_dump(mode="json")).decode()
            refused = origin.model_copy(update={"refused": str(error)})
            self.session.append(Block.note(kept, name=str(step.block.kind), origin=refused))

    def _locate(self, block: AnyBlock) -> None:
        """Note in the block's origin where its line is in the kept source.

        The reader has just made the origin, and nothing else holds it yet; a copy of it, and of
        each of its blocks, would take a tenth of an import.
        """
        origin, keeper = block.origin, self.batch.keeper
        if origin and keeper and (found := keeper.find_line(origin.line)):
            object.__setattr__(origin, "segment", found.segment)
            object.__setattr__(origin, "span", found.span)

    def _append_block(self, block: AnyBlock) -> None:
        session = self.session
        if isinstance(block, ToolResult):
            self._reopen(block.tool_call_id)
        elif block.kind in ASSISTANT_KINDS:
            self._cancel_calls()
        session.append(block)
        if isinstance(block, ToolCall):
            self._turns[session.version] = session.state.turn

    def _cancel_calls(self) -> None:
        """Close the calls of earlier turns, since the model went on without their results."""
        session = self.session
        for call, position in list(session.state.open_calls.items()):
            if self._find_turn(position) < session.state.turn:
                session.cancel_tool_call(call, UNANSWERED_REASON)
                self._cancelled[call] = (session.version, position)
                self.batch.abandoned += 1

    def _reopen(self, call: str) -> None:
        """Take back the closing of a call whose result came after all."""
        if call in self.session.state.open_calls:
            return
        at, position = self._find_cancelled().get(call, (0, 0))
        # It stays closed if the source's own compaction covers it.
        if at and at > self._compacted_position():
            del self._find_cancelled()[call]
            self.session.retract(Ranges.of([at]), {call: position}, ANSWERED_LATER)
            self.batch.abandoned -= 1

    def _find_cancelled(self) -> dict[str, tuple[int, int]]:
        if not self._is_log_searched:
            self._is_log_searched = True
            self._cancelled = _find_closed_calls(self._read_log()) | self._cancelled
        return self._cancelled

    def _read_log(self) -> Iterator[RecordedEvent]:
        last = self.session.stored_version
        for first in range(1, last + 1, BATCH_STEPS):
            yield from self._read(Ranges.span(first, min(first + BATCH_STEPS - 1, last)))

    def _read(self, positions: Ranges) -> Iterable[RecordedEvent]:
        chain = self.events.find_session_chain(self.batch.namespace, self.key)
        return self.events.read(chain, positions)

    def _find_turn(self, position: int) -> int:
        if position not in self._turns:
            (found,) = self._read(Ranges.of([position]))
            assert isinstance(found.event, ToolCalled), "an open call stands there"
            self._turns[position] = found.event.turn
        return self._turns[position]

    def _compacted_position(self) -> int:
        if not self._recorded_version:
            return 0
        reader = ViewReader(self.events, self.batch.namespace, self.key, RECORDED_LINEAGE)
        boundary = reader.read_view().boundary
        return boundary.after if boundary else 0

    def _find_known(self, key: str) -> tuple[int, int] | None:
        stored = self.target.stored_keys
        if key in self.taken or stored is not None:
            position = self.taken.get(key) or (stored or {}).get(key)
            return (position, position) if position else None
        found = self.events.select_key(self.session.id, key)
        return (found.first, found.last) if found else None

    def _make_coordinate(self, call: ReportedCall) -> dict[str, Any]:
        before = self._find_position(call.first_answer_id) if call.first_answer_id else None
        return {
            "position": max(1, before[0] - 1) if before else self.session.version,
            "lineage": RECORDED_LINEAGE,
            "lineage_version": self._recorded_version,
        }

    @cached_property
    def _recorded_version(self) -> int:
        """The version of the source's lineage; a compaction begins another batch."""
        chain = self.events.find_lineage_chain(self.batch.namespace, self.key, RECORDED_LINEAGE)
        return self.events.read_lineage_state(chain)[0] if chain.segments else 0

    def _set_position(self, step: Append, at: tuple[int, int] | None = None) -> None:
        """Note where the step's entry is: at these positions, or else at the newest one."""
        if step.source_id:
            first, last = at or (self.session.version, self.session.version)
            earlier = self._find_position(step.source_id)
            self.places[step.source_id] = (earlier[0] if earlier else first, last)

    def _find_position(self, source_id: str) -> tuple[int, int] | None:
        return self.places.get(source_id) or self.target.positions.get(source_id)


def _find_closed_calls(log: Iterable[RecordedEvent]) -> dict[str, tuple[int, int]]:
    closed: dict[str, tuple[int, int]] = {}
    for recorded in log:
        match recorded.event:
            case ToolCallAbandoned(tool_call_id=call, call=position):
                closed[call] = (recorded.position, position)
            case BlocksRetracted(positions=gone):
                closed = {call: at for call, at in closed.items() if at[0] not in gone}
    return closed
