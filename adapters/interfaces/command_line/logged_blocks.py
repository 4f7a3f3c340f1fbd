"""Reads the blocks of a log with their status in the newest view of a lineage."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....domain.blocks import AnyBlock
from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges
from ....domain.settlement import BlockStatus, find_block_status
from ...runtime.sessions.recall import RECALL_PAGE_EVENTS, read_recalled
from ...runtime.sessions.stored_session import StoredSession
from ...storage.view_reader import ViewReader


@dataclass(frozen=True, slots=True)
class LoggedBlock:
    """One block of the log."""

    position: int
    turn: int
    block: AnyBlock
    status: BlockStatus | None
    """None if the boundary lacks it, which `verify` reports."""
    pending: str | None = None
    """The effect of the next boundary: `pinned`, `unpinned` or `hidden`."""
    is_open: bool = False
    """Whether it is a tool call without a result."""


class BlockLog:
    """The current log of one session, read page by page."""

    def __init__(self, session: StoredSession, lineage: str = MAIN_LINEAGE) -> None:
        self.session = session
        self.view = session.view(lineage=lineage)
        self._events = session.log.events
        self._chain = self._events.find_session_chain(session.namespace, session.key)
        reader = ViewReader(self._events, session.namespace, session.key, lineage)
        self._history = reader.read_history()[0]
        self.position = self.view.coordinate.position
        self.retracted = reader.read_retracted(self.position)

    def read_between(self, first: int, last: int) -> Iterator[LoggedBlock]:
        """Yield the blocks between two positions, both included."""
        if (end := max(first, last)) > self.position:
            raise InvalidPositionError(
                f"#{end} does not exist: the session ends at #{self.position}"
            )
        if first > last:
            raise InvalidPositionError(f"nothing lies between: #{first} comes after #{last}")
        return self._read(Ranges.span(first, last))

    def _read(self, positions: Ranges) -> Iterator[LoggedBlock]:
        boundary, summary = self.view.boundary, self.view.summary
        for found in read_recalled(self._events, self._chain, positions):
            became = find_block_status(found.position, boundary, summary, self.retracted)
            yield LoggedBlock(
                position=found.position,
                turn=found.turn,
                block=found.block,
                status=became,
                pending=self._find_pending(found.position, became),
                is_open=found.position in self._history.open_calls,
            )

    def find_newest(self, back: int = 0) -> int:
        """Return the position of the newest block, or of the one `back` blocks before it."""
        wanted, last = back, self.position
        while last > 0:
            first = max(1, last - RECALL_PAGE_EVENTS + 1)
            page = read_recalled(self._events, self._chain, Ranges.span(first, last))
            found = [block.position for block in page if block.position not in self.retracted]
            if wanted < len(found):
                return found[-1 - wanted]
            wanted -= len(found)
            last = first - 1
        name = f"last-{back}" if back else "last"
        raise InvalidPositionError(
            f"{name} does not exist: session {self.session.key!r} has {back - wanted} blocks"
        )

    def _find_pending(self, position: int, became: BlockStatus | None) -> str | None:
        if became is BlockStatus.RETRACTED:
            return None
        is_pinned = position in self._history.pinned
        if is_pinned is not (became is BlockStatus.PINNED):
            return "pinned" if is_pinned else "unpinned"
        return "hidden" if position in self._history.hides and not is_pinned else None
