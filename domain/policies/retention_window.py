"""Past the limit less a reserve, keep the newest tokens, back to the end of a finished message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ..blocks import Kind, Media, ToolCall
from ..compaction_events import Trigger
from ..counting.estimators import (
    TUNACODE_ESTIMATOR,
    Estimator,
    SizeUnit,
    configure_estimator,
)
from ..errors import NothingToCompactError
from ..item import Item
from ..messages import Role, find_message_start, find_role, iter_message_spans_back
from ..settings import setting
from ..summaries.templates import TunacodeTemplate
from ..window import OnFailure, Plan, Window, find_budget_index
from .policy import check_settings, quirk, token_setting

_TEMPLATE = TunacodeTemplate()
_BUDGET, _LATEST, _EITHER = "budget", "latest", "either"
"""Where a forced compaction cuts."""


@dataclass(frozen=True)
class RetentionWindow:
    """Follows alchemiststudiosDOTai/tunacode: fires above limit - reserve - keep.

    A cut is right after a prompt or a finished message of the model, and never before a tool
    result. If the budget is reached elsewhere, the cut moves back and keeps more.
    """

    name: ClassVar[str] = "retention-window"
    alias: ClassVar[str] = "tunacode"
    source: ClassVar[str] = "alchemiststudiosDOTai/tunacode, plan of the compaction system"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {"unit": "code-points", "forced_cut": _BUDGET, "splits_runs": False},
        "later": {
            "unit": "code-points",
            "forced_cut": _LATEST,
            "cuts_after_unfinished": True,
            "splits_runs": False,
        },
    }

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

    # What the presets change.
    unit: str = quirk(SizeUnit.RECKONED)
    forced_cut: str = quirk(_EITHER)
    cuts_after_unfinished: bool = quirk(False)
    splits_runs: bool = quirk(True)

    def __post_init__(self) -> None:
        check_settings(self)

    def plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        meant = self._find_budget_index(window) or 0
        at, reason = self.find_cut(window, meant), self._write_reason(window)
        items = window.open_to_cut
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
        raise NothingToCompactError(self._explain_no_cut(window))

    def fires(self, window: Window) -> bool:
        """Check whether the threshold is passed; never without a known limit or any blocks."""
        return self._is_past(window, window.items, window.used_tokens)

    def compute_threshold(self, limit: int) -> int:
        """Return how many tokens may be in use; at least 0."""
        return max(0, limit - self.reserve_tokens - self.keep_recent_tokens)

    def count_tokens(self, message: Sequence[Item]) -> int:
        """Return the size of one message, in the unit of this policy."""
        if self._estimator is None:
            return sum(item.tokens for item in message)
        return self._estimator.count_message([item.block for item in message])

    # How

    @cached_property
    def _estimator(self) -> Estimator | None:
        return configure_estimator(
            TUNACODE_ESTIMATOR,
            self.unit,
            read_call=_read_python_call,
            describe_media=_describe_media,
        )

    def find_cut(self, window: Window, meant: int | None = None) -> int:
        """Return the index of the first item to keep, by the document's rules; 0 for no cut.

        One past the newest item if all of them may leave.
        """
        items, at = window.open_to_cut, 0
        meant = (self._find_budget_index(window) or 0) if meant is None else meant
        is_forced = not window.trigger.is_automatic
        if not is_forced or self.forced_cut != _LATEST:
            at = self._snap_back(items, meant)
        if is_forced and not at and self.forced_cut != _BUDGET:
            at = self._snap_back(items, len(items))
        return at

    def _is_due_again(self, window: Window, at: int) -> bool:
        """Check whether the items from there on pass the threshold by themselves."""
        kept = window.running[-1] - window.running[at]
        return self._is_past(window, window.open_to_cut[at:], kept)

    def _is_past(self, window: Window, items: Sequence[Item], tokens: int) -> bool:
        """Check whether items pass the threshold, which are `tokens` by the store's count."""
        if window.limit <= 0:
            return False
        threshold = self.compute_threshold(window.limit)
        if self._estimator is None:
            return tokens > threshold
        used = 0
        for start, end in iter_message_spans_back(items):
            used += self.count_tokens(items[start:end])
            if used > threshold:
                return True
        return False

    def _find_budget_index(self, window: Window) -> int | None:
        """Return where the oldest message begins that the budget keeps; None if all fits."""
        items, keep = window.open_to_cut, self.keep_recent_tokens
        if self._estimator is not None:
            kept = 0
            for start, end in iter_message_spans_back(items):
                kept += self.count_tokens(items[start:end])
                if kept >= keep:
                    return start
            return None
        at = find_budget_index(window.running, keep, inclusive=True)
        return None if at is None else find_message_start(items, at)

    def _snap_back(self, items: Sequence[Item], at: int) -> int:
        """Return the newest valid cut up to here; 0 if there is none."""
        while at > 0 and not self.is_valid_cut(items, at):
            at = find_message_start(items, at - 1)
        return at

    def is_valid_cut(self, items: Sequence[Item], at: int) -> bool:
        """Check whether a cut may be before the item, or after all of them."""
        if at < len(items) and items[at].kind is Kind.TOOL_RESULT:
            return False
        role = find_role(items[at - 1])
        if role is not Role.ASSISTANT:
            return role is Role.USER
        message = items[find_message_start(items, at - 1) : at]
        if not any(item.is_unfinished for item in message):
            return True
        return self.cuts_after_unfinished and _is_text_only(message)

    def _write_reason(self, window: Window) -> str:
        if not window.trigger.is_automatic:
            return f"{window.trigger}: {window.used_tokens:,} tokens in use"
        return (
            f"{window.used_tokens:,} of {window.limit:,} tokens in use, more than "
            f"{self.compute_threshold(window.limit):,}: {self.reserve_tokens:,} are reserved, "
            f"and the newest {self.keep_recent_tokens:,} are kept"
        )

    def _explain_no_cut(self, window: Window) -> str:
        return (
            f"nothing to compact: of {window.tokens:,} tokens in view {window.running[-1]:,} may "
            f"leave, and keep_recent_tokens has the newest {self.keep_recent_tokens:,} kept; set "
            "it lower, or use a model that holds more"
        )


def _read_python_call(call: ToolCall) -> tuple[str, str, str]:
    """Return the texts of a call that count: the arguments as Python prints them."""
    return call.tool_call_id, call.name, str(call.parse_arguments())


def _describe_media(media: Media) -> str:
    """Return the text that an image or document counts as: its address, or a placeholder."""
    return media.url or f"[{media.type}]"


def _is_text_only(message: Sequence[Item]) -> bool:
    kinds = {item.kind for item in message}
    if Kind.TOOL_CALL in kinds:
        return False
    return any(item.kind is Kind.ASSISTANT and item.block.text.strip() for item in message)
