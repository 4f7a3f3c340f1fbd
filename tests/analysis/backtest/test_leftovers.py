"""What measured sessions leave behind in cycles is never more than the largest of them."""

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from cutbank.adapters.analysis.backtest.worker import GarbageCollector


class Session:
    """One that knows itself, so that nobody but the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def _nobody_else_looks() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_nobody_else_looks")
def test_what_is_left_is_freed_once_it_may_be_as_much_as_the_largest_session() -> None:
    leftovers = GarbageCollector()

    left: list[tuple[int, ref[Session]]] = []
    for blocks in (100, 60, 30, 20, 5, 1):
        left.append((blocks, ref(Session())))
        leftovers.note_session(blocks)
        assert sum(size for size, session in left if session() is not None) < 100

    # A look for each of them would cost more than it frees.
    assert [session() is not None for _, session in left] == [False] * 4 + [True] * 2
