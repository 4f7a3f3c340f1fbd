"""Past the limit less a reserve, keep the newest tokens and summarize all that came before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ..blocks import BlockKind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..item import WindowItem
from ..settings import setting
from ..summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeVersion
from ..window import Plan, Window, find_budget_index
from .policy import ThresholdPolicy, make_setting_error, token_setting, write_reserve_reason

_MAX_ANSWER_TOKENS = 32_000
"""Tokens of an answer if its limit is unknown."""
_MIN_SUMMARY_TOKENS = 64
"""The least tokens of a summary, however little room there is."""


class Headroom(NamedTuple):
    """The settings in tokens, once the model's limit is known."""

    reserve: int
    keep: int

    @property
    def summary(self) -> int:
        """The largest size of the summary, which is written into the reserve."""
        return max(1024, int(0.8 * self.reserve))


class ReserveWalk(NamedTuple):
    """How far a walk back from the newest block came, in positions."""

    oversized_position: int | None = None
    """The block or message that reaches the budget by itself, if there is one."""
    first_kept: int | None = None
    """Where the kept window begins; None if nothing would leave."""


@dataclass(frozen=True)
class ReserveHeadroom(ThresholdPolicy):
    """Follows inspirepan/klaude-code: fires above limit - reserve; keeps the newest `keep` tokens.

    A cut may split a turn; it is at the start of a message that is not a tool result.
    """

    name: ClassVar[str] = "reserve-headroom"
    alias: ClassVar[str] = "klaude-code"
    source: ClassVar[str] = "inspirepan/klaude-code, compaction/AGENTS.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {
            "as_shipped": {"form": KlaudeVersion.AS_SHIPPED.value},
            "later": {"answer_tokens": None, "form": KlaudeVersion.LATER.value},
        }
    )

    fits_room: ClassVar[bool] = True
    """Whether less is kept where the settings would leave too little room."""

    reserve_tokens: int | None = token_setting(
        None, help="stay free below the limit; none is a quarter of it, 2,048 to 16,384"
    )
    keep_tokens: int | None = token_setting(
        None, help="of the newest stay word for word; none is 35% of the limit, 4,096 to 20,000"
    )
    summary_tokens: int | None = token_setting(
        None,
        least=1,
        help="may be the summary; none is 80% of the reserve, 1,024 or more",
    )
    answer_tokens: int | None = token_setting(
        0, help="of the limit are the answer's; none is the model's longest answer, or 32,000"
    )
    form: str = setting(
        KlaudeVersion.DOCUMENT.value,
        among=KlaudeVersion,
        help="how summaries are asked for and put together",
    )

    # When

    def fires(self, window: Window) -> bool:
        """Check whether the reserve is in use; never if no limit is known."""
        room, used = self.find_room(window), window.used_tokens
        if room <= 0:
            return False
        reserve = self.find_headroom(window.limit).reserve
        # The request's tokens can only raise the threshold, and take time to find.
        return used > room - reserve and used > self._compute_threshold(window, room, reserve)

    @property
    def fires_by_tokens(self) -> bool:
        """True, although a large system prompt raises the threshold a little."""
        return self.answer_tokens is not None

    def _compute_threshold(self, window: Window, room: int, reserve: int) -> int:
        """Return the most tokens in use that do not fire.

        A default reserve is at most three quarters of what the request leaves.
        """
        threshold = room - reserve
        if self.reserve_tokens is not None:
            return threshold
        request = window.request_tokens
        return max(threshold, request + (room - request) // 4)

    # Where

    def find_plan(self, window: Window) -> Plan | None:
        trigger = window.trigger
        reserve, keep = headroom = self.find_headroom(window.limit)
        free, most = self._count_free_tokens(window, reserve), 0
        if free:
            # A quarter is for what comes next.
            most = window.request_tokens + window.held_tokens + free * 3 // 4
            keep = min(keep, free // 2)
        walk = self.walk_back(window, keep)
        cut = walk.first_kept
        if cut is None:
            is_past = self.fires(window)
            if trigger is Trigger.IDLE and not is_past:
                return None
            if trigger is not Trigger.MANUAL or is_past:
                # It is first, or in the group of the first: the store can shrink it.
                cut = walk.oversized_position
                if cut is None and most and window.open_to_cut and is_past:
                    # There is no more than that to keep, and the summary is too large.
                    cut = window.open_to_cut[0].position
        if cut is None:
            raise NothingToCompactError(
                f"nothing to compact (session too small): of {window.tokens:,} tokens in view "
                f"{window.running[-1]:,} may leave, and the newest {keep:,} are kept, "
                "in whole messages (keep_tokens)"
            )
        form = KLAUDE_TEMPLATES[self.form]
        summary = self.summary_tokens or headroom.summary
        if most:
            summary = min(summary, max(free // 6, _MIN_SUMMARY_TOKENS))
        return Plan(
            cut=cut,
            reason=write_reserve_reason(window, reserve, keep),
            summary_tokens=summary,
            most_tokens=most,
            turn_tokens=summary if form.has_own_turn_budget else 0,
            template=form,
        )

    def _count_free_tokens(self, window: Window, reserve: int) -> int:
        """Return the tokens below the threshold without the request and pinned blocks."""
        if not self.fits_room or window.limit <= 0:
            return 0
        room, floor = self.find_room(window), window.request_tokens + window.held_tokens
        below = self._compute_threshold(window, room, reserve) - floor
        if self.reserve_tokens is not None and below > 0:
            return below
        return max(below, (room - floor) // 2, 0)

    def walk_back(self, window: Window, keep: int) -> ReserveWalk:
        """Return where the document's walk ends, legal or not."""
        items = window.open_to_cut
        index = find_budget_index(window.running, keep)
        if index is None:
            cut, oversized = skip_results(items), None
        else:
            cut = _find_opening(items, index)
            oversized = items[index].position if items[index].tokens >= keep else None
        return ReserveWalk(oversized, items[cut].position if cut else None)

    # By how much

    def find_headroom(self, limit: int) -> Headroom:
        """Return the settings for a model with `limit` tokens; 0 is unknown."""
        reserve, keep = self.reserve_tokens, self.keep_tokens
        if reserve is None:
            reserve = min(16_384, max(2_048, int(0.25 * limit))) if limit > 0 else 16_384
        if keep is None:
            keep = min(20_000, max(4_096, int(0.35 * limit))) if limit > 0 else 20_000
            # The kept part must fit below the threshold, or the next call would compact again.
            if limit > reserve:
                keep = min(keep, limit - reserve)
        return Headroom(reserve, keep)

    def find_room(self, window: Window) -> int:
        """Return the tokens of the limit that are not the answer's; 0 if no limit is known."""
        if window.limit <= 0:
            return 0
        answer = self.answer_tokens
        if answer is None:
            answer = (window.prices and window.prices.output) or _MAX_ANSWER_TOKENS
        elif answer and answer >= window.limit:
            raise make_setting_error(
                self, "answer_tokens", f"is {answer:,} of a limit of {window.limit:,}"
            )
        return window.limit - answer


def skip_results(items: Sequence[WindowItem]) -> int:
    """Skip answers to calls that left earlier: a view cannot begin with them."""
    return next((i for i, item in enumerate(items) if item.kind is not BlockKind.TOOL_RESULT), 0)


def _find_opening(items: Sequence[WindowItem], index: int) -> int:
    """Return the start of the item's message, or of an earlier one that is not a tool result."""
    while index:
        start = _find_message_start(items, index)
        if start < index:
            index = start
        elif items[index].block.kind is BlockKind.TOOL_RESULT:
            index -= 1
        else:
            break
    return index


def _find_message_start(items: Sequence[WindowItem], index: int) -> int:
    """Return where an item's message begins; results may be between its pieces.

    Reads only that message, however long the history is.
    """
    name = items[index].block.message_id
    if name is None:
        return index
    first = at = index
    while at:
        at -= 1
        if items[at].block.message_id == name:
            first = at
        elif items[at].kind is not BlockKind.TOOL_RESULT:
            break
    return first
