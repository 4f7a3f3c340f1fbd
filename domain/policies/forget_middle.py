"""Past a number of events, keep the first and the newest, and summarize those between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..blocks import BlockKind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..item import WindowItem
from ..ranges import Ranges
from ..settings import setting
from ..window import Plan, Window
from .policy import ThresholdPolicy, make_setting_error, token_setting


@dataclass(frozen=True)
class ForgetMiddle(ThresholdPolicy):
    """Follows OpenHands' `LLMSummarizingCondenser`: half of the events stay.

    An event is a message, a call with what the model said before it, or a result; the summary is
    one too. Asked for a compaction, it keeps half of what there is.
    """

    name: ClassVar[str] = "forget-middle"
    alias: ClassVar[str] = "openhands"
    source: ClassVar[str] = "OpenHands/software-agent-sdk, llm_summarizing_condenser.py"

    max_size: int = setting(120, unit="events", least=1, help="in the view and more fires")
    max_tokens: int | None = token_setting(None, help="in use and more fires; none is off")
    keep_first: int = setting(4, unit="events", least=0, help="at the beginning always stay")
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_first + 1 >= self.max_size // 2:
            raise make_setting_error(
                self, "keep_first", f"is {self.keep_first} of the {self.max_size // 2} that stay"
            )

    def fires(self, window: Window) -> bool:
        if self.max_tokens is not None and window.used_tokens > self.max_tokens:
            return True
        events = window.find_once(__name__, lambda: group_events(window.items))
        return len(events) + (window.summary is not None) > self.max_size

    def find_plan(self, window: Window) -> Plan | None:
        events = group_events(window.items)
        size = len(events) + (window.summary is not None)
        half = (self.max_size if window.trigger is Trigger.THRESHOLD else size) // 2
        newest = half - self.keep_first - 1  # one is the summary
        middle = events[self.keep_first : len(events) - max(newest, 0)]
        if not middle:
            raise NothingToCompactError(
                f"nothing to compact: of {size:,} events the first {self.keep_first} and the"
                f" newest {max(newest, 0)} stay"
            )
        return Plan(
            None,
            f"{window.trigger}: of {size:,} events the first {self.keep_first} and the newest"
            f" {max(newest, 0)} are kept",
            self.summary_tokens,
            drops=Ranges.of(item.position for event in middle for item in event),
        )


def group_events(items: Sequence[WindowItem]) -> list[list[WindowItem]]:
    """Return the items in events: what a model says before a call belongs to the call."""
    events: list[list[WindowItem]] = []
    message: str | None = None
    for item in items:
        if message is not None and item.message == message:
            events[-1].append(item)
        else:
            events.append([item])
        message = item.message if item.kind in _THOUGHTS else None
    return events


_THOUGHTS = {BlockKind.THINKING, BlockKind.ASSISTANT}
"""What may be said before a call."""
