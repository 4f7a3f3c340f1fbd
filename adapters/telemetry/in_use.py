"""Watches in programs that use OpenTelemetry: others import nothing of it, and pay nothing."""

import sys
from typing import TYPE_CHECKING

from ..compacting.watch import Watch

if TYPE_CHECKING:
    from ..compacting.order import Order
    from ..idle.notices import Notice
    from ..view_reader import ViewReader


def is_in_use() -> bool:
    """Whether anybody could hear of a span or metric: whoever wants to has imported the API."""
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules


def watch_of(reader: "ViewReader", order: "Order") -> Watch:
    """Makes spans and metrics of one compaction."""
    if not is_in_use():
        return Watch()
    from .compaction_watch import CompactionWatch  # noqa: PLC0415 - others pay nothing

    return CompactionWatch(reader, order)


def hear(notice: "Notice") -> None:
    """Makes metrics of what an idle worker says of its work."""
    if not is_in_use():
        return
    from .worker_metrics import measure  # noqa: PLC0415 - as above

    measure(notice)
