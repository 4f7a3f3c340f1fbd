"""Notifies listeners, and collects what they answer."""

import logging
from collections.abc import Sequence

from ....domain.hooks import CompactionEvent, Listener, Veto

logger = logging.getLogger("cutbank.compaction")


def notify_listeners(listeners: Sequence[Listener], happening: CompactionEvent) -> list[Veto]:
    """What the listeners answer to a moment; one that fails is logged and the others are told."""
    verdicts = []
    for listener in listeners:
        try:
            verdict = listener(happening)
        except Exception:  # whatever a listener does, the session goes on
            logger.exception("a listener failed at %s of %r", happening.moment, happening.session)
        else:
            if verdict is not None:
                verdicts.append(verdict)
    return verdicts
