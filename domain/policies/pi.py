"""Past the limit less a reserve, cut in front of the message that reaches what is to be kept."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from ..blocks import ASSISTANT_KINDS, UNSENT_KINDS, Kind, ToolCall
from ..compaction_events import Trigger
from ..counting.estimators import PI_ESTIMATOR, Estimator, SizeUnit, configure_estimator
from ..errors import NothingToCompactError
from ..item import Item, get_place
from ..messages import (
    Role,
    find_message_end,
    find_message_start,
    find_role,
    iter_message_spans_back,
)
from ..settings import setting
from ..summaries.templates import PiTemplate
from ..window import Plan, Window, find_budget_index
from .policy import NEVER_FIRES, check_settings, quirk, token_setting, write_reserve_reason

_SUMMARY_SHARE, _TURN_SHARE = 0.8, 0.5
"""Of the reserve: for the summary, and for the beginning of a split turn."""


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
    reserve_tokens: int = token_setting(
        16_384, help="stay free below the limit; the summary fits into it"
    )
    keep_tokens: int = token_setting(20_000, help="of the newest stay word for word")

    # What the presets change.
    unit: str = quirk(SizeUnit.RECKONED)
    begins: str = quirk("kept-window")
    fits_limit: bool = quirk(True)
    keeps_previous: bool = quirk(True)

    def __post_init__(self) -> None:
        check_settings(self)

    def fires(self, window: Window) -> bool:
        """Check whether the reserve is in use; never if no limit is known."""
        if not self.enabled or window.limit <= 0:
            return False
        most = window.limit - self.find_headroom(window.limit)[0]
        used = self.measure_usage(window).tokens
        return used > most

    def quiet_below(self, limit: int) -> int | None:
        """Return the most tokens in use that do not fire; None if texts or boundaries matter."""
        if self._estimator is not None or self.begins != "kept-window":
            return None
        if not self.enabled or limit <= 0:
            return NEVER_FIRES
        return limit - self.find_headroom(limit)[0]

    def plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        reserve, keep = self.find_headroom(window.limit)
        return Plan(
            cut=self._find_intended_cut(window, keep),
            reason=write_reserve_reason(window, reserve, keep),
            summary_tokens=int(_SUMMARY_SHARE * reserve),
            turn_tokens=int(_TURN_SHARE * reserve),
            template=self.template,
        )

    @cached_property
    def template(self) -> PiTemplate:
        return PiTemplate(keeps_previous=self.keeps_previous)

    def find_headroom(self, limit: int) -> tuple[int, int]:
        """Return the reserve and the kept tokens for a model with `limit` tokens; 0 is unknown."""
        reserve, keep = self.reserve_tokens, self.keep_tokens
        if self.fits_limit and limit > 0:
            reserve = min(reserve, limit // 2)
            # The kept part must fit below the threshold, or the next call would compact again.
            keep = min(keep, limit - reserve)
        return reserve, keep

    # Where

    def find_start(self, window: Window) -> int:
        """Return the index, within `open_to_cut`, of the first item that may leave."""
        if self.begins == "kept-window" or window.boundary is None:
            return 0
        return bisect_right(window.open_to_cut, window.boundary.after, key=get_place)

    def find_first_kept(self, window: Window) -> int:
        """Return the index of the first item that the original keeps; `find_start` for all."""
        items, start = window.open_to_cut, self.find_start(window)
        found = self._find_budget_index(window, start, self.find_headroom(window.limit)[1])
        at = None if found is None else _skip_results(items, found)
        if at is None:
            at = _skip_results(items, start)
        if at is None:
            return start
        while at > start and items[at - 1].kind in _UNCOUNTED_KINDS:
            at -= 1  # items before a message that are not messages belong to it
        return at

    def _find_intended_cut(self, window: Window, keep: int) -> int:
        """Return the cut; if the original would do nothing, the item that reached the budget."""
        items, start = window.open_to_cut, self.find_start(window)
        at = self.find_first_kept(window)
        if start < at < len(items):
            return items[at].position
        found = self._find_budget_index(window, start, keep)
        if found is None:
            raise NothingToCompactError(
                f"nothing to compact: of {window.tokens:,} tokens in view, fewer may leave than "
                f"the newest {keep:,} (keep_tokens) that stay"
            )
        return items[found].position

    def _find_budget_index(self, window: Window, start: int, keep: int) -> int | None:
        """Return the index of the newest message that reaches `keep` tokens; None if none does."""
        items = window.open_to_cut
        if self._estimator is None:
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

    # How large

    def measure_usage(self, window: Window) -> "PiUsage":
        """Return how much of the model's context is in use."""
        if self._estimator is None:
            return PiUsage(window.used_tokens)
        return self.measure_items(window, window.items)

    def measure_items(self, window: Window, items: Sequence[Item]) -> "PiUsage":
        """Return the newest report after the last boundary, and an estimate of later items."""
        call, since = window.last_call, window.boundary.after if window.boundary else 0
        if call is None or call.context is None or call.position <= since:
            summary = window.summary.text if window.summary else ""
            standing = self._estimator.count_text(summary) if self._estimator else 0
            return PiUsage(standing + self._sum_tokens(items))
        end = bisect_right(items, call.position, key=get_place)
        output = call.usage.output if call.usage else None
        if output is not None:
            end = _find_answer_end(items, end)
        answered = items[end - 1].position if end else None
        return PiUsage(self._sum_tokens(items[end:]), call.context + (output or 0), answered)

    def count_message_tokens(self, pieces: Sequence[Item]) -> int | None:
        """Return the tokens of a message as the walk counts it; None for one that it skips."""
        if find_role(pieces[0]) in {None, Role.DEVELOPER}:
            return None
        return self._count_tokens(pieces)

    @cached_property
    def _estimator(self) -> Estimator | None:
        """The estimate of messages; None if the store's counts apply."""
        return configure_estimator(PI_ESTIMATOR, self.unit, read_call=_read_compact_call)

    def _count_tokens(self, pieces: Sequence[Item]) -> int:
        if self._estimator is None:
            return sum(item.tokens for item in pieces)
        return self._estimator.count_message([piece.block for piece in pieces])

    def _sum_tokens(self, items: Sequence[Item]) -> int:
        spans = iter_message_spans_back(items)
        return sum(self._count_tokens(items[begin:end]) for begin, end in spans)


