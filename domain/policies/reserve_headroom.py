"""Past the limit less a reserve, keep the newest tokens and summarize all that came before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ..compaction_events import Trigger
from ..counting.estimators import (
    KLAUDE_ESTIMATOR,
    Estimator,
    SizeUnit,
    configure_estimator,
)
from ..errors import NothingToCompactError
from ..messages import Message, Role, group_messages
from ..settings import setting
from ..summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeVersion
from ..window import Plan, Window
from .policy import (
    NEVER_FIRES,
    check_settings,
    make_setting_error,
    quirk,
    token_setting,
    write_reserve_reason,
)
from .reference.reserve_walk import ReserveWalk, walk_back

_MAX_ANSWER_TOKENS = 32_000
"""Tokens of an answer if its limit is unknown."""
_MIN_SUMMARY_TOKENS = 64
"""The least tokens of a summary, however little room there is."""
_UNANSWERED_TEXT = "[nobody has answered this call; whoever ran it was interrupted]"
"""The answer to an open call in a history that is sent all the same."""


class TokenSource(StrEnum):
    """What counts as the tokens in use."""

    RECKONED = "reckoned"
    """The provider's report and the store's count of what came since."""
    REPORTED = "reported"
    """The newest report alone; without one, the measured messages."""
    REPORTED_AND_LATER = "reported-and-later"
    """The newest report and the measured messages after it; without one, all messages."""


class Headroom(NamedTuple):
    """The settings in tokens, once the model's limit is known."""

    reserve: int
    keep: int

    @property
    def summary(self) -> int:
        """The largest size of the summary, which is written into the reserve."""
        return max(1024, int(0.8 * self.reserve))


