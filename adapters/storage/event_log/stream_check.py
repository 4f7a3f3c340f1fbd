"""Checks a stored stream: its positions, hashes and contents, and the state after each event."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from ....domain.compaction import Compaction, CompactionState
from ....domain.event import Aggregate, dump_state, load_state
from ....domain.session import Session, SessionState, derive_fork_state
from ....projections.view_content import RecordedEvent
from .event_mapper import load_json
from .event_store import EventStore
from .stored_row import StoredRow, Stream

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
    """Return the stream's aggregate as it was before its first event.

    A fork begins with the state of its parent, and a lineage with that of its base.
    """
    id, namespace, key, lineage = stream
    if lineage is None:
        state = SessionState()
        if fork := store.read_opening(namespace, key).fork:
            parent = store.find_session_chain(fork.namespace, fork.key)
            state = derive_fork_state(store.read_head(parent, fork.position)[1])
        return Session(id, version=0, state=state, subject="", clock=store.clock)
    inherited = CompactionState()
    if base := store.read_lineage_opening(id).base:
        found = store.recorder.select_head(base.originator_id, base.version)
        inherited = load_state(CompactionState, found[1] if found else {})
    return Compaction(id, version=0, state=inherited, subject="", clock=store.clock)


def check_stream(
    store: EventStore, id: UUID, first: int, last: int | None, guard: Aggregate[Any] | None = None
) -> Iterator[CheckedRow]:
    """Yield the rows of a stream with their problems; a `guard` also checks the stored states."""
    expected = first
    for row in read_rows(store, id, first, last):
        at = row.originator_version
        problems = [] if at == expected else [f"#{expected} is missing"]
        expected = at + 1
        problems += store.find_row_problems(row)
        recorded = None
        try:
            recorded = store.make_recorded(row)
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
    guard.evolve(recorded.event)
    try:
        stored = load_json(row.carried)
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        yield "the state stored with it cannot be read"
    elif dump_state(guard.state) != stored:
        yield "the state stored with it was changed"
        guard.state = load_state(type(guard.state), stored)
