"""Applies a batch of a transcript's steps to its sessions, to be stored in one transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import ASSISTANT_KINDS, AnyBlock, Block, Origin, ToolCall, ToolResult
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.errors import DuplicateToolCallError, OrphanToolResultError
from ....domain.ranges import Ranges
from ....domain.session import Session
from ....domain.session_events import BlocksRetracted, ToolCallAbandoned, ToolCalled
from ....projections.recorded_event import RecordedEvent
from ...storage.event_log.event_mapper import dump_json
from ...storage.event_log.stored_row import AppendKey
from ...storage.view_reader import ViewReader
from ...transcripts.formats.steps import (
    Append,
    ReportedCall,
    RequestParameters,
    SessionStart,
    SourceProblem,
)
from ..sessions.session_log import SessionLog
from ..sessions.session_store import SessionStore
from ..sessions.stored_session import StoredSession

BatchStep = Append | ReportedCall | RequestParameters | SourceProblem
"""The steps that are stored in batches; a Problem only for a result without its call."""
REFUSED_KEY = "refused"
"""The name of notes that hold unreadable entries."""
UNANSWERED_REASON = "never answered in the source"
BATCH_STEPS = 500
"""The number of steps in a batch."""


@dataclass
class ImportTarget:
    begin: SessionStart
    title: str | None = None
    session: StoredSession | None = None
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The positions of each entry's first and last block, by source id."""
    stored_keys: dict[str, int] | None = None
    """The keys that this import stored, if it opened the session; if None, ask the database."""


