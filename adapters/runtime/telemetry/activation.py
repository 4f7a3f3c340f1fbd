"""Watches in programs that use OpenTelemetry: others import nothing of it, and pay nothing."""

import logging
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, TypeVar

from ..compaction.compaction_observer import CompactionObserver

if TYPE_CHECKING:
    from ...storage.view_reader import ViewReader
    from ..compaction.compaction_request import CompactionRequest
    from ..idle.notices import WorkerNotice
    from .wait_time import CompactingLoop

logger = logging.getLogger("cutbank.telemetry")


def is_telemetry_used() -> bool:
    """Whether anybody could hear of a span or metric: whoever wants to has imported the API."""
    known = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return known and _is_new_enough()


def make_compaction_watch(reader: "ViewReader", order: "CompactionRequest") -> CompactionObserver:
    """Makes spans and metrics of one compaction."""
    if not is_telemetry_used():
        return CompactionObserver()
    from .compaction_telemetry import CompactionTelemetry  # noqa: PLC0415 - others pay nothing

    return CompactionTelemetry(reader, order)


def record_notice(notice: "WorkerNotice") -> None:
    """Makes metrics of what an idle worker says of its work."""
    if not is_telemetry_used():
        return
    from .worker_metrics import record_worker_metrics  # noqa: PLC0415 - as above

    record_worker_metrics(notice)


_L = TypeVar("_L", bound="CompactingLoop")
_V = TypeVar("_V")


def measure_preparation(prepare: Callable[[_L], _V]) -> Callable[[_L], _V]:
    """Measures how long an agent waits for what it sends to its model."""

    @wraps(prepare)
    def prepared(loop: _L) -> _V:
        if not is_telemetry_used():
            return prepare(loop)
        from .wait_time import measure_wait  # noqa: PLC0415 - as above

        with measure_wait(loop):
            return prepare(loop)

    return prepared


@lru_cache(maxsize=1)
def _is_new_enough() -> bool:
    """Whether the API knows all that is asked of it; where it does not, that is said once."""
    from opentelemetry.metrics import Meter  # noqa: PLC0415 - as above

    if "explicit_bucket_boundaries_advisory" in signature(Meter.create_histogram).parameters:
        return True
    logger.warning(
        "no telemetry of compactions: it needs opentelemetry-api 1.30 or newer, "
        "which pip install 'cutbank[telemetry]' brings"
    )
    return False
