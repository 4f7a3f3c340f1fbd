"""Observes one compaction, from before its plan until after its end."""

from types import TracebackType
from typing import Self

from ....domain.hooks import CompactionEvent
from .outcome import CompactionOutcome


class CompactionObserver:
    """Entered when a compaction begins, called with each of its events, and left when it ends.

    Listeners only hear of compactions that have a plan, and not always of the end; an observer sees
    each one whole. It never raises. This class ignores everything.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Note the end: by `error`, or with the outcome passed to `finish`."""

    def __call__(self, happening: CompactionEvent) -> None:
        """Note an event, before listeners get it."""

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        return outcome
