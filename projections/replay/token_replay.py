"""Replays a trace from one compaction to the next, for policies that depend on tokens alone."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from ...domain.blocks import Kind
from ...domain.compaction_events import Trigger
from ...domain.compaction_terms import REGROWTH_SHARE
from ...domain.errors import NothingToCompactError
from ...domain.pins import NO_PINS, PinRules
from ...domain.plan_repairs import SUMMARY_DIVISOR
from ...domain.policies.policy import Policy, quiet_below
from ...domain.summaries.gate import ALWAYS_SMALL_TOKENS
from ...domain.summaries.simple_summarizers import MIN_SIZED_TOKENS, clamp_size
from ...domain.window import Plan
from .trace import NeedsFullReplay, SessionTrace
from .trace_shortening import TraceShortening
from .traced_view import TracedView
from .traced_window import TracedWindow


class TokenCompaction(NamedTuple):
    call: int
    """The index in the trace of the call that follows it."""
    trigger: Trigger
    first_kept: int
    """Position of the first block after the cut."""
    before: int
    """Tokens of the prompt without the compaction."""
    after: int
    summary: int
    """Tokens of the summary, which `after` includes."""
    unchanged: int
    """Tokens at the beginning of the prompt that the one before had too."""
    offset: int
    """How much every later prompt differs from the whole history; below 0."""


@dataclass(frozen=True)
class TokenReplay:
    """What a policy would have made the model receive, in tokens."""

    trace: SessionTrace
    compactions: tuple[TokenCompaction, ...]
    futile_count: int
    """Compactions that removed nothing."""

    def list_prompts(self) -> list[int]:
        whole = self.trace.whole
        return [
            tokens + offset
            for begin, end, offset in self._iter_spans()
            for tokens in whole[begin:end]
        ]

    def list_unchanged(self) -> list[int]:
        """Return the tokens at the beginning of each prompt that the one before had too."""
        prompts = self.list_prompts()
        same = [0, *prompts[:-1]] if prompts else []
        for call in self.trace.resets:
            same[call] = 0
        for compaction in self.compactions:
            same[compaction.call] = min(same[compaction.call], compaction.unchanged)
        return [min(before, now) for before, now in zip(same, prompts, strict=True)]

    @property
    def prompt_tokens(self) -> int:
        return sum(self.list_prompts())

    @property
    def written_tokens(self) -> int:
        """The tokens of all calls that no cache holds."""
        return self.prompt_tokens - sum(self.list_unchanged())

    def _iter_spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield ranges of calls, each with the offset of its prompts from the whole history."""
        begins = [(0, 0), *((one.call, one.offset) for one in self.compactions)]
        for (begin, offset), (end, _) in pairwise([*begins, (len(self.trace.whole), 0)]):
            yield begin, end, offset


def replay_by_tokens(
    trace: SessionTrace,
    policy: Policy,
    limit: int,
    summary_tokens: int,
    *,
    pins: PinRules = NO_PINS,
    minimum_gain: float = 0.0,
    regrowth: float = REGROWTH_SHARE,
    once_a_turn: bool = False,
) -> TokenReplay | NeedsFullReplay:
    """Return the result of a replay with summaries of `summary_tokens`, or as many as allowed.

    The same as `replay_recording` with `SizedSummarizer`, but its time depends on the compactions
    and hardly on the events. NeedsFullReplay says why only the other replay will do.
    """
    most = quiet_below(policy, limit)
    if most is None:
        return NeedsFullReplay(f"{policy.name} with these settings looks at more than tokens")
    if summary_tokens < MIN_SIZED_TOKENS:
        return NeedsFullReplay(
            f"summaries of less than {MIN_SIZED_TOKENS} tokens cannot be told apart"
        )
    view = TracedView(trace, pins, limit)
    terms = _TokenTerms(
        policy, most, summary_tokens, minimum_gain, ceil(regrowth * limit), once_a_turn
    )
    run = _TokenRun(view, terms)
    try:
        run.run()
    except _BeyondTokensError as beyond:
        return NeedsFullReplay(str(beyond))
    return TokenReplay(trace, tuple(run.compactions), run.futile)


class _BeyondTokensError(Exception):
    """A step needs more than tokens."""


