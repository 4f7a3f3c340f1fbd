"""Watches in programs that use OpenTelemetry: others import nothing of it, and pay nothing."""

import logging
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, TypeVar

from ..compaction.watch import Watch

if TYPE_CHECKING:
    from ...storage.view_reader import ViewReader
    from ..compaction.order import Order
    from ..idle.notices import Notice
    from .waiting import Compacts

logger = logging.getLogger("cutbank.telemetry")


def is_in_use() -> bool:
    """Whether anybody could hear of a span or metric: whoever wants to has imported the API."""
    known = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return known and _is_new_enough()


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


L = TypeVar("L", bound="Compacts")
V = TypeVar("V")


def timed(prepare: Callable[[L], V]) -> Callable[[L], V]:
    """Measures how long an agent waits for what it sends to its model."""

    @wraps(prepare)
    def prepared(loop: L) -> V:
        if not is_in_use():
            return prepare(loop)
        from .waiting import waiting  # noqa: PLC0415 - as above

        with waiting(loop):
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
