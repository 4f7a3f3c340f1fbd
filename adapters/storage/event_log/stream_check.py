"""Checks a stored stream: its positions, hashes and contents, and the state after each event."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from ....domain.compaction import Compaction, CompactionState
from ....domain.compaction_events import CompactionOpened, LineageBase, Summary
from ....domain.event import Aggregate, dump_state, load_state
from ....domain.session import Session, SessionState
from ....domain.session_events import Fork, SessionOpened
from ....projections.view_content import RecordedEvent
from .event_mapper import load_json
from .event_store import EventStore
from .log_tables import StoredRow, Stream

_PAGE_ROWS = 500


class CheckedRow(NamedTuple):
    """A stored row, its event if it can be read, and what is wrong with it."""

    row: StoredRow
    recorded: RecordedEvent | None
    problems: list[str]


def read_rows(store: EventStore, id: UUID, first: int, last: int | None) -> Iterator[StoredRow]:
    """Yield the stored rows of a stream, reading them in pages."""
    position = first - 1
    while page := store.recorder.select_events(id, gt=position, lte=last, limit=_PAGE_ROWS):
        yield from page
        position = page[-1].originator_version


def make_guard(store: EventStore, stream: Stream) -> Aggregate[Any]:
    """Return the stream's aggregate as it was before its first event."""
    if stream.lineage is None:
        session = SessionState()
        return Session(
            stream.originator_id, version=0, state=session, subject="", clock=store.clock
        )
    lineage = CompactionState()
    return Compaction(stream.originator_id, version=0, state=lineage, subject="", clock=store.clock)


def check_stream(
    store: EventStore,
    id: UUID,
    first: int,
    last: int | None,
    guard: Aggregate[Any] | None = None,
    *,
    may_be_erased: bool = False,
) -> Iterator[CheckedRow]:
    """Yield the rows of a stream with their problems; a `guard` also checks the stored states."""
    expected = first
    for row in read_rows(store, id, first, last):
        at = row.originator_version
        problems = [] if at == expected else [f"#{expected} is missing"]
        expected = at + 1
        if row.is_erased:
            if not may_be_erased:
                problems.append("its content is gone, and no erasure says so")
            yield CheckedRow(row, None, problems)
            continue
        problems += store.find_row_problems(row)
        recorded = None
        try:
            recorded = store.make_recorded(row)
            if isinstance(recorded.event, Summary):
                _ = recorded.event.digest.commands.runs  # which are parsed only now
        except ValueError as error:
            reason = " ".join(str(error.__cause__ or error).split())
            problems.append(f"#{at} cannot be read: {reason[:200]}")
        else:
            if guard is not None:
                problems += _find_state_problems(guard, row, recorded)
        yield CheckedRow(row, recorded, problems)


def _find_state_problems(
    guard: Aggregate[Any], row: StoredRow, recorded: RecordedEvent
) -> Iterator[str]:
    """Check that the state stored with the event follows from the events up to it."""
    try:
        stored = load_json(row.carried)
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        yield "the state stored with it cannot be read"
        return
    match recorded.event:
        case SessionOpened(fork=Fork()) | CompactionOpened(base=LineageBase()):
            # It begins with another stream's state, which earlier versions took over otherwise.
            guard.state = load_state(type(guard.state), stored)
    guard.evolve(recorded.event)
    expected = dump_state(guard.state)
    if isinstance(guard.state, CompactionState) and "requested" not in stored:
        expected.pop("requested", None)  # the first versions did not note requests
    if expected != stored:
        yield "the state stored with it was changed"
        guard.state = load_state(type(guard.state), stored)
