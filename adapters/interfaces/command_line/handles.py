"""Parses handles as people write them, and reads the blocks of a log that they name."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ....domain.blocks import AnyBlock
from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges
from ....domain.settlement import BlockStatus, find_block_status
from ...runtime.sessions.recall import RECALL_PAGE_EVENTS, read_recalled
from ...runtime.sessions.stored_session import StoredSession
from ...storage.view_reader import ViewReader

FindNewest = Callable[[int], int]
"""Returns the position of the newest block, or of the one that many blocks before it."""

_NUMBER = r"#?[0-9]{1,15}"
_POINT = re.compile(rf"(?P<number>{_NUMBER})|last(?:-(?P<back>[0-9]{{1,9}}))?", re.IGNORECASE)
_RANGE = re.compile(rf"(?P<first>{_NUMBER})-(?P<last>{_NUMBER})")
_SEPARATOR = re.compile(r"[\s,]+")


def parse_handles(words: Iterable[str], newest: FindNewest) -> Ranges:
    """Return the positions that words name; `newest` is only called for `last`.

    A range is written `3-9`, or `3..9` if one end is `last`: in `last-3` the dash counts back. All
    handles that cutbank prints are accepted.
    """
    named = Ranges()
    for word in words:
        for part in filter(None, _SEPARATOR.split(word)):
            named |= _parse_range(part, newest)
    if not named:
        raise InvalidPositionError("no handle was given: write 12, 3-9 or last")
    return named


def parse_handle(word: str, newest: FindNewest) -> int:
    found = _POINT.fullmatch(word.strip())
    if found is None:
        raise InvalidPositionError(f"{word!r} is not a handle: write 12, '#12', last or last-3")
    if found["number"]:
        return _parse_positive(found["number"])
    return newest(int(found["back"] or 0))


def find_position(session: StoredSession, word: str) -> int:
    return parse_handle(word, lambda back: BlockLog(session).find_newest(back))


def _parse_range(part: str, newest: FindNewest) -> Ranges:
    if dashed := _RANGE.fullmatch(part):
        first, last = _parse_positive(dashed["first"]), _parse_positive(dashed["last"])
    elif ".." in part:
        first, last = (parse_handle(end, newest) for end in part.split("..", maxsplit=1))
    else:
        first = last = parse_handle(part, newest)
    if first > last:
        raise InvalidPositionError(f"{part!r} ends before it begins: write {last}-{first}")
    return Ranges.span(first, last)


def _parse_positive(number: str) -> int:
    found = int(number.removeprefix("#"))
    if found < 1:
        raise InvalidPositionError("handles begin at #1")
    return found


@dataclass(frozen=True, slots=True)
class LoggedBlock:
    position: int
    turn: int
    block: AnyBlock
    status: BlockStatus | None
    """None if the boundary lacks it, which `verify` reports."""
    pending: str | None = None
    """The effect of the next boundary: `pinned`, `unpinned` or `hidden`."""
    is_open: bool = False


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
