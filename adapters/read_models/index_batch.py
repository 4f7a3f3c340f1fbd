"""One batch of events as rows of the session index, digest, context meter and ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, cast
from uuid import UUID

from sqlite_utils import Database

from ...domain.aggregate import restored
from ...domain.compaction import MAIN
from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionOpened,
    CompactionRejected,
    CompactionRequested,
    CompactionReverted,
    Summary,
)
from ...domain.errors import NotFoundError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.session import SessionState, session_id
from ...domain.session_events import (
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
from ...domain.token_budget import estimate_text
from ...projections.history_view import HistoryView
from ...projections.read_models.digest_entries import entries_of
from ...projections.read_models.ledger import completed, ledger_row, request_row
from ...projections.read_models.moments import moment
from ...projections.read_models.session_row import SessionRow, Settings, level, utilisation
from ..event_mapper import loads
from ..event_store import EventStore
from ..recorder import LogNotification
from ..view_reader import ViewReader
from .rows import Rows

OF_LINEAGES = {
    event.TOPIC
    for event in (
        CompactionOpened,
        CompactionRequested,
        CompactBoundary,
        Summary,
        BoundaryActivated,
        CompactionRejected,
        CompactionFailed,
        CompactionReverted,
    )
}
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
LONGEST = 1_000
"""Characters of a command or a path."""


@dataclass(slots=True)
class Touched:
    """A session that the batch is about."""

    row: SessionRow
    newest: LogNotification | None = None
    grown: list[tuple[int, int]] = field(default_factory=list)
    """By how many tokens each event of the batch made the view grow."""
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """What the batch adds to the digest, by position."""
    first: int = 0
    """The first position in the batch."""


@dataclass(slots=True)
class Lineage:
    """A lineage that the batch is about."""

    id: int
    session: Touched
    name: str


class IndexBatch:
    """Folds events in the order of the log, and writes what came of them."""

    def __init__(self, store: EventStore, db: Database, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.rows = Rows(db)
        self._sessions: dict[UUID, Touched | None] = {}
        self._lineages: dict[UUID, Lineage | None] = {}
        self._requests: dict[int, int] = {}

    def take(self, row: LogNotification) -> None:
        """Fold one event."""
        if row.topic in OF_LINEAGES:
            self._take_decision(row, self.store.mapper.to_domain_event(row))
        elif row.topic == SessionOpened.TOPIC:
            self._open(row, cast(SessionOpened, self.store.mapper.to_domain_event(row)))
        # What a later version of cutbank says in streams of its own is passed by.
        elif touched := self._session(cast(UUID, row.originator_id)):
            self._take_event(touched, row)

    def write(self) -> None:
        """Store the rows, sessions first: the others refer to them."""
        touched = [session for session in self._sessions.values() if session is not None]
        for session in touched:
            self._settle(session)
        self.rows.write([session.row.columns for session in touched])

    # Sessions

    def _open(self, row: LogNotification, event: SessionOpened) -> None:
        opened = SessionRow.opened(row.id, event)
        touched = self._sessions[event.originator_id] = Touched(opened)
        self._take_note(touched, row)
        if event.fork:
            parent = self._session(session_id(event.fork.namespace, event.fork.key))
            opened.forked_from_id = parent.row.id if parent else None
            self._inherit(opened, restored(SessionState, loads(row.carried)))
        self._name_parent(touched)
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

    def _name_parent(self, touched: Touched) -> None:
        row = touched.row
        if row.parent_namespace and row.parent_key:
            parent = self._session(session_id(row.parent_namespace, row.parent_key))
            row.parent_id = parent.row.id if parent else None

    def _take_event(self, touched: Touched, row: LogNotification) -> None:
        plaintext = self._take_note(touched, row)
        position, is_block = row.originator_version, row.tokens > 0
        if row.topic in READ_WHOLE or (row.topic == BlockAppended.TOPIC and _is_unsent(plaintext)):
            event = self.store.mapper.to_domain_event(row)
            grown = touched.row.apply(event, row.tokens)
            self._take_content(touched, row, event)
        else:
            grown = touched.row.grow(row.tokens)
            if row.topic == ToolReturned.TOPIC:
                self._answer(touched, row, plaintext)
        if is_block:
            touched.grown.append((position, grown))

    def _take_note(self, touched: Touched, row: LogNotification) -> bytes:
        """That there was an event, and its size."""
        plaintext = self.store.mapper.plaintext(cast(Any, row))
        touched.newest = row
        touched.first = touched.first or row.originator_version
        touched.row.bytes += len(plaintext)
        if b'"bodies":' in plaintext:
            bodies = self.store.mapper.bodies_of(cast(Any, row))
            touched.row.bytes += sum(len(content) for _, content in bodies)
        return plaintext

    def _take_content(self, touched: Touched, row: LogNotification, event: Event) -> None:
        here = (touched.row.id, row.originator_version)
        match event:
            case ToolCalled(block=block, turn=turn) | BlockAppended(block=block, turn=turn):
                for kind, what in entries_of(block):
                    entry = self.rows.add(
                        "digest_entries",
                        session_id=here[0],
                        position=here[1],
                        turn=turn,
                        kind=kind,
                        what=what[:LONGEST],
                        tool=getattr(block, "name", None) if kind != "artifact" else None,
                        outcome=None,
                        retracted=0,
                    )
                    touched.entries.setdefault(here[1], []).append(entry)
            case ToolCallAbandoned(call=call):
                self._end_call(touched, call, "abandoned")
            case BlocksRetracted(positions=positions, reopened=reopened):
                for first, last in positions.runs:
                    self.rows.change(
                        "UPDATE digest_entries SET retracted = 1"
                        " WHERE session_id = ? AND position BETWEEN ? AND ?",
                        (here[0], first, last),
                    )
                for call in reopened.values():
                    self._end_call(touched, call, None)
            case ParentNamed():
                self._name_parent(touched)
            case ModelCalled():
                self._take_call(touched, row, event)
            case ContextOverflowed(message=message, model=model):
                self.rows.add(
                    "context_overflows",
                    id=row.id,
                    session_id=here[0],
                    position=here[1],
                    model=model,
                    message=message,
                    recorded_at=moment(event.timestamp),
                )
            case _:
                pass

    def _answer(self, touched: Touched, row: LogNotification, plaintext: bytes) -> None:
        if b'"class_version"' in plaintext:
            event = cast(ToolReturned, self.store.mapper.to_domain_event(row))
            call, is_error = event.call, event.block.is_error
        else:
            state = loads(plaintext)
            call, is_error = state["call"], state["block"].get("is_error", False)
        self._end_call(touched, call, "error" if is_error else "ok")

    def _end_call(self, touched: Touched, call: int, outcome: str | None) -> None:
        if call >= touched.first:
            for entry in touched.entries.get(call, ()):
                entry["outcome"] = outcome
        # A fork's answer to a call of its parent is the fork's own affair.
        elif touched.row.forked_at is None or call > touched.row.forked_at:
            self.rows.change(
                "UPDATE digest_entries SET outcome = ? WHERE session_id = ? AND position = ?",
                (outcome, touched.row.id, call),
            )

    # Calls of models

    def _take_call(self, touched: Touched, row: LogNotification, call: ModelCalled) -> None:
        usage = call.usage
        seen = self._seen_by(touched, call)
        prompt = usage.context if usage else None
        shown = prompt if prompt is not None else seen
        share = utilisation(shown, self.settings) if shown is not None else None
        self.rows.change(
            "UPDATE model_calls SET repeated = 1 WHERE session_id = ? AND call_id = ? AND id < ?",
            (touched.row.id, call.call_id, row.id),
        )
        self.rows.add(
            "model_calls",
            id=row.id,
            session_id=touched.row.id,
            position=row.originator_version,
            call_id=call.call_id,
            repeated=0,
            model=call.model,
            lineage=call.lineage,
            lineage_version=call.lineage_version,
            view_position=call.position,
            renderer=call.renderer,
            fingerprint=call.fingerprint,
            view_tokens=seen,
            prompt_tokens=prompt,
            cached_tokens=usage.cache_read if usage else None,
            cache_write_tokens=usage.cache_write if usage else None,
            output_tokens=usage.output if usage else None,
            reasoning_tokens=usage.reasoning if usage else None,
            utilisation=share,
            level=level(share) if share is not None else None,
            cost_usd=call.cost_usd,
            latency_s=call.latency_s,
            stop_reason=call.stop_reason,
            called_at=moment(call.timestamp),
        )

    def _seen_by(self, touched: Touched, call: ModelCalled) -> int | None:
        """Tokens of the view at a call's coordinate."""
        row = touched.row
        if (
            row.serves(call.lineage)
            and call.lineage_version == row.served_version
            and call.position >= row.steady_from
        ):
            now = self._measured(row, call.originator_version)
            return now - self._grown_after(touched, call)
        try:
            return self._view(row, call.lineage, call.position, call.lineage_version).tokens
        except NotFoundError:
            return None  # a coordinate that never was: `verify` names such calls

    def _grown_after(self, touched: Touched, call: ModelCalled) -> int:
        """What the view grew by between what a call was sent and the call's own event."""
        later = takewhile(lambda grown: grown[0] > call.position, reversed(touched.grown))
        total = sum(tokens for _, tokens in later)
        if call.position < touched.first - 1:
            earlier = self.store.recorder.select_events(
                call.originator_id, gt=call.position, lte=touched.first - 1
            )
            total += sum(row.tokens for row in earlier if row.tokens and not self._is_unsent(row))
        return total

    def _is_unsent(self, row: Any) -> bool:
        if row.topic != BlockAppended.TOPIC or not _is_unsent(self.store.mapper.plaintext(row)):
            return False
        probe = SessionRow(0, "", "", "")
        return not probe.apply(self.store.mapper.to_domain_event(row), 1)

    def _settle(self, touched: Touched) -> None:
        row = touched.row
        if touched.newest is not None:
            event = self.store.mapper.to_domain_event(touched.newest)
            state = restored(SessionState, loads(touched.newest.carried))
            row.settle(event, state, self.settings)
        self._measured(row, row.position)
        row.measure(self.settings)

    def _measured(self, row: SessionRow, position: int) -> int:
        """Tokens of the view at a session's newest position; read where they are not known."""
        if row.view_tokens is None:
            view = self._view(row, MAIN, position, row.served_version)
            row.view_tokens = view.tokens
            row.system_tokens = estimate_text(view.system_prompt or "")
            tools = view.tool_definitions
            row.tools_tokens = estimate_text(str(tools)) if tools else 0
        return row.view_tokens

    def _view(self, row: SessionRow, lineage: str, at: int, version: int) -> HistoryView:
        """As of then, however far the log has come since."""
        return ViewReader(self.store, row.namespace, row.key, lineage).view(at, version)

    # Compactions

    def _take_decision(self, row: LogNotification, event: Event) -> None:
        if isinstance(event, CompactionOpened):
            self._open_lineage(row, event)
        lineage = self._lineage(event.originator_id)
        assert lineage is not None, "a lineage's first event opens it"
        lineage.session.row.decided(lineage.name, event)
        self.rows.change(
            "UPDATE lineages SET version = ? WHERE id = ?", (event.originator_version, lineage.id)
        )
        place = {"id": row.id, "lineage_id": lineage.id}
        if isinstance(event, CompactionRequested):
            self._requests[lineage.id] = row.id
            self.rows.add("compaction_requests", **place, **request_row(event))
        elif found := ledger_row(event):
            request = None
            if not isinstance(event, CompactionReverted):
                request = self._newest_request(lineage.id)
            more = {"session_id": lineage.session.row.id, "request_id": request}
            self.rows.add("compactions", **place, **more, **found)
        if isinstance(event, BoundaryActivated | CompactionReverted):
            active = event.boundary if isinstance(event, BoundaryActivated) else event.to
            self.rows.change("UPDATE lineages SET boundary = ? WHERE id = ?", (active, lineage.id))
        if done := completed(event):
            boundary, columns = done
            self.rows.complete("compactions", columns, lineage_id=lineage.id, version=boundary)

    def _open_lineage(self, row: LogNotification, event: CompactionOpened) -> None:
        session = self._session(session_id(event.namespace, event.key))
        assert session is not None, "a lineage belongs to a session"
        base = self._lineage(event.base.originator_id) if event.base else None
        self._lineages[event.originator_id] = Lineage(row.id, session, event.lineage)
        self.rows.add(
            "lineages",
            id=row.id,
            stream=str(event.originator_id),
            session_id=session.row.id,
            name=event.lineage,
            base_id=base.id if base else None,
            base_version=event.base.version if event.base else None,
            version=event.originator_version,
            boundary=None,
            opened_at=moment(event.timestamp),
        )

    def _newest_request(self, lineage: int) -> int | None:
        if lineage not in self._requests:
            query = "SELECT max(id) FROM compaction_requests WHERE lineage_id = ?"
            found = self.rows.one(query, (lineage,))
            if found is None or found[0] is None:
                return None
            self._requests[lineage] = found[0]
        return self._requests[lineage]

    # What earlier batches left

    def _session(self, stream: UUID) -> Touched | None:
        if stream not in self._sessions:
            found = self.rows.mapping("SELECT * FROM sessions WHERE stream = ?", (str(stream),))
            self._sessions[stream] = Touched(SessionRow.of(found)) if found else None
        return self._sessions[stream]

    def _lineage(self, stream: UUID) -> Lineage | None:
        if stream not in self._lineages:
            query = (
                "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
                " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
            )
            found = self.rows.one(query, (str(stream),))
            lineage = None
            if found is not None:
                session = self._session(UUID(found[2]))
                assert session is not None, "the row was joined"
                lineage = Lineage(found[0], session, found[1])
            self._lineages[stream] = lineage
        return self._lineages[stream]


def _is_unsent(plaintext: bytes) -> bool:
    """Whether it may be a block that no model sees; the words may be somebody's own."""
    return b'"note"' in plaintext or b'"artifact"' in plaintext