@dataclass(frozen=True)
class _TokenTerms:
    """The terms of a compaction, in tokens."""

    policy: Policy
    max_view_tokens: int
    """The most tokens in use at which the policy does nothing."""
    summary: int
    minimum_gain: float
    regrowth_tokens: int
    """How much must be added before a failed compaction is tried again."""
    once_a_turn: bool
    """Whether a turn has at most one compaction by threshold."""


class _TokenRun:
    def __init__(self, view: TracedView, terms: _TokenTerms) -> None:
        self.view, self.trace, self.limit = view, view.trace, view.limit
        self.terms = terms
        self.shortening = TraceShortening(view.trace, view.limit)
        self.compactions: list[TokenCompaction] = []
        self.futile = 0
        self._offset = 0
        self._regrown_at = 0
        """The first call with enough growth since a compaction gained nothing."""
        self._over_at = 0
        """The first call after the turn that had its one compaction."""
        self._is_written = False
        """Whether the newest plan reached its summary."""
        self._rising = [0, *self.trace.shrinking_calls, len(self.trace.whole)]

    def run(self) -> None:
        call, answered = 0, 0
        while True:
            asked = max(call, answered, self._regrown_at, self._over_at)
            due = full = self._find_first_above(asked, self.terms.max_view_tokens)
            if self.limit > 0 and (call < asked or self.limit < self.terms.max_view_tokens):
                full = self._find_first_above(call, self.limit)
            call = min(due, full)
            if call == len(self.trace.whole):
                return
            self.view.end = self.trace.upto[call]
            if max(answered, self._over_at) <= call < self._regrown_at:
                raise _BeyondTokensError("a prompt is too large right after nothing was gained")
            if due == call and self._compact(call, Trigger.THRESHOLD):
                answered = self._find_next_answered(call)
            if 0 < self.limit < self._count_tokens(call) and self._compact(call, Trigger.OVERFLOW):
                answered = self._find_next_answered(call)
            call += 1

    def _count_tokens(self, call: int) -> int:
        return self.trace.whole[call] + self._offset

    def _find_first_above(self, begin: int, tokens: int) -> int:
        """Return the first call from `begin` on whose prompt would have more tokens."""
        whole, wanted = self.trace.whole, tokens - self._offset
        piece = bisect_right(self._rising, begin)
        for end in self._rising[piece:]:
            found = bisect_right(whole, wanted, begin, end)
            if found < end:
                return found
            begin = end
        return len(whole)

    def _find_next_answered(self, call: int) -> int:
        """Return the first call that is not for the request that a boundary was recorded for."""
        return bisect_right(self.trace.answered, self.trace.sees[call], lo=call)

    def _compact(self, call: int, trigger: Trigger) -> bool:
        self._is_written = False
        try:
            found = self._draw(call, trigger)
        except NothingToCompactError:
            if trigger is Trigger.THRESHOLD or self._is_written:
                self._regrown_at = self._find_grown_call(call)
            found = None
        if found is None:
            self.futile += 1
            return False
        self._regrown_at = 0
        is_the_one = self.terms.once_a_turn and trigger is Trigger.THRESHOLD
        turn = self.trace.turn
        self._over_at = bisect_right(turn, turn[call], lo=call) if is_the_one else 0
        self.compactions.append(found)
        self._offset = found.offset
        return True

    def _find_grown_call(self, call: int) -> int:
        if not self.trace.sees[call]:
            return 0  # with an empty log, no failure is recorded
        said = self.trace.said
        return bisect_left(said, said[call] + self.terms.regrowth_tokens, lo=call)

    def _draw(self, call: int, trigger: Trigger) -> TokenCompaction | None:
        view, before = self.view, self._count_tokens(call)
        held = view.find_held()
        if view.has_released(held):
            raise _BeyondTokensError("what was carried over a boundary may leave again")
        request = self.trace.count_request(call)
        plan = self._plan(before, trigger, request, held)
        if plan is None:
            if trigger is Trigger.THRESHOLD:
                raise _BeyondTokensError("the policy lets more be than its limit tells")
            return None
        cut = None if plan.cut is None else view.find_nearest_cut(plan.cut, held)
        first = view.first if cut is None else cut
        carried = view.carried if cut is None else view.find_carried(first, held)
        stays = view.count_carried_tokens(carried) + view.count_tokens_from(first)
        shorter: list[int] = []
        if cut is None or 0 < self.limit < request + stays:
            shorter = self._list_shortened(carried, first, held)
        most = min(plan.most_tokens or self.limit, self.limit) if self.limit > 0 else inf
        if cut is None and not shorter:
            if before > most:
                raise _BeyondTokensError("what stays has to be made to fit")
            raise NothingToCompactError("no cut is legal, and no result large")
        besides = request + stays - sum(map(self.shortening.count_saved_tokens, shorter))
        least = min(plan.summary_tokens + plan.turn_tokens, self.limit // SUMMARY_DIVISOR)
        if besides + (view.summary if cut is None else least) > most:
            raise _BeyondTokensError("what stays has to be made to fit")
        self._check_gain(before, besides, request, trigger)
        # If nothing leaves, the earlier summary stays.
        unchanged, summary = request + view.summary, view.summary
        if cut is None:
            unchanged += view.count_tokens_before(shorter[0])
        else:
            unchanged, left = request, before - request - view.summary - stays
            summary = self._size_summary(
                _compute_summary_budget(plan, most - besides), left + view.summary
            )
        self._is_written = True
        self._check_gain(before, besides + summary, request, trigger)
        if cut is not None:
            view.cut_before(cut, carried, summary)
        for index in shorter:
            view.shorten(index, self.shortening.count_tokens(index))
        return TokenCompaction(
            call=call,
            trigger=trigger,
            first_kept=self.trace.position[first],
            before=before,
            after=besides + summary,
            summary=summary,
            unchanged=unchanged,
            offset=view.offset,
        )

    def _size_summary(self, most: int, replaced: int) -> int:
        """Return the tokens of a summary, limited by `max_view_tokens` and the replaced tokens."""
        if most < MIN_SIZED_TOKENS:
            raise _BeyondTokensError(f"a summary may have {most} tokens")
        return clamp_size(self.terms.summary, most, max(replaced - 1, ALWAYS_SMALL_TOKENS))

    def _list_shortened(self, carried: tuple[int, ...], first: int, held: set[int]) -> list[int]:
        """Return the largest results that stay, except pinned and already shortened ones."""
        view, large = self.view, self.shortening.large_results
        if Kind.TOOL_RESULT in view.pins.kinds:
            raise _BeyondTokensError("results are pinned by their size, which would change")
        begin, end = bisect_left(large, first), bisect_left(large, view.end)
        found = (*sorted(set(large).intersection(carried)), *large[begin:end])
        return [index for index in found if index not in view.shortened and index not in held]

    def _plan(self, used: int, trigger: Trigger, request: int, held: set[int]) -> Plan | None:
        held_tokens = self.view.count_held_tokens(held)
        if 0 < self.view.pins.most_together * self.limit < held_tokens:
            raise _BeyondTokensError("rules pin no more than a part of the context")
        window = TracedWindow(self.view, trigger, used, request, held_tokens)
        try:
            plan = self.terms.policy.plan(window)
        except NothingToCompactError as nothing:
            if not 0 < self.limit < used:
                raise
            return Plan(None, str(nothing), summary_tokens=self.limit // SUMMARY_DIVISOR)
        if plan is not None and (plan.trims or plan.drops):
            raise _BeyondTokensError(f"{self.terms.policy.name} shortens or drops blocks")
        return plan

    def _check_gain(self, before: int, after: int, request: int, trigger: Trigger) -> None:
        if after >= before:
            raise NothingToCompactError("nothing to gain")
        is_unasked = trigger is Trigger.THRESHOLD and not 0 < self.limit < before
        if is_unasked and before - after < self.terms.minimum_gain * (before - request):
            raise NothingToCompactError("too little to gain")


def _compute_summary_budget(plan: Plan, room: float) -> int:
    granted = plan.summary_tokens + plan.turn_tokens
    if room == inf or not granted:
        return plan.summary_tokens
    return min(plan.summary_tokens, max(int(room) * plan.summary_tokens // granted, 1))
