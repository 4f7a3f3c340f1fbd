"""Notifies listeners and collects their answers."""

import logging
from collections.abc import Sequence

from ....domain.hooks import CompactionEvent, Listener, Veto

logger = logging.getLogger("cutbank.compaction")


def notify_listeners(listeners: Sequence[Listener], happening: CompactionEvent) -> list[Veto]:
    """Return the listeners' answers to an event; a listener that fails is logged and skipped."""
    verdicts = []
    for listener in listeners:
        try:
            verdict = listener(happening)
        except Exception:  # a failing listener must not stop the session
            logger.exception("a listener failed at %s of %r", happening.moment, happening.session)
        else:
            if verdict is not None:
                verdicts.append(verdict)
    return verdicts
