"""A file of very many sessions at rest, of which some are large enough to be compacted."""

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.session import Session
from cutbank.domain.token_estimate import estimate_text

from .workload import Piece, as_block, turns

RESTED = timedelta(hours=2)
TOKENS, MOST_TOKENS = 100_000, 10_000
"""Of a large session, and of any one block in it: where one alone is larger than all that is
kept, nothing is gained."""
LARGE_TOGETHER, SMALL_TOGETHER = 10, 1_000
"""Sessions that are stored in one transaction."""


@dataclass(frozen=True)
class Resting:
    """Where they are kept, and how many of them are large."""

    address: str
    due: int

    def begin(self) -> None:
        """The large ones, by the store's own mapper and recorder; no two say the same."""
        with closing(self._before()) as store:
            said = (turn for turn in turns(seed=9) if _can_be_cut(turn))
            for first in range(0, self.due, LARGE_TOGETHER):
                keys = range(first, min(first + LARGE_TOGETHER, self.due))
                opened = [_opened(store, f"large-{number}") for number in keys]
                for session in opened:
                    while session.state.tokens < TOKENS:
                        for piece in next(said):
                            session.append(as_block(piece))
                store.events.save(*opened)

    def grow(self, sizes: tuple[int, int]) -> None:
        """From so many sessions to so many, by small ones that need nothing."""
        before, size = sizes
        with closing(self._before()) as store:
            for first in range(max(before, self.due), size, SMALL_TOGETHER):
                keys = range(first, min(first + SMALL_TOGETHER, size))
                opened = [_opened(store, f"small-{number}") for number in keys]
                for session in opened:
                    session.append(Block.user(f"What is {session.id}? " * 4))
                store.events.save(*opened)

    def store(self) -> SessionStore:
        return open_store(self.address)

    def _before(self) -> SessionStore:
        """As it was opened when they were still talked in."""
        then = datetime.now(UTC) - RESTED
        return open_store(self.address, synchronous="NORMAL", clock=lambda: then)


def _can_be_cut(turn: list[Piece]) -> bool:
    return all(estimate_text(piece["text"]) <= MOST_TOKENS for piece in turn)


def _opened(store: SessionStore, key: str) -> Session:
    return Session.open("default", key, clock=store.events.clock)
