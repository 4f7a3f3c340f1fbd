"""When only the answer's room is left, keep the newest turns and summarize all before them."""

from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from ..blocks import BlockKind
from ..compaction_events import Trigger, Trim
from ..errors import NothingToCompactError
from ..item import find_whole_message
from ..settings import setting
from ..trims import clear_results
from ..window import Plan, Window, find_budget_index
from .policy import ThresholdPolicy, token_setting

_MAX_ANSWER_TOKENS = 32_000
_PROTECTED_TOKENS = 40_000
"""The newest tool output that pruning never touches."""
_MIN_PRUNED_TOKENS = 20_000
"""Pruning that frees no more than this is left undone."""
_PRUNED_TURNS = 2
"""The newest turns that pruning never touches."""


@dataclass(frozen=True)
class TailTurns(ThresholdPolicy):
    """Follows opencode: keeps the newest turns as far as a small budget goes, or else their ends.

    With `prune`, old tool output is cleared first, once that frees 20,000 tokens.
    """

    name: ClassVar[str] = "tail-turns"
    alias: ClassVar[str] = "opencode"
    source: ClassVar[str] = "sst/opencode, packages/opencode/src/session/compaction.ts"

    tail_turns: int = setting(2, unit="turns", least=0, help="stay, as far as they fit")
    preserve_recent_tokens: int | None = token_setting(
        None, help="may these be; none is a quarter of the room, 2,000 to 8,000"
    )
    prune: bool = setting(default=False, help="whether old tool output is cleared before")
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def fires(self, window: Window) -> bool:
        return window.limit > 0 and (
            window.used_tokens >= _find_room(window) or (self.prune and bool(_find_trims(window)))
        )

    @property
    def fires_by_tokens(self) -> bool:
        return not self.prune

    def find_plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and window.used_tokens < _find_room(window):
            trims = _find_trims(window)
            reason = f"{window.trigger}: {len(trims):,} old tool results are cleared"
            return Plan(None, reason, summary_tokens=0, trims=trims)
        items, cut = window.open_to_cut, self._find_cut(window)
        if not cut:
            raise NothingToCompactError(
                f"nothing to compact: the newest {self.tail_turns} turns are all there is"
            )
        reason = f"{window.trigger}: the newest {self.tail_turns} turns are kept as far as they fit"
        position = items[cut].position if cut < len(items) else items[-1].position + 1
        return Plan(position, reason, self.summary_tokens)

    def _find_cut(self, window: Window) -> int:
        """Return the index of the first item to keep: of a turn, or inside of one that is large."""
        items = window.open_to_cut
        turns = sorted({item.turn for item in items})[-self.tail_turns or len(items) :]
        first = next((i for i, item in enumerate(items) if item.turn in turns), len(items))
        budget = self.preserve_recent_tokens
        if budget is None:
            budget = min(8_000, max(2_000, _find_room(window) // 4))
        exceeding = find_budget_index(window.running, budget, inclusive=False)
        if exceeding is None or exceeding < first:
            return first
        return find_whole_message(items, exceeding + 1)


def _find_room(window: Window) -> int:
    """Return the tokens that a prompt may have beside the model's longest answer."""
    answer = (window.prices and window.prices.output) or _MAX_ANSWER_TOKENS
    return max(window.limit - min(answer, _MAX_ANSWER_TOKENS), window.limit // 2)


def _find_trims(window: Window) -> tuple[Trim, ...]:
    """Return the trims that clear old tool output; none if they free too little."""
    return window.find_once(__name__, lambda: _list_trims(window))


def _list_trims(window: Window) -> tuple[Trim, ...]:
    newest = sorted({item.turn for item in window.items})[-_PRUNED_TURNS:]
    total, old = 0, []
    for item in reversed(window.items):
        if item.kind is BlockKind.TOOL_RESULT and item.turn not in newest:
            total += item.tokens
            if total > _PROTECTED_TOKENS:
                old.append(item)
    cleared, saved = clear_results(window, sorted(old, key=attrgetter("position")))
    return tuple([trim for trim, _ in cleared]) if saved > _MIN_PRUNED_TOKENS else ()
