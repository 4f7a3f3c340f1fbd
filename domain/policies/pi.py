"""Past the limit less a reserve, cut in front of the message that reaches what is to be kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..blocks import UNSENT_KINDS, BlockKind
from ..errors import NothingToCompactError
from ..item import WindowItem, find_message_start
from ..settings import setting
from ..summaries.templates import PiTemplate
from ..window import Plan, Window, find_budget_index
from .policy import ThresholdPolicy, token_setting, write_reserve_reason

_SUMMARY_SHARE, _TURN_SHARE = 0.8, 0.5
"""Of the reserve: for the summary, and for the beginning of a split turn."""


@dataclass(frozen=True)
class Pi(ThresholdPolicy):
    """The policy of pi-mono, from whose design those of kdcube, tunacode and klaude-code come.

    It has no document apart from its code. A cut may split a turn, and is never before a tool
    result: if the budget is reached there, the next message after it is the first kept.
    """

    name: ClassVar[str] = "pi"
    alias: ClassVar[str] = "pi-mono"
    source: ClassVar[str] = "badlogic/pi-mono: coding-agent/src/core/compaction"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"as_shipped": {}}
    fires_by_tokens: ClassVar[bool] = True
    fits_limit: ClassVar[bool] = True
    """Whether the settings are made smaller for a model with a small limit."""
    template: ClassVar[PiTemplate] = PiTemplate()

    enabled: bool = setting(True, help="compact unasked, past the threshold")
    reserve_tokens: int = token_setting(
        16_384, help="stay free below the limit; the summary fits into it"
    )
    keep_tokens: int = token_setting(20_000, help="of the newest stay word for word")

    def fires(self, window: Window) -> bool:
        """Check whether the reserve is in use; never if no limit is known."""
        if not self.enabled or window.limit <= 0:
            return False
        reserve, _ = self.find_headroom(window.limit)
        return self.count_in_use(window) > window.limit - reserve

    def find_plan(self, window: Window) -> Plan | None:
        reserve, keep = self.find_headroom(window.limit)
        return Plan(
            cut=self._find_cut(window, keep),
            reason=write_reserve_reason(window, reserve, keep),
            summary_tokens=int(_SUMMARY_SHARE * reserve),
            turn_tokens=int(_TURN_SHARE * reserve),
            template=self.template,
        )

    def count_in_use(self, window: Window) -> int:
        return window.used_tokens

    def find_headroom(self, limit: int) -> tuple[int, int]:
        """Return the reserve and the kept tokens for a model with `limit` tokens; 0 is unknown."""
        reserve, keep = self.reserve_tokens, self.keep_tokens
        if self.fits_limit and limit > 0:
            reserve = min(reserve, limit // 2)
            # The kept part must fit below the threshold, or the next call would compact again.
            keep = min(keep, limit - reserve)
        return reserve, keep

    # Where

    def _find_cut(self, window: Window, keep: int) -> int:
        """Return the cut; if the original would do nothing, the item that reached the budget."""
        items, at = self.list_open_items(window), self.find_first_kept(window)
        if 0 < at < len(items):
            return items[at].position
        found = self.find_budget_index(window, keep)
        if found is None:
            raise NothingToCompactError(
                f"nothing to compact: of {window.tokens:,} tokens in view, fewer may leave than "
                f"the newest {keep:,} (keep_tokens) that stay"
            )
        return items[found].position

    def list_open_items(self, window: Window) -> Sequence[WindowItem]:
        """Return the items that may leave."""
        return window.open_to_cut

    def find_first_kept(self, window: Window) -> int:
        """Return the index of the first open item that the original keeps; 0 for all."""
        items = self.list_open_items(window)
        found = self.find_budget_index(window, self.find_headroom(window.limit)[1])
        at = None if found is None else _skip_results(items, found)
        if at is None:
            at = _skip_results(items, 0) or 0
        while at > 0 and items[at - 1].kind in _UNCOUNTED_KINDS:
            at -= 1  # items before a message that are not messages belong to it
        return at

    def find_budget_index(self, window: Window, keep: int) -> int | None:
        """Return the index of the message with which `keep` tokens are reached; None if none."""
        found = find_budget_index(window.running, keep)
        return None if found is None else find_message_start(window.open_to_cut, found)


_UNCOUNTED_KINDS = UNSENT_KINDS | {BlockKind.DEVELOPER}
_NEVER_FIRST_KINDS = UNSENT_KINDS | {BlockKind.TOOL_RESULT}


def _skip_results(items: Sequence[WindowItem], index: int) -> int | None:
    indices = range(index, len(items))
    return next((at for at in indices if items[at].kind not in _NEVER_FIRST_KINDS), None)