class ImportBatch:
    """A batch of decisions on the sessions; its counts apply once it is stored."""

    def __init__(
        self, store: SessionStore, namespace: str, batch: list[tuple[ImportTarget, BatchStep]]
    ) -> None:
        self.store = store
        self.namespace = namespace
        self.sessions: dict[str, Session] = {}
        self.keys: list[AppendKey] = []
        self._turns: dict[tuple[str, int], int] = {}
        """The turn of a call, by session and position."""
        self._taken: dict[tuple[str, str], tuple[ImportTarget, int]] = {}
        """The position of each step, by session and key."""
        self._recorded: dict[str, int] = {}
        self._places: dict[tuple[str, str], tuple[ImportTarget, tuple[int, int]]] = {}
        """The positions of each entry's first and last block, by session and source id."""
        self._open_elsewhere: dict[str, list[tuple[str, int]]] | None = None
        """The open calls of other sessions, each with session and position."""
        self._abandoned: dict[str, dict[str, tuple[int, int]]] = {}
        """The calls that were closed without a result, by session."""
        self._looked_for: set[str] = set()
        """The sessions whose log was searched for such calls."""
        self.errors: list[str] = []
        """Error messages; each begins with its line, if it has one."""
        self.added = 0
        self.abandoned = 0
        self.answered = 0
        """The number of results whose calls were read from another file."""
        for target, step in batch:
            self._decide(target, step)

    def mark_stored(self) -> None:
        """Note that the batch is stored, so that later steps may refer to it."""
        for (_, source_id), (target, at) in self._places.items():
            target.positions[source_id] = at
        for (_, key), (target, position) in self._taken.items():
            if target.stored_keys is not None:
                target.stored_keys[key] = position

    def _decide(self, target: ImportTarget, step: BatchStep) -> None:
        if isinstance(step, SourceProblem):
            self._answer_or_refuse(target, step)
            return
        session = self._get_session(target)
        if known := self._find_known(target, session, step.key):
            if isinstance(step, Append):
                self._set_position(target, step, known)
            return
        match step:
            case ReportedCall():
                try:
                    session.record_call(step.fields | self._make_coordinate(target, session, step))
                except ValidationError as error:
                    self._leave_out("what a call reported", error)
                    return
            case RequestParameters():
                try:
                    if not _record_request(session, step):
                        return
                except ValidationError as error:
                    # The JSON may be nested too deeply for Python.
                    self._leave_out("what requests held", error)
                    return
            case Append():
                self._append(target, session, step)
                self.added += 1
                self._set_position(target, step, (session.version, session.version))
        self._keep_key(target, session, step.key)

    def _leave_out(self, what: str, error: ValidationError) -> None:
        reason = error.errors(include_url=False, include_input=False)[0]["msg"]
        self.errors.append(f" {what}: {reason}; left out")

    def _keep_key(self, target: ImportTarget, session: Session, key: str) -> None:
        at = session.version
        self._taken[target.begin.key, key] = (target, at)
        self.keys.append(AppendKey(session.id, key, at, at))

    def _append(self, target: ImportTarget, session: Session, step: Append) -> None:
        try:
            self._append_block(target, session, step.block)
        except (OrphanToolResultError, DuplicateToolCallError) as error:
            # Blocks that cannot be in a view are kept as notes, so nothing is lost.
            origin = step.block.origin or Origin(format="")
            where = f"{origin.line}: " if origin.line else " "
            self.errors.append(f"{where}entry {step.source_id}: {error}")
            kept = dump_json(step.block.model_dump(mode="json")).decode()
            refused = origin.model_copy(update={"refused": str(error)})
            session.append(Block.note(kept, name=str(step.block.kind), origin=refused))

    def _answer_or_refuse(self, target: ImportTarget, step: SourceProblem) -> None:
        """Append a result whose call is in another file, or keep it raw."""
        session, append = self._get_session(target), step.append
        assert append is not None
        assert step.key is not None
        assert isinstance(append.block, ToolResult)
        if known := self._find_known(target, session, append.key):
            self._set_position(target, append, known)
            self.answered += 1
            return
        is_refused = self._find_known(target, session, step.key) is not None
        if (is_refused or not self._is_open(target, session, append.block.tool_call_id)) and (
            call := self._find_call_elsewhere(target, append.block.tool_call_id)
        ):
            self._append_block(target, session, call)
            self._keep_key(target, session, f"{append.key}:call")
        elif is_refused:
            self.errors.append(f"{step.line}: {step.reason}")
            return
        try:
            self._append_block(target, session, append.block)
        except OrphanToolResultError:
            told = append.block.origin
            origin = Origin(
                format=told.format if told else "",
                line=step.line,
                follows=step.follows,
                refused=step.reason,
            )
            session.append(Block.note(step.raw or "", name=REFUSED_KEY, origin=origin))
            self._keep_key(target, session, step.key)
            self.errors.append(f"{step.line}: {step.reason}")
        else:
            self.answered += 1
            self._set_position(target, append, (session.version, session.version))
            self._keep_key(target, session, append.key)
        self.added += 1

    def _find_call_elsewhere(self, target: ImportTarget, call: str) -> ToolCall | None:
        """Return the call if exactly one other session has it open, which this file continues."""
        if self._open_elsewhere is None:
            self._open_elsewhere = {}
            events = self.store.events
            for stream in events.recorder.select_streams(self.namespace):
                if stream.lineage is None and stream.session != target.begin.key:
                    chain = events.find_session_chain(self.namespace, stream.session)
                    for id, position in events.read_head(chain)[1].open_calls.items():
                        at = (stream.session, position)
                        self._open_elsewhere.setdefault(id, []).append(at)
        match self._open_elsewhere.get(call):
            case [(key, position)] if not self._is_same_family(target, key):
                chain = self.store.events.find_session_chain(self.namespace, key)
                (found,) = self.store.events.read(chain, Ranges.of([position]))
                assert isinstance(found.event, ToolCalled), "an open call stands there"
                return found.event.block.model_copy(update={"origin": None})
            case _:
                return None

    def _is_same_family(self, target: ImportTarget, other: str) -> bool:
        """Return whether both sessions may be in one file, whose reader then matches results."""
        begin = target.begin
        above = begin.parent_key or begin.fork_of
        return self._find_root(above or begin.key) == self._find_root(other)

    def _find_root(self, key: str) -> str:
        """Return the topmost parent or fork origin of a session."""
        while self.store.events.load_session(self.namespace, key) is not None:
            session = StoredSession(SessionLog(self.store.context, self.namespace, key))
            above = session.log.parent or session.log.forked_from
            if above is None:
                break
            key = above.key
        return key

    def _append_block(self, target: ImportTarget, session: Session, block: AnyBlock) -> None:
        if isinstance(block, ToolResult):
            self._reopen(target, session, block.tool_call_id)
        elif block.kind in ASSISTANT_KINDS:
            self._cancel_calls(target, session)
        session.append(block)
        if isinstance(block, ToolCall):
            self._turns[target.begin.key, session.version] = session.state.turn

    def _cancel_calls(self, target: ImportTarget, session: Session) -> None:
        """Close the calls of earlier turns, since the model went on without their results."""
        for call, position in list(session.state.open_calls.items()):
            if self._find_turn(target, position) < session.state.turn:
                session.cancel_tool_call(call, UNANSWERED_REASON)
                at = (session.version, position)
                self._abandoned.setdefault(target.begin.key, {})[call] = at
                self.abandoned += 1

    def _is_open(self, target: ImportTarget, session: Session, call: str) -> bool:
        """Return whether a result can be appended to the call, reopening it if need be."""
        if call in session.state.open_calls:
            return True
        # It must not be reopened if the source's own compaction covers it.
        closed = self._find_cancelled(target, session).get(call)
        return closed is not None and closed[0] > self._compacted_position(target)

    def _reopen(self, target: ImportTarget, session: Session, call: str) -> None:
        if call not in session.state.open_calls and self._is_open(target, session, call):
            at, position = self._find_cancelled(target, session).pop(call)
            session.retract(Ranges.of([at]), {call: position}, "answered later")
            self.abandoned -= 1

    def _find_cancelled(self, target: ImportTarget, session: Session) -> dict[str, tuple[int, int]]:
        """Return the calls closed without a result, each with the positions of closing and call."""
        key = target.begin.key
        decided = self._abandoned.setdefault(key, {})
        if key not in self._looked_for:
            self._looked_for.add(key)
            decided |= _find_closed_calls(self._read_log(key, session.stored_version)) | decided
        return decided

    def _read_log(self, key: str, last: int) -> Iterator[RecordedEvent]:
        events = self.store.events
        chain = events.find_session_chain(self.namespace, key)
        for first in range(1, last + 1, BATCH_STEPS):
            yield from events.read(chain, Ranges.span(first, min(first + BATCH_STEPS - 1, last)))

    def _find_turn(self, target: ImportTarget, position: int) -> int:
        key = target.begin.key
        if (key, position) not in self._turns:
            chain = self.store.events.find_session_chain(self.namespace, key)
            (found,) = self.store.events.read(chain, Ranges.of([position]))
            assert isinstance(found.event, ToolCalled), "an open call stands there"
            self._turns[key, position] = found.event.turn
        return self._turns[key, position]

    def _compacted_position(self, target: ImportTarget) -> int:
        key = target.begin.key
        if not self._recorded_version(key):
            return 0
        reader = ViewReader(self.store.events, self.namespace, key, RECORDED_LINEAGE)
        boundary = reader.read_view().boundary
        return boundary.after if boundary else 0

    def _get_session(self, target: ImportTarget) -> Session:
        key = target.begin.key
        if key not in self.sessions:
            events = self.store.events
            found = events.load_session(self.namespace, key)
            assert found is not None, "the session was opened before its batch"
            self.sessions[key] = found
        return self.sessions[key]

    def _find_known(
        self, target: ImportTarget, session: Session, key: str
    ) -> tuple[int, int] | None:
        if taken := self._taken.get((target.begin.key, key)):
            return (taken[1], taken[1])
        if target.stored_keys is not None:
            position = target.stored_keys.get(key)
            return (position, position) if position else None
        found = self.store.events.select_key(session.id, key)
        return (found.first, found.last) if found else None

    def _make_coordinate(
        self, target: ImportTarget, session: Session, call: ReportedCall
    ) -> dict[str, Any]:
        before = self._find_position(target, call.first_answer_id) if call.first_answer_id else None
        return {
            "position": max(1, before[0] - 1) if before else session.version,
            "lineage": RECORDED_LINEAGE,
            "lineage_version": self._recorded_version(target.begin.key),
        }

    def _recorded_version(self, key: str) -> int:
        """Return the version of the source's lineage; a compaction begins another batch."""
        if key not in self._recorded:
            events = self.store.events
            chain = events.find_lineage_chain(self.namespace, key, RECORDED_LINEAGE)
            self._recorded[key] = events.read_lineage_state(chain)[0] if chain.segments else 0
        return self._recorded[key]

    def _set_position(self, target: ImportTarget, step: Append, at: tuple[int, int]) -> None:
        if step.source_id:
            earlier = self._find_position(target, step.source_id)
            span = (earlier[0] if earlier else at[0], at[1])
            self._places[target.begin.key, step.source_id] = (target, span)

    def _find_position(self, target: ImportTarget, source_id: str) -> tuple[int, int] | None:
        if found := self._places.get((target.begin.key, source_id)):
            return found[1]
        return target.positions.get(source_id)


def _record_request(session: Session, step: RequestParameters) -> bool:
    """Record what requests hold from here on; return whether anything was new."""
    before = session.version
    if step.system_prompt is not None:
        session.set_system_prompt(step.system_prompt)
    if step.tools is not None:
        session.set_tools(step.tools)
    if step.settings is not None:
        session.set_request_settings(step.settings)
    return session.version > before


def _find_closed_calls(log: Iterable[RecordedEvent]) -> dict[str, tuple[int, int]]:
    closed: dict[str, tuple[int, int]] = {}
    for recorded in log:
        match recorded.event:
            case ToolCallAbandoned(tool_call_id=call, call=position):
                closed[call] = (recorded.position, position)
            case BlocksRetracted(positions=gone):
                closed = {call: at for call, at in closed.items() if at[0] not in gone}
    return closed
