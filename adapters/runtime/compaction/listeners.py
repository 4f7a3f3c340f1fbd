"""Notifies listeners and collects their answers, and tells displays what runs."""

import logging
from collections.abc import Callable, Sequence

from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener, Veto

logger = logging.getLogger("cutbank.compaction")


def notify_listeners(listeners: Sequence[Listener], event: CompactionEvent) -> list[Veto]:
    """Return the listeners' answers to an event; a listener that fails is logged and skipped."""
    answers = []
    for listener in listeners:
        try:
            answer = listener(event)
        except Exception:  # a failing listener must not stop the session
            logger.exception("a listener failed at %s of %r", event.moment, event.session)
        else:
            if answer is not None:
                answers.append(answer)
    return answers


_START_KINDS = frozenset({CompactionEventKind.REQUESTED})
_END_KINDS = frozenset({CompactionEventKind.RECORDED, CompactionEventKind.FAILED})


def make_status_listener(shows: Callable[[bool], None]) -> Listener:
    """Return a listener that shows True when a compaction starts work, and False after it.

    Each True is followed by one False, however the compaction ends.
    """

    def listens(event: CompactionEvent) -> None:
        if event.moment in _START_KINDS:
            shows(True)
        elif event.moment in _END_KINDS:
            shows(False)

    return listens