@dataclass(frozen=True)
class ReserveHeadroom:
    """Follows inspirepan/klaude-code: fires above limit - reserve; keeps the newest `keep` tokens.

    A cut may split a turn; it is at the start of a message that is not a tool result.
    """

    name: ClassVar[str] = "reserve-headroom"
    alias: ClassVar[str] = "klaude-code"
    source: ClassVar[str] = "inspirepan/klaude-code, compaction/AGENTS.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {
            "as_shipped": {
                "unit": "code-points",
                "counts": TokenSource.REPORTED.value,
                "passes_developer": True,
                "form": KlaudeVersion.AS_SHIPPED.value,
            },
            "later": {
                "unit": "code-points",
                "counts": TokenSource.REPORTED_AND_LATER.value,
                "fires_at": ">=",
                "answer_tokens": None,
                "answers_open_calls": True,
                "passes_developer": True,
                "form": KlaudeVersion.LATER.value,
            },
        }
    )

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

    # What the presets change.
    fires_at: str = quirk(">")
    counts: str = quirk(TokenSource.RECKONED)
    unit: str = quirk(SizeUnit.RECKONED)
    answers_open_calls: bool = quirk(False)
    passes_developer: bool = quirk(False)

    def __post_init__(self) -> None:
        check_settings(self)

    # When

    def fires(self, window: Window) -> bool:
        """Check whether the reserve is in use; never if no limit is known."""
        return self._is_past(window, self.find_headroom(window.limit))

    def quiet_below(self, limit: int) -> int | None:
        """Return the most tokens in use that do not fire; None if reports or texts are counted.

        A large system prompt raises this a little.
        """
        answer = self.answer_tokens
        if not self._is_counted_as_stored or answer is None or answer >= limit > 0:
            return None
        if limit <= 0:
            return NEVER_FIRES
        threshold = self._compute_threshold(limit - answer, 0, self.find_headroom(limit))
        return threshold - 1 if self.fires_at == ">=" else threshold

    def _is_past(self, window: Window, headroom: Headroom) -> bool:
        room = window.limit - self._reserve_for_answer(window) if window.limit > 0 else 0
        if room <= 0:
            return False
        threshold, used = room - headroom.reserve, self.count_in_use(window)
        if self._is_counted_as_stored and used > threshold:
            threshold = self._compute_threshold(room, window.request_tokens, headroom)
        return used >= threshold if self.fires_at == ">=" else used > threshold

    def count_in_use(self, window: Window) -> int:
        """Return the tokens in use, as `counts` defines them."""
        if self.counts == TokenSource.RECKONED:
            return window.used_tokens
        if window.usage is None:
            return self._count_sent_tokens(window)
        if self.counts == TokenSource.REPORTED or window.usage_at is None:
            return window.usage
        later = [item for item in window.items if item.position > window.usage_at]
        if self.estimator is None:
            return window.usage + sum(item.tokens for item in later)
        return window.usage + _sum_tokens(group_messages(later), self.estimator)

    def _count_sent_tokens(self, window: Window) -> int:
        """Return the tokens of the texts that are sent: the summary and the kept messages."""
        if self.estimator is None:
            return window.tokens
        tokens = _sum_tokens(list_kept_messages(window), self.estimator)
        if window.summary:
            tokens += self.estimator.count_text(window.summary.text)
        if self.answers_open_calls:
            waiting = sum(item.is_open for item in window.items)
            tokens += self.estimator.count_text(_UNANSWERED_TEXT) * waiting
        return tokens

    # Where

    def plan(self, window: Window) -> Plan | None:
        headroom = self.find_headroom(window.limit)
        trigger = window.trigger
        if trigger is Trigger.THRESHOLD and not self._is_past(window, headroom):
            return None
        free = most = 0
        if self._is_counted_as_stored and window.limit > 0:
            free = self._count_free_tokens(window, headroom)
        if free:
            # A quarter is for what comes next.
            most = window.request_tokens + window.held_tokens + free * 3 // 4
            headroom = Headroom(headroom.reserve, min(headroom.keep, free // 2))
        walk = self.walk_back(window, headroom)
        cut = walk.first_kept
        if cut is None:
            is_past = self._is_past(window, headroom)
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
                f"{window.running[-1]:,} may leave, and the newest {headroom.keep:,} are kept, "
                "in whole messages (keep_tokens)"
            )
        form = KLAUDE_TEMPLATES[self.form]
        summary = self.summary_tokens or headroom.summary
        if most:
            summary = min(summary, max(free // 6, _MIN_SUMMARY_TOKENS))
        return Plan(
            cut=cut,
            reason=write_reserve_reason(window, *headroom),
            summary_tokens=summary,
            most_tokens=most,
            turn_tokens=summary if form.has_own_turn_budget else 0,
            template=form,
        )

    @property
    def _is_counted_as_stored(self) -> bool:
        return self.counts == TokenSource.RECKONED and self.estimator is None

    def _compute_threshold(self, room: int, request: int, headroom: Headroom) -> int:
        """Return the most tokens in use that do not fire.

        A default reserve is at most three quarters of what the request leaves.
        """
        threshold = room - headroom.reserve
        if self.reserve_tokens is not None:
            return threshold
        return max(threshold, request + (room - request) // 4)

    def _count_free_tokens(self, window: Window, headroom: Headroom) -> int:
        """Return the tokens below the threshold without the request and pinned blocks."""
        room = window.limit - self._reserve_for_answer(window)
        floor = window.request_tokens + window.held_tokens
        below = self._compute_threshold(room, window.request_tokens, headroom) - floor
        if self.reserve_tokens is not None and below > 0:
            return below
        return max(below, (room - floor) // 2, 0)

    def walk_back(self, window: Window, headroom: Headroom | None = None) -> ReserveWalk:
        """Return where the document's walk ends, legal or not."""
        keep = (headroom or self.find_headroom(window.limit)).keep
        return walk_back(window, keep, self.estimator, passes_developer=self.passes_developer)

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

    @cached_property
    def estimator(self) -> Estimator | None:
        """The estimate of messages; None if the store's counts apply."""
        return configure_estimator(KLAUDE_ESTIMATOR, self.unit)

    def _reserve_for_answer(self, window: Window) -> int:
        if self.answer_tokens is None:
            facts = window.prices
            return (facts and facts.output) or _MAX_ANSWER_TOKENS
        if self.answer_tokens and self.answer_tokens >= window.limit:
            raise make_setting_error(
                self, "answer_tokens", f"is {self.answer_tokens:,} of a limit of {window.limit:,}"
            )
        return self.answer_tokens


def list_kept_messages(window: Window) -> tuple[Message, ...]:
    """Return the messages that are sent; after a boundary, the first is never a tool result."""
    messages = group_messages(window.items)
    if window.boundary is None:
        return messages
    first = next((i for i, m in enumerate(messages) if m.role is not Role.TOOL_RESULT), None)
    return () if first is None else messages[first:]


def _sum_tokens(messages: Sequence[Message], estimator: Estimator) -> int:
    return sum([estimator.count_message([item.block for item in one.items]) for one in messages])
