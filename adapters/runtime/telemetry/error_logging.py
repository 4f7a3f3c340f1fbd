"""Keeps what goes wrong in an exporter or processor away from what it only looks at."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("cutbank.telemetry")


@contextmanager
def log_errors(what: str) -> Iterator[None]:
    """Whatever is raised within is logged, and no more."""
    try:
        yield
    except Exception:  # span processors are anybody's, and may raise anything
        logger.exception("no telemetry of %s: nothing else was changed by it", what)
