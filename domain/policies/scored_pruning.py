"""From 80% full on, remove the messages of the least worth until 70% are left; sum up nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

from ..blocks import ToolCall
from ..cached_property import cached_property
from ..compaction_events import Trigger
from ..context_limit import LevelMarks, PruningResult, UsageLevel, Utilization
from ..cut_points import is_carried
from ..digest import READ_TOOLS, normalize_tool_name, parse_names
from ..errors import NothingToCompactError
from ..item import Message, Role, WindowItem, group_messages
from ..ranges import Ranges
from ..settings import setting
from ..token_estimate import estimate_text
from ..window import Plan, Window
from .policy import ThresholdPolicy, token_setting

_MARGIN_SHARE = 0.10
"""How far below the threshold the warning begins, and pruning ends."""
_MIN_WARNING_SHARE = 0.50
_CRITICAL_SHARE = 0.9
"""The share in use at which more has to leave, unless the threshold is higher."""
_CRITICAL_TARGET_SHARE = 0.8
"""The share of the target at the critical level."""
_ROLE_SCORES = {Role.USER: 850, Role.DEVELOPER: 850, Role.TOOL_RESULT: 600, Role.ASSISTANT: 500}
"""Out of 1,000; developer instructions count as the user's."""
_SCORE_WITH_CALLS = 650
"""For a model's message that calls a tool."""
_READ_ONLY_TOOLS = READ_TOOLS | parse_names(
    "codesearch fetch fetchurl find findfiles glob globfiles grep grepsearch list listdir "
    "listdirectory listfiles ls search searchfiles tree urlfetch webfetch websearch"
)
"""Normalized names of tools that only read, and can read again."""
_ROLE_WEIGHT, _AGE_WEIGHT, _SIZE_WEIGHT, _NEWNESS_WEIGHT = 0.6, 0.3, 0.1, 0.05
_FADE_RATE = 0.1
"""How fast a message loses weight with each later one."""
_SMALL_TOKENS = 500
"""Messages of this size or more gain nothing for being small."""
_BUCKETS = {Role.USER: 0, Role.DEVELOPER: 0, Role.ASSISTANT: 1, Role.TOOL_RESULT: 2}


@dataclass(frozen=True)
class WeighedMessages:
    """Messages in order, with their tokens; scores and priorities are computed once."""

    messages: Sequence[Message]
    tokens: Sequence[int]

    @cached_property
    def total(self) -> int:
        return sum(self.tokens)

    @cached_property
    def buckets(self) -> tuple[int, int, int]:
        """Tokens of users, of the model, and of tool results."""
        sums = [0, 0, 0]
        for message, size in zip(self.messages, self.tokens, strict=True):
            sums[_BUCKETS[message.role]] += size
        return sums[0], sums[1], sums[2]

    @cached_property
    def calls(self) -> Sequence[Sequence[WindowItem]]:
        return [m.calls if m.role is Role.ASSISTANT else () for m in self.messages]

    @cached_property
    def scores(self) -> Sequence[int]:
        return [
            _SCORE_WITH_CALLS if calls else _ROLE_SCORES[message.role]
            for message, calls in zip(self.messages, self.calls, strict=True)
        ]

    @cached_property
    def priorities(self) -> tuple[float, ...]:
        """The priority of each message; higher ones are kept before lower ones."""
        ages = range(len(self.messages) - 1, -1, -1)
        return tuple(map(_compute_priority, self.scores, self.tokens, ages))

    @cached_property
    def exchanges(self) -> Sequence[Sequence[int]]:
        """Indices in groups: a message that calls tools with their results, others alone."""
        groups: list[list[int]] = []
        of_call: dict[int | None, list[int]] = {}
        for index, (message, calls) in enumerate(zip(self.messages, self.calls, strict=True)):
            if group := of_call.get(message.items[0].call):
                group.append(index)
                continue
            groups.append([index])
            of_call |= {call.position: groups[-1] for call in calls}
        return groups

    def find_untouchable(self, newest: int) -> frozenset[int]:
        """Return the indices of the messages that stay: from `newest` on, pinned, or open."""
        carried = [i for i, one in enumerate(self.messages) if any(map(is_carried, one.items))]
        return frozenset([*range(newest, len(self.messages)), *carried])

    def is_read_only(self, index: int) -> bool:
        """Check whether the message has calls, and all of them only read."""
        calls = self.calls[index]
        return bool(calls) and all(
            isinstance(call.block, ToolCall)
            and normalize_tool_name(call.block.name) in _READ_ONLY_TOOLS
            for call in calls
        )


