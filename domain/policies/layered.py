"""Clear tool output that newer output supersedes; if that is not enough, move the boundary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..blocks import ASSISTANT_KINDS, BlockKind, ToolCall
from ..compaction_events import Trigger, Trim
from ..errors import NothingToCompactError
from ..item import WindowItem, find_whole_message
from ..trims import clear_results, count_saved_tokens, iter_effective_trims, trim_to_ends
from ..window import Plan, Window, find_budget_index
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
    """Summarizes all but the newest, and shows each tool result at least once.

    Past the threshold, results of calls that were made again are cleared first, if the prompts
    saved pay for the cache that this breaks. Else the boundary moves, to a turn's beginning if one
    is near. Results that the model has not seen yet stay, and are shortened to equal shares only
    where they do not fit. Enough leaves that it does not fire again soon; less stays between tasks,
    when a user asks for it or the agent rests.
    """

    name: ClassVar[str] = "layered"
    source: ClassVar[str] = "cutbank's own"
    fires_by_tokens: ClassVar[bool] = True

    threshold: float = share_setting(0.8, help="so much of it in use fires")
    keep: float = share_setting(0.15, help="of the newest stays at most")
    keep_tokens: int | None = token_setting(
        None, help="of the newest stay at most; none is what `keep` says, 20,000 between tasks"
    )
    summary_tokens: int | None = token_setting(
        None, least=1, help="may be the summary; none is an eighth of the limit, 8,192 to 16,384"
    )

    def fires(self, window: Window) -> bool:
        return window.limit > 0 and window.used_tokens > self._find_threshold(window)

    def find_plan(self, window: Window) -> Plan | None:
        if trims := self._find_paying_trims(window):
            reason = f"{window.trigger}: {len(trims):,} tool results were read again since"
            return Plan(None, reason, summary_tokens=0, trims=trims)
        items = window.open_to_cut
        unseen = _list_unseen(items)
        room = self._find_room(window, sum(item.tokens for item in unseen))
        trims, saved = _shorten_results(window, unseen, room)
        exceeding = find_budget_index(window.running, room + saved, inclusive=False)
        if exceeding is None and not trims:
            raise NothingToCompactError(
                f"nothing to compact: of {window.tokens:,} tokens in view {window.running[-1]:,}"
                f" may leave, and the newest {room:,} are kept (keep)"
            )
        return Plan(
            None if exceeding is None else items[_find_turn(items, exceeding + 1)].position,
            f"{window.trigger}: {window.used_tokens:,} tokens in use; the newest {room:,} are kept",
            0 if exceeding is None else self._find_summary_size(window, room),
            trims=trims,
        )

    def _find_threshold(self, window: Window) -> int:
        return int(self.threshold * window.limit)

    def _find_room(self, window: Window, unseen: int) -> int:
        """Return the most tokens of blocks that stay; `unseen` tokens may go beyond the settings.

        It is two thirds at most of what neither the request nor held blocks take below the
        threshold; where these take more than that, of half of what they leave of the limit.
        """
        room = self.keep_tokens
        if room is None:
            room = int(self.keep * window.limit) if window.limit > 0 else _RESTING_ROOM
            if window.trigger in {Trigger.MANUAL, Trigger.IDLE}:
                room = min(room, _RESTING_ROOM)
        if window.limit <= 0:
            return room
        taken = window.request_tokens + window.held_tokens
        below = self._find_threshold(window) - taken
        free = max(below, (window.limit - taken) // 2, 0)
        return min(max(room, unseen), free * 2 // 3)

    def _find_summary_size(self, window: Window, room: int) -> int:
        """Return the most tokens of the summary: half of what all else leaves of the limit."""
        most = self.summary_tokens
        if most is None:
            most = min(max(window.limit // 8, 8_192), 16_384)
        if window.limit <= 0:
            return most
        left = window.limit - window.request_tokens - window.held_tokens - room
        return min(most, max(left // 2, _MIN_SUMMARY_TOKENS))

    def _find_paying_trims(self, window: Window) -> tuple[Trim, ...]:
        """Return trims of superseded results that free enough, and pay for the broken cache.

        There are none if more than this was asked for.
        """
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


def _list_unseen(items: Sequence[WindowItem]) -> Sequence[WindowItem]:
    """Return the model's newest message and all behind it, if that has results; else nothing."""
    newest = next((item for item in reversed(items) if item.kind in ASSISTANT_KINDS), None)
    if newest is None:
        return ()
    name = newest.message
    of_message = (item is newest or (name and item.message == name) for item in items)
    unseen = items[list(of_message).index(True) :]
    return unseen if any(item.kind is BlockKind.TOOL_RESULT for item in unseen) else ()


def _shorten_results(
    window: Window, items: Sequence[WindowItem], room: int
) -> tuple[tuple[Trim, ...], int]:
    """Return trims by which the items fit into the room, and the tokens that these save."""
    results = [item for item in items if item.kind is BlockKind.TOOL_RESULT]
    others = sum(item.tokens for item in items if item.kind is not BlockKind.TOOL_RESULT)
    most = _find_share([item.tokens for item in results], room - others)
    trims = [
        trim_to_ends(item.position, (item.length or len(item.block.text)) * most // item.tokens)
        for item in results
        if item.tokens > most
    ]
    found = list(iter_effective_trims(window, results, trims))
    saved = sum(count_saved_tokens(window, item, trim) for trim, item in found)
    return tuple([trim for trim, _ in found]), saved


def _find_share(sizes: Sequence[int], room: int) -> int:
    """Return the most that each may have so that all fit: what small ones leave goes to large."""
    for number, size in enumerate(sorted(sizes)):
        share = max(room, 0) // (len(sizes) - number)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _find_turn(items: Sequence[WindowItem], start: int) -> int:
    """Return where the next turn begins, if it is near; else where the next message does."""
    near = start + (len(items) - start) // 4
    for index in range(start, min(near + 1, len(items))):
        if items[index].turn != items[index - 1].turn:
            return index
    return min(find_whole_message(items, start), len(items) - 1)
