"""Activates telemetry only in programs that use OpenTelemetry; others import none of it."""

import logging
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ...storage.view_reader import ViewReader
    from ..compaction.options import CompactionRequest
    from ..idle.notices import WorkerNotice
    from .metrics import CompactingLoop
    from .spans import CompactionTelemetry

logger = logging.getLogger("cutbank.telemetry")


def is_telemetry_used() -> bool:
    """Return whether the program has imported the OpenTelemetry API, as any listener must."""
    known = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return known and _is_new_enough()


def make_compaction_watch(
    reader: "ViewReader", request: "CompactionRequest"
) -> "CompactionTelemetry | None":
    """Return what traces one compaction, None without telemetry."""
    if not is_telemetry_used():
        return None
    from .spans import CompactionTelemetry  # noqa: PLC0415 - only with telemetry

    return CompactionTelemetry(reader, request)


def record_notice(notice: "WorkerNotice") -> None:
    if not is_telemetry_used():
        return
    from .metrics import record_worker_metrics  # noqa: PLC0415 - as above

    record_worker_metrics(notice)


_L = TypeVar("_L", bound="CompactingLoop")
_V = TypeVar("_V")


def measure_preparation(prepare: Callable[[_L], _V]) -> Callable[[_L], _V]:
    """Measure how long an agent waits for its next view."""

    @wraps(prepare)
    def measure_and_prepare(loop: _L) -> _V:
        if not is_telemetry_used():
            return prepare(loop)
        from .metrics import measure_wait  # noqa: PLC0415 - as above

        with measure_wait(loop):
            return prepare(loop)

    return measure_and_prepare


@lru_cache(maxsize=1)
def _is_new_enough() -> bool:
    """Return whether the API has all that is needed; log a warning once if not."""
    from opentelemetry.metrics import Meter  # noqa: PLC0415 - as above

    if "explicit_bucket_boundaries_advisory" in signature(Meter.create_histogram).parameters:
        return True
    logger.warning(
        "no telemetry of compactions: it needs opentelemetry-api 1.30 or newer, "
        "which pip install 'cutbank[telemetry]' brings"
    )
    return False
