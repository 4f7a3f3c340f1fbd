"""Measures how long compactions delay an agent's next model call."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from ..compaction.outcome import CompactionOutcome
from .error_logging import log_errors
from .instruments import get_instruments

COMPACTED_WAIT, SERVED_WAIT, FAILED_WAIT = "compacted", "served", "failed"


class CompactingLoop(Protocol):
    """A loop that compacts by itself and keeps its newest outcome."""

    last: CompactionOutcome | None


@contextmanager
def measure_wait(loop: CompactingLoop) -> Iterator[None]:
    began, before, outcome = monotonic(), loop.last, FAILED_WAIT
    try:
        yield
        is_new = loop.last is not before and loop.last is not None and loop.last.compacted
        outcome = COMPACTED_WAIT if is_new else SERVED_WAIT
    finally:
        with log_errors("an agent's wait"):
            took = monotonic() - began
            get_instruments().prepare_duration.record(took, {"cutbank.prepare.outcome": outcome})