class PiUsage(NamedTuple):
    """Tokens in use, reported and estimated."""

    since: int
    """The estimate for what came after the report, or for everything if there is no report."""
    reported: int = 0
    """The newest call's prompt, and its answer if that was reported."""
    answered: int | None = None
    """Position of the last block that the report includes."""

    @property
    def tokens(self) -> int:
        return self.reported + self.since


_UNCOUNTED_KINDS = UNSENT_KINDS | {Kind.DEVELOPER}
_NEVER_FIRST_KINDS = UNSENT_KINDS | {Kind.TOOL_RESULT}
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _read_compact_call(call: ToolCall) -> tuple[str, str]:
    """Return the texts of a call that count: the arguments as JavaScript prints them."""
    if " " not in call.arguments and "\\" not in call.arguments and "\n" not in call.arguments:
        return call.name, call.arguments
    return call.name, _COMPACT.encode(call.parse_arguments())


def _find_answer_end(items: Sequence[Item], index: int) -> int:
    """Return the end of the model's message that begins at an index, or the index itself."""
    if index == len(items) or items[index].kind not in ASSISTANT_KINDS:
        return index
    return find_message_end(items, index)


def _skip_results(items: Sequence[Item], index: int) -> int | None:
    indices = range(index, len(items))
    return next((at for at in indices if items[at].kind not in _NEVER_FIRST_KINDS), None)
