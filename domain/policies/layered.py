"""Clear tool output that newer output supersedes; if that is not enough, move the boundary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..blocks import BlockKind, ToolCall
from ..compaction_events import Trigger, Trim
from ..errors import NothingToCompactError
from ..item import WindowItem, find_whole_message
from ..settings import setting
from ..trims import clear_results, count_saved_tokens, iter_effective_trims
from ..window import Plan, Window
from .policy import ThresholdPolicy, share_setting, token_setting

_CACHE_WRITES = 1.25
"""What a token costs that is written into the cache, in prices of one that is read without it."""
_CACHE_READS = 0.1
_RESTING_ROOM = 20_000
"""The most tokens that stay between tasks, unless the settings say otherwise."""
_MIN_SUMMARY_TOKENS = 64
"""The least tokens of a summary, however little room there is."""


@dataclass(frozen=True)
class Layered(ThresholdPolicy):
    """Keeps as much as it can word for word, and more of it shortened.

    Past the threshold, results of calls that were made again are cleared first, if the prompts
    saved pay for the cache that this breaks. Else the boundary moves, to a turn's beginning if one
    is near: the newest blocks stay whole, older ones stay with their tool results shortened, and
    what came before is summarized. Enough leaves that it does not fire again soon; less stays
    between tasks, when a user asks for it or the agent rests.
    """

    name: ClassVar[str] = "layered"
    source: ClassVar[str] = "cutbank's own"
    fires_by_tokens: ClassVar[bool] = True

    threshold: float = share_setting(0.8, help="so much of it in use fires")
    keep: float = share_setting(0.4, help="of the newest stays at most")
    keep_tokens: int | None = token_setting(
        None, help="of the newest stay at most; none is what `keep` says, 20,000 between tasks"
    )
    whole: float = setting(
        0.3, unit="of what stays", least=0, most=1, help="and newest keeps its tool results whole"
    )
    shown_characters: int = setting(
        200, unit="characters", least=0, help="are shown of a shortened result"
    )
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def fires(self, window: Window) -> bool:
        return window.limit > 0 and window.used_tokens > self._find_threshold(window)

    def find_plan(self, window: Window) -> Plan | None:
        if trims := self._find_paying_trims(window):
            reason = f"{window.trigger}: {len(trims):,} tool results were read again since"
            return Plan(None, reason, summary_tokens=0, trims=trims)
        cut, trims = self._find_cut(window)
        if not cut and not trims:
            raise NothingToCompactError(
                f"nothing to compact: of {window.tokens:,} tokens in view {window.running[-1]:,}"
                f" may leave, and the newest {self._find_room(window):,} are kept (keep)"
            )
        return Plan(
            window.open_to_cut[cut].position if cut else None,
            f"{window.trigger}: {window.used_tokens:,} tokens in use; the newest"
            f" {self._find_room(window):,} are kept, older results of these shortened",
            self._find_summary_size(window) if cut else 0,
            trims=trims,
        )

    def _find_threshold(self, window: Window) -> int:
        return int(self.threshold * window.limit)

    def _find_room(self, window: Window) -> int:
        """Return the most tokens of blocks that stay."""
        room = self.keep_tokens
        if room is None:
            room = int(self.keep * window.limit) if window.limit > 0 else _RESTING_ROOM
            if window.trigger in {Trigger.MANUAL, Trigger.IDLE}:
                room = min(room, _RESTING_ROOM)
        return min(room, self._find_free(window) * 2 // 3) if window.limit > 0 else room

    def _find_summary_size(self, window: Window) -> int:
        """Return the most tokens of the summary: half of what all else leaves of the limit."""
        if window.limit <= 0:
            return self.summary_tokens
        taken = window.request_tokens + window.held_tokens + self._find_room(window)
        return min(self.summary_tokens, max((window.limit - taken) // 2, _MIN_SUMMARY_TOKENS))

    def _find_free(self, window: Window) -> int:
        """Return the tokens below the threshold that neither the request nor held blocks take.

        Where these take more than the threshold, it is half of what they leave of the limit.
        """
        taken = window.request_tokens + window.held_tokens
        below = self._find_threshold(window) - taken
        return max(below, (window.limit - taken) // 2, 0)

    # First: what newer output supersedes, unless more was asked for

    def _find_paying_trims(self, window: Window) -> tuple[Trim, ...]:
        """Return trims of superseded results that free enough, and pay for the broken cache."""
        if window.limit <= 0 or window.trigger is not Trigger.THRESHOLD:
            return ()
        found, saved = clear_results(window, _list_superseded(window.items))
        left = window.used_tokens - saved
        if not found or left > self._find_threshold(window) * 9 // 10:
            return ()
        first = min(item.place for _, item in found)
        behind = sum(item.tokens for item in window.items if item.place >= first) - saved
        gain = saved * _CACHE_READS * max(window.expected_calls, 1)
        return tuple([trim for trim, _ in found]) if gain > behind * _CACHE_WRITES else ()

    # Then: the boundary

    def _find_cut(self, window: Window) -> tuple[int, tuple[Trim, ...]]:
        """Return the index of the first item to keep, 0 if all stay, and the trims behind it."""
        items, room = window.open_to_cut, self._find_room(window)
        whole, used, start = int(self.whole * room), 0, len(items)
        trims: list[Trim] = []
        while start:
            item, trim = items[start - 1], None
            tokens = item.tokens
            if used + tokens > whole and item.kind is BlockKind.TOOL_RESULT:
                trim = self._shorten(window, item)
                tokens -= count_saved_tokens(window, item, trim) if trim else 0
            if used + tokens > room and start < len(items):
                break
            used += tokens
            trims += [trim] if trim else []
            start -= 1
        cut = _find_turn(items, start)
        if cut:
            first = items[cut].place if cut < len(items) else window.after + 1
            trims = [trim for trim in trims if trim.position >= first]
        return cut, tuple(sorted(trims, key=lambda trim: trim.position))

    def _shorten(self, window: Window, item: WindowItem) -> Trim | None:
        head = self.shown_characters * 2 // 3
        trim = Trim(position=item.position, head=head, tail=self.shown_characters - head)
        return next((one for one, _ in iter_effective_trims(window, [item], [trim])), None)


def _find_turn(items: Sequence[WindowItem], start: int) -> int:
    """Return where the next turn begins, if it is near; else where the next message does."""
    if not 0 < start < len(items):
        return start
    near = start + (len(items) - start) // 4
    for index in range(start, near + 1):
        if items[index].turn != items[index - 1].turn:
            return index
    return min(find_whole_message(items, start), len(items) - 1)


def _list_superseded(items: Sequence[WindowItem]) -> list[WindowItem]:
    """Return the results of calls that were made again, with the same words, and answered."""
    calls = {
        item.position: (item.block.name, item.block.arguments)
        for item in items
        if isinstance(item.block, ToolCall)
    }
    seen, old = set[tuple[str, str]](), list[WindowItem]()
    for item in reversed(items):
        call = calls.get(item.call or 0)
        if item.kind is BlockKind.TOOL_RESULT and call is not None:
            if call in seen:
                old.append(item)
            seen.add(call)
    return old