def _compute_priority(score: int, size: int, age: int) -> float:
    # Keep this order of additions: floating-point sums depend on it, and age breaks ties.
    recency = 1 / (1 + _FADE_RATE * age)
    small = 1 - size / _SMALL_TOKENS if size < _SMALL_TOKENS else 0.0
    return (
        score / 1000 * _ROLE_WEIGHT
        + recency * _AGE_WEIGHT
        + small * _SIZE_WEIGHT
        + recency * _NEWNESS_WEIGHT
    )


@dataclass(frozen=True)
class ScoredPruning(ThresholdPolicy):
    """Follows qbit-ai/qbit: messages with the lowest scores leave, without a summary.

    The newest turns stay. No count includes the system prompt.
    """

    name: ClassVar[str] = "scored-pruning"
    alias: ClassVar[str] = "qbit"
    source: ClassVar[str] = "qbit-ai/qbit, docs/context-compaction.md"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "as_shipped": {"cooldown_seconds": 0.0},
    }

    enabled: bool = setting(True, help="whether anything is pruned at all")
    compaction_threshold: float = setting(
        0.80, unit="of the limit", least=0.05, most=1, help="in use from which on it prunes"
    )
    protected_turns: int = setting(2, least=0, help="newest turns, or messages, that always stay")
    cooldown_seconds: float = setting(
        60.0, unit="seconds", least=0, help="between two prunings by threshold; 0 is none"
    )
    reserved_system_tokens: int = token_setting(
        4_000, help="kept free of what pruning aims for: the system prompt"
    )
    reserved_response_tokens: int = token_setting(
        8_192, help="kept free of what pruning aims for: the next answer"
    )

    # When

    @property
    def level_marks(self) -> LevelMarks:
        """Where the levels begin."""
        return LevelMarks(
            # Rounded, because 0.8 - 0.1 is more than 0.7 in floating point.
            warning=max(_MIN_WARNING_SHARE, round(self.compaction_threshold - _MARGIN_SHARE, 9)),
            alert=self.compaction_threshold,
            critical=max(_CRITICAL_SHARE, self.compaction_threshold),
        )

    def fires(self, window: Window) -> bool:
        """Check whether it would prune by threshold: enabled, past its cooldown, nearly full."""
        since = window.since_boundary_s
        rests = since is not None and since < self.cooldown_seconds
        return self.enabled and not rests and self.measure_level(window).needs_pruning

    def measure_level(self, window: Window) -> Utilization:
        """Return the tokens in use without the system prompt, and their level."""
        return self.level_marks.measure(self.count_in_use(window), window.limit)

    def count_in_use(self, window: Window) -> int:
        system = window.convert_estimate(estimate_text(window.system_prompt))
        return max(0, window.used_tokens - system)

    def find_warning(self, window: Window) -> Utilization | None:
        """Return the utilization if it is high enough for a warning, or None."""
        level = self.measure_level(window)
        return level if self.enabled and level.level is not UsageLevel.NORMAL else None

    # What

    def find_plan(self, window: Window) -> Plan | None:
        """Return what leaves; there is no cut and no summary."""
        if not self.enabled:
            _refuse_if_requested(window, "scored-pruning is off (enabled = false)")
            return None
        level = self.measure_level(window)
        weighed, target = self.weigh_window(window), self.compute_target(level)
        if window.trigger is Trigger.OVERFLOW:
            # The real limit is unknown, but the whole view exceeds it.
            target = min(target, level.tokens - 1)
        if level.tokens <= target or not weighed.messages:
            _refuse_if_requested(
                window, f"{level.tokens:,} tokens are in use, and {target:,} may stay"
            )
            return None
        stays = self.choose_staying(weighed, level.tokens, target)
        gone = [m for index, m in enumerate(weighed.messages) if index not in stays]
        drops = Ranges.of(item.position for message in gone for item in message.items)
        reason = self._write_reason(window.trigger, level, target)
        if not drops:
            newest = f"protected_turns is {self.protected_turns}"
            reason += f"; but all blocks are new, pinned or open, and stay ({newest})"
        return Plan(cut=None, reason=reason, summary_tokens=0, drops=drops)

    def weigh_window(self, window: Window) -> WeighedMessages:
        return self.weigh(window.items)

    def weigh(self, items: Iterable[WindowItem]) -> WeighedMessages:
        messages = group_messages(tuple(items))
        return WeighedMessages(messages, [self.count_tokens(message) for message in messages])

    def count_tokens(self, message: Message) -> int:
        return sum([item.tokens for item in message.items])

    def count_available_tokens(self, limit: int) -> int:
        """Return the tokens that the reserves leave of a limit."""
        return max(0, limit - self.reserved_system_tokens - self.reserved_response_tokens)

    def compute_target(self, level: Utilization) -> int:
        """Return the tokens that may stay; fewer at the critical level."""
        aimed = self.compaction_threshold - _MARGIN_SHARE
        if level.level is UsageLevel.CRITICAL:
            aimed *= _CRITICAL_TARGET_SHARE
        return max(0, int(self.count_available_tokens(level.limit) * aimed))

    def choose_staying(self, weighed: WeighedMessages, in_use: int, target: int) -> frozenset[int]:
        """Return the indices of the messages that stay to reduce `in_use` tokens to the target."""
        staying = set(range(len(weighed.messages)))
        for group in self._rank(weighed) if in_use > target else ():
            if in_use <= target:
                break
            in_use -= sum([weighed.tokens[index] for index in group])
            staying.difference_update(group)
        return frozenset(staying)

    def _rank(self, weighed: WeighedMessages) -> list[Sequence[int]]:
        """Return the exchanges that may leave, the first to leave first; its best message counts.

        Calls that only read leave before all others, and of equals the oldest.
        """
        untouched = weighed.find_untouchable(self._find_protected(weighed.messages))
        ranked = [
            (not weighed.is_read_only(group[0]), max([weighed.priorities[i] for i in group]), group)
            for group in weighed.exchanges
            if untouched.isdisjoint(group)
        ]
        # Two sorts by one value each are several times as fast as one sort by two.
        ranked.sort(key=itemgetter(1))
        ranked.sort(key=itemgetter(0))
        return [group for _, _, group in ranked]

    def _find_protected(self, messages: Sequence[Message]) -> int:
        """Return the index of the first message that is too new to leave; the current turn is."""
        turns = set[int]()
        for index in reversed(range(len(messages))):
            turns.add(messages[index].items[0].turn)
            if len(turns) > max(1, self.protected_turns):
                return index + 1
        return 0

    def describe_pruning(self, window: Window, gone: Iterable[WindowItem]) -> PruningResult:
        left, before = self.weigh(gone), self.measure_level(window)
        after = self.level_marks.measure(max(0, before.tokens - left.total), window.limit)
        return PruningResult(before, after, messages=len(left.messages))

    def _write_reason(self, trigger: Trigger, level: Utilization, target: int) -> str:
        reason = f"{trigger}: {level.tokens:,} tokens in use"
        if level.limit > 0:
            reason += f", {level.share:.1%} of {level.limit:,} ({level.level})"
        reason += f"; the least valuable blocks leave until {target:,} are left"
        if not self.count_available_tokens(level.limit):
            reason += (
                ", because reserved_system_tokens and reserved_response_tokens take the whole limit"
            )
        return reason


def _refuse_if_requested(window: Window, why: str) -> None:
    """Raise NothingToCompactError if a user waits, who has to learn that nothing was done."""
    if not window.trigger.is_automatic:
        raise NothingToCompactError(f"nothing to prune: {why}")
