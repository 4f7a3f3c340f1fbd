"""After every so many turns, summarize them, but for the newest ones."""

from dataclasses import dataclass
from typing import ClassVar

from ..errors import NothingToCompactError
from ..settings import setting
from ..window import Plan, Window
from .policy import ThresholdPolicy, token_setting


@dataclass(frozen=True)
class TurnInterval(ThresholdPolicy):
    """Follows ADK's sliding window: `interval` new turns are due; `overlap` of them stay.

    ADK summarizes the overlapping turns twice, so that summaries connect; here they stay word for
    word until the next time. A turn that is not over never leaves.
    """

    name: ClassVar[str] = "turn-interval"
    alias: ClassVar[str] = "google-adk"
    source: ClassVar[str] = "google/adk-python, src/google/adk/apps/compaction.py"

    interval: int = setting(5, unit="turns", least=1, help="and more since the last time fire")
    overlap: int = setting(1, unit="turns", least=0, help="of these stay for the next time")
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def fires(self, window: Window) -> bool:
        return self._count_new(window) >= self.interval

    def find_plan(self, window: Window) -> Plan | None:
        turns = self._list_turns(window)
        leaving = turns[: len(turns) - self.overlap]
        if not leaving:
            raise NothingToCompactError(
                f"nothing to compact: {len(turns)} turns are over, and {self.overlap} stay"
            )
        cut = next(item.position for item in window.open_to_cut if item.turn > leaving[-1])
        reason = f"{window.trigger}: {self._count_new(window)} turns since the last time"
        return Plan(cut, f"{reason}; {self.overlap} of them stay", self.summary_tokens)

    def _count_new(self, window: Window) -> int:
        """Return the turns that are over and that no compaction has seen."""
        turns = self._list_turns(window)
        return len(turns) if window.boundary is None else max(0, len(turns) - self.overlap)

    def _list_turns(self, window: Window) -> list[int]:
        """Return the turns that may leave, without the newest one, which goes on."""
        return sorted({item.turn for item in window.open_to_cut})[:-1]
