"""Measures what an agent feels of compactions: how long it waits before it may ask its model."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from ..compaction.outcome import Outcome
from .instruments import instruments
from .unharmed import unharmed

COMPACTED, SERVED, FAILED = "compacted", "served", "failed"


class Compacts(Protocol):
    """Whatever compacts by itself, and knows what came of it."""

    last: Outcome | None


@contextmanager
def waiting(loop: Compacts) -> Iterator[None]:
    """What happens within is what the agent waits for."""
    began, before, outcome = monotonic(), loop.last, FAILED
    try:
        yield
        is_new = loop.last is not before and loop.last is not None and loop.last.compacted
        outcome = COMPACTED if is_new else SERVED
    finally:
        with unharmed("an agent's wait"):
            took = monotonic() - began
            instruments().prepare_duration.record(took, {"cutbank.prepare.outcome": outcome})
