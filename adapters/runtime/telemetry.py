"""Emits OpenTelemetry spans and metrics in programs that use it; others import none of it."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..storage.view_reader import ViewReader
    from .compaction.options import CompactionRequest
    from .compaction.outcome import CompactionOutcome
    from .idle.notices import WorkerNotice
    from .open_telemetry import CompactionTelemetry


def make_compaction_watch(
    reader: "ViewReader", request: "CompactionRequest"
) -> "CompactionTelemetry | None":
    """Return what traces one compaction, None without telemetry."""
    if not _is_used():
        return None
    from .open_telemetry import CompactionTelemetry  # noqa: PLC0415 - the optional extra `telemetry`

    return CompactionTelemetry(reader, request)


def measure_wait(
    find_outcome: Callable[[], "CompactionOutcome | None"],
) -> AbstractContextManager[None]:
    """Measure how long an agent waits for its next view; its loop's newest outcome is asked for."""
    if not _is_used():
        return nullcontext()
    from .open_telemetry import measure_preparation  # noqa: PLC0415 - as above

    return measure_preparation(find_outcome)


def record_notice(notice: "WorkerNotice") -> None:
    if _is_used():
        from .open_telemetry import record_worker_metrics  # noqa: PLC0415 - as above

        record_worker_metrics(notice)


def _is_used() -> bool:
    """Return whether the program has imported the OpenTelemetry API, as any listener must."""
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
