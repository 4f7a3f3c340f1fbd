"""Past the limit less a reserve, keep the newest tokens, back to the end of a finished message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..blocks import BlockKind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..item import Role, WindowItem, find_message_start, find_role
from ..settings import setting
from ..summaries.templates import TunacodeTemplate
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import ThresholdPolicy, token_setting

_TEMPLATE = TunacodeTemplate()


@dataclass(frozen=True)
class RetentionWindow(ThresholdPolicy):
    """Follows alchemiststudiosDOTai/tunacode: fires above limit - reserve - keep.

    A cut is right after a prompt or a finished message of the model, and never before a tool
    result. If the budget is reached elsewhere, the cut moves back and keeps more.
    """

    name: ClassVar[str] = "retention-window"
    alias: ClassVar[str] = "tunacode"
    source: ClassVar[str] = "alchemiststudiosDOTai/tunacode, plan of the compaction system"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"as_shipped": {}, "later": {}}
    splits_runs: ClassVar[bool] = True
    """Whether a long run of tool calls is cut inside if it would fire again by itself."""

    keep_recent_tokens: int = token_setting(
        20_000, help="of the newest stay word for word, or a little more"
    )
    reserve_tokens: int = token_setting(
        16_384, help="stay free below the limit, in addition to the kept tokens"
    )
    summary_tokens: int = token_setting(
        4_096, least=1, help="the summary may take; the agent's own cap for answers"
    )
    on_failure: str = setting(
        OnFailure.UNCHANGED.value, among=OnFailure, help="what happens where no summary can be had"
    )

    def find_plan(self, window: Window) -> Plan | None:
        meant, items = self.find_budget_index(window), window.open_to_cut
        at, reason = self.find_cut(window, meant), self._write_reason(window)
        if at < meant and (not at or (self.splits_runs and self._is_due_again(window, at))):
            # No message ends near the budget's cut, so take that cut if it keeps enough.
            at = meant
            reason += "; no finished message ends shortly before the kept blocks"
        if at:
            return Plan(
                items[at].position if at < len(items) else items[-1].place + 1,
                reason,
                self.summary_tokens,
                template=_TEMPLATE,
                on_failure=OnFailure(self.on_failure),
            )
        if window.trigger is Trigger.IDLE:
            return None
        raise NothingToCompactError(
            f"nothing to compact: of {window.tokens:,} tokens in view {window.running[-1]:,} may "
            f"leave, and keep_recent_tokens has the newest {self.keep_recent_tokens:,} kept; set "
            "it lower, or use a model that holds more"
        )

    def fires(self, window: Window) -> bool:
        """Check whether the threshold is passed; never without a known limit or any blocks."""
        return window.limit > 0 and window.used_tokens > self.compute_threshold(window.limit)

    def compute_threshold(self, limit: int) -> int:
        """Return how many tokens may be in use; at least 0."""
        return max(0, limit - self.reserve_tokens - self.keep_recent_tokens)

    # Where

    def find_cut(self, window: Window, meant: int) -> int:
        """Return the index of the first item to keep, by the document's rules; 0 for no cut.

        One past the newest item if all of them may leave; `meant` is where the budget would cut.
        """
        at = self.snap_back(window.open_to_cut, meant)
        if not at and not window.trigger.is_automatic:
            at = self.snap_back(window.open_to_cut, len(window.open_to_cut))
        return at

    def find_budget_index(self, window: Window) -> int:
        """Return where the oldest message begins that the budget keeps; 0 if all fits."""
        at = find_budget_index(window.running, self.keep_recent_tokens)
        return 0 if at is None else find_message_start(window.open_to_cut, at)

    def snap_back(self, items: Sequence[WindowItem], at: int) -> int:
        """Return the newest valid cut up to here; 0 if there is none."""
        while at > 0 and not self.is_valid_cut(items, at):
            at = find_message_start(items, at - 1)
        return at

    def is_valid_cut(self, items: Sequence[WindowItem], at: int) -> bool:
        """Check whether a cut may be before the item, or after all of them."""
        if at < len(items) and items[at].kind is BlockKind.TOOL_RESULT:
            return False
        role = find_role(items[at - 1])
        if role is not Role.ASSISTANT:
            return role is Role.USER
        message = items[find_message_start(items, at - 1) : at]
        return self.is_finished(message)

    def is_finished(self, message: Sequence[WindowItem]) -> bool:
        return not any(item.is_unfinished for item in message)

    def _is_due_again(self, window: Window, at: int) -> bool:
        """Check whether the items from there on pass the threshold by themselves."""
        kept = window.running[-1] - window.running[at]
        return window.limit > 0 and kept > self.compute_threshold(window.limit)

    def _write_reason(self, window: Window) -> str:
        if not window.trigger.is_automatic:
            return f"{window.trigger}: {window.used_tokens:,} tokens in use"
        return (
            f"{window.used_tokens:,} of {window.limit:,} tokens in use, more than "
            f"{self.compute_threshold(window.limit):,}: {self.reserve_tokens:,} are reserved, "
            f"and the newest {self.keep_recent_tokens:,} are kept"
        )
