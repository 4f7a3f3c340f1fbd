"""Goes along with one compaction, from before it is planned until after it has ended."""

from types import TracebackType
from typing import Self

from ....domain.hooks import CompactionEvent
from .outcome import CompactionOutcome


class CompactionObserver:
    """Is entered when a compaction begins, told each of its moments, and left when it ends.

    A listener hears of a compaction once there is a plan, and not always of its end; a watch goes
    along with each. It never raises. This one takes no notice.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """It has ended: by `error`, or else with the outcome that was told before."""

    def __call__(self, happening: CompactionEvent) -> None:
        """A moment of it has come, told before the listeners hear of it."""

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        """The outcome, as it is."""
        return outcome
