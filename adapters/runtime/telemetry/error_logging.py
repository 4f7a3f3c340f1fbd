"""Keeps failures of exporters and processors away from the code that they observe."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("cutbank.telemetry")


@contextmanager
def log_errors(what: str) -> Iterator[None]:
    """Log whatever is raised within this context, and suppress it."""
    try:
        yield
    except Exception:  # span processors may raise anything
        logger.exception("no telemetry of %s: nothing else was changed by it", what)
