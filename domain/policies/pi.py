"""Past the limit less a reserve, cut in front of the message that reaches what is to be kept."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ..blocks import UNSENT_KINDS, Kind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..item import Item, get_place
from ..messages import Role, find_message_start, find_role
from ..summaries.templates import PiTemplate
from ..window import Plan, Window
from .cutting.budget_walk import find_budget_index
from .measuring.pi_estimate import PiContextEstimate, find_answer_end, measure_pi_block
from .measuring.text_measure import Rounding, SizeUnit, TextMeasure
from .policy import NEVER_FIRES, check_settings, setting


@dataclass(frozen=True, slots=True)
class PiCut:
    """Where pi would cut, whether or not that removes anything."""

    first_kept: int | None
    """Position of the first block to keep; None if there is nothing to cut."""
    turn_start: int | None = None
    """Where the turn begins that the cut splits, if it splits one."""

    @property
    def is_split_turn(self) -> bool:
        return self.turn_start is not None


@dataclass(frozen=True)
class Pi:
    """The policy of pi-mono, from whose design those of kdcube, tunacode and klaude-code come.

    It has no document apart from its code. A cut may split a turn, and is never before a tool
    result: if the budget is reached there, the next message after it is the first kept.
    """

    name: ClassVar[str] = "pi"
    alias: ClassVar[str] = "pi-mono"
    source: ClassVar[str] = "badlogic/pi-mono: coding-agent/src/core/compaction"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {
            "unit": "utf-16",
            "begins": "last-boundary",
            "fits_limit": False,
            "keeps_previous": False,
        }
    }

    enabled: bool = setting(True, help="compact unasked, past the threshold")
    reserve_tokens: int = setting(
        16_384, unit="tokens", least=0, help="stay free below the limit; the summary fits into it"
    )
    keep_tokens: int = setting(
        20_000, unit="tokens", least=0, help="of the newest stay word for word"
    )
    fires_at: str = setting(">", among=(">", ">="), help="than the limit less the reserve")
    unit: str = setting(SizeUnit.RECKONED.value, among=SizeUnit, help="what sizes are counted in")
    rounding: str = setting(
        Rounding.UP.value, among=Rounding, help="of a message's size, but for reckoned ones"
    )
    image_chars: int = setting(
        4_800, unit="characters", least=0, help="of an image in a tool result, unless reckoned"
    )
    begins: str = setting(
        "kept-window",
        among=("kept-window", "last-boundary"),
        help="what may leave: all of the kept window, or what came since the last boundary only",
    )
    fits_limit: bool = setting(
        True, help="reserve no more than half the limit, keep no more than fits below the threshold"
    )
    summary_share: float = setting(0.8, least=0.0, most=1.0, help="of the reserve, for the summary")
    turn_share: float = setting(
        0.5, least=0.0, most=1.0, help="of the reserve, for the beginning of a split turn"
    )
    keeps_previous: bool = setting(
        True, help="keep an earlier summary where only the beginning of a turn leaves"
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def plan(self, window: Window) -> Plan | None:
        reserve, keep = self.find_headroom(window.limit)
        if window.trigger is Trigger.THRESHOLD and not self._fires(window, reserve):
            return None
        return Plan(
            cut=self._find_intended_cut(window, keep),
            reason=_write_reason(window, reserve, keep),
            summary_tokens=int(self.summary_share * reserve),
            turn_tokens=int(self.turn_share * reserve),
            template=self.template,
        )

    def fires(self, window: Window) -> bool:
        """Check whether the reserve is in use; never if no limit is known."""
        return self._fires(window, self.find_headroom(window.limit)[0])

    def quiet_below(self, limit: int) -> int | None:
        """Return the most tokens in use that do not fire; None if texts or boundaries matter."""
        if not self._is_reckoned or self.begins != "kept-window":
            return None
        if not self.enabled or limit <= 0:
            return NEVER_FIRES
        most = limit - self.find_headroom(limit)[0]
        return most - 1 if self.fires_at == ">=" else most

    def _fires(self, window: Window, reserve: int) -> bool:
        if not self.enabled or window.limit <= 0:
            return False
        used = window.used_tokens if self._is_reckoned else self.estimate_context(window).tokens
        most = window.limit - reserve
        return used >= most if self.fires_at == ">=" else used > most

    def find_headroom(self, limit: int) -> tuple[int, int]:
        """Return the reserve and the kept tokens for a model with `limit` tokens; 0 is unknown."""
        reserve, keep = self.reserve_tokens, self.keep_tokens
        if self.fits_limit and limit > 0:
            reserve = min(reserve, limit // 2)
            # The kept part must fit below the threshold, or the next call would compact again.
            keep = min(keep, limit - reserve)
        return reserve, keep

    def compute_budgets(self, limit: int) -> tuple[int, int]:
        """Return the tokens of a summary and of a split turn's beginning, which fit into the
        reserve."""
        reserve, _ = self.find_headroom(limit)
        return int(self.summary_share * reserve), int(self.turn_share * reserve)

    @cached_property
    def template(self) -> PiTemplate:
        return PiTemplate(keeps_previous=self.keeps_previous)

    def find_cut(self, window: Window) -> PiCut:
        """Return the original's answer, even if it removes nothing."""
        items, start = window.open_to_cut, self.find_start(window)
        keep = self.find_headroom(window.limit)[1]
        at = _find_first_kept(items, start, self._find_budget_index(window, start, keep))
        if at == len(items):
            return PiCut(None)
        turn = None if find_role(items[at]) is Role.USER else _find_turn_start(items, start, at)
        return PiCut(items[at].position, None if turn is None else items[turn].position)

    def find_start(self, window: Window) -> int:
        """Return the index, within `open_to_cut`, of the first item that may leave."""
        if self.begins == "kept-window" or window.boundary is None:
            return 0
        after = window.boundary.after
        return bisect_right(window.open_to_cut, after, key=get_place)

    def estimate_context(self, window: Window) -> PiContextEstimate:
        """Return how much of the model's context is in use."""
        if self._is_reckoned:
            return PiContextEstimate(window.used_tokens)
        return self.estimate_items(window, window.items)

    def estimate_items(self, window: Window, items: Sequence[Item]) -> PiContextEstimate:
        """Return the newest report, if it follows the last boundary, and an estimate of later
        items."""
        call, since = window.last_call, window.boundary.after if window.boundary else 0
        if call is None or call.context is None or call.position <= since:
            standing = self._measure.count_tokens(window.summary.text) if window.summary else 0
            return PiContextEstimate(standing + self._sum_tokens(items))
        end = bisect_right(items, call.position, key=get_place)
        output = call.usage.output if call.usage else None
        if output is not None:
            end = find_answer_end(items, end)
        answered = items[end - 1].position if end else None
        return PiContextEstimate(
            self._sum_tokens(items[end:]), call.context + (output or 0), answered
        )

    def count_message_tokens(self, pieces: Sequence[Item]) -> int | None:
        """Return the tokens of a message as the walk counts it; None for one that it skips."""
        if find_role(pieces[0]) in {None, Role.DEVELOPER}:
            return None
        return self._count_tokens(pieces)

    @cached_property
    def _is_reckoned(self) -> bool:
        return self.unit == SizeUnit.RECKONED

    @cached_property
    def _measure(self) -> TextMeasure:
        unit = SizeUnit.CODE_POINTS if self._is_reckoned else SizeUnit(self.unit)
        return TextMeasure(unit, Rounding(self.rounding))

    def _count_tokens(self, pieces: Sequence[Item]) -> int:
        if self._is_reckoned:
            return sum(item.tokens for item in pieces)
        measure = self._measure
        return measure.convert_to_tokens(
            sum(measure_pi_block(piece.block, measure, self.image_chars) for piece in pieces)
        )

    def _sum_tokens(self, items: Sequence[Item]) -> int:
        total, end = 0, len(items)
        while end:
            begin = find_message_start(items, end - 1)
            total += self._count_tokens(items[begin:end])
            end = begin
        return total

    def _find_intended_cut(self, window: Window, keep: int) -> int:
        """Return the cut; if the original would do nothing, the item that reached the budget."""
        items, start = window.open_to_cut, self.find_start(window)
        found = self._find_budget_index(window, start, keep)
        at = _find_first_kept(items, start, found)
        if start < at < len(items):
            return items[at].position
        if found is None or not items:
            raise NothingToCompactError(
                f"nothing to compact: what may leave of {window.tokens:,} tokens in view is less "
                f"than the newest {keep:,} (keep_tokens) that are kept"
            )
        return items[found].position

    def _find_budget_index(self, window: Window, start: int, keep: int) -> int | None:
        """Return the index of the newest message that reaches `keep` tokens; None if none does."""
        items = window.open_to_cut
        if self._is_reckoned:
            found = find_budget_index(window.running, keep)
            if found is None or found < start:
                return None
            return max(start, find_message_start(items, found))
        total, end = 0, len(items)
        while end > start:
            begin = max(start, find_message_start(items, end - 1))
            tokens = self.count_message_tokens(items[begin:end])
            if tokens is not None:
                total += tokens
                if total >= keep:
                    return begin
            end = begin
        return None


