"""Activates telemetry only in programs that use OpenTelemetry; others import none of it."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...storage.view_reader import ViewReader
    from ..compaction.options import CompactionRequest
    from ..compaction.outcome import CompactionOutcome
    from ..idle.notices import WorkerNotice
    from .spans import CompactionTelemetry

logger = logging.getLogger("cutbank.telemetry")


def make_compaction_watch(
    reader: "ViewReader", request: "CompactionRequest"
) -> "CompactionTelemetry | None":
    """Return what traces one compaction, None without telemetry."""
    if not _is_used():
        return None
    from .spans import CompactionTelemetry  # noqa: PLC0415 - only with telemetry

    return CompactionTelemetry(reader, request)


def measure_wait(
    find_outcome: Callable[[], "CompactionOutcome | None"],
) -> AbstractContextManager[None]:
    """Measure how long an agent waits for its next view; its loop's newest outcome is asked for."""
    if not _is_used():
        return nullcontext()
    from .metrics import measure_preparation  # noqa: PLC0415 - as above

    return measure_preparation(find_outcome)


def record_notice(notice: "WorkerNotice") -> None:
    if _is_used():
        from .metrics import record_worker_metrics  # noqa: PLC0415 - as above

        record_worker_metrics(notice)


def _is_used() -> bool:
    """Return whether the program has imported the OpenTelemetry API, as any listener must."""
    known = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return known and _is_new_enough()


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