_UNCOUNTED_KINDS = UNSENT_KINDS | {Kind.DEVELOPER}
_NEVER_FIRST_KINDS = UNSENT_KINDS | {Kind.TOOL_RESULT}


def _find_first_kept(items: Sequence[Item], start: int, found: int | None) -> int:
    """Return the index of the first item to keep; `find_start` if nothing may be cut off."""
    at = None if found is None else _skip_results(items, found)
    if at is None:
        at = _skip_results(items, start)
    if at is None:
        return start
    while at > start and items[at - 1].kind in _UNCOUNTED_KINDS:
        at -= 1  # items before a message that are not messages belong to it
    return at


def _skip_results(items: Sequence[Item], index: int) -> int | None:
    for at in range(index, len(items)):
        if items[at].kind not in _NEVER_FIRST_KINDS:
            return at
    return None


def _find_turn_start(items: Sequence[Item], start: int, index: int) -> int | None:
    for at in range(index, start - 1, -1):
        if find_role(items[at]) in {Role.USER, Role.DEVELOPER}:
            return max(start, find_message_start(items, at))
    return None


def _write_reason(window: Window, reserve: int, keep: int) -> str:
    in_use = f"{window.used_tokens:,} tokens in use"
    if window.limit > 0:
        in_use += f" of {window.limit:,}, of which {reserve:,} stay free"
    return f"{window.trigger}: {in_use}; the newest {keep:,} are kept"
