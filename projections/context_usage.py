"""Measures how much of a model's context a view takes: the reported tokens, and what came since."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..domain.blocks import ASSISTANT_KINDS, BlockKind
from ..domain.image_tokens import ImageRule, find_image_rule
from ..domain.session_events import ModelCalled
from ..domain.token_estimate import (
    FRAME_TOKENS,
    MAX_EXTRA_BLOCK_TOKENS,
    MAX_RATIO,
    MAX_TOKENS_PER_SEALED_CHAR,
    ContentKind,
    ContentTokens,
    TokenCalibration,
    is_credible,
)
from .view_content import RecordedEvent, TokenCounts, ViewEntry

_MIN_ANSWER_SHARE = 0.5
"""A reported answer below this share of the logged one was counted while it streamed."""


class RequestOverhead(NamedTuple):
    """Everything that is sent except the blocks."""

    system: RecordedEvent | None
    tools: RecordedEvent | None
    summary: str


class CallSample(NamedTuple):
    """A call of a model, with the changes of the view since the call before.

    A named tuple, the fastest to make, because a fold makes one for each call.
    """

    call: ModelCalled
    new_entries: tuple[ViewEntry, ...]
    """The entries added since then that the call saw; empty for the first call."""
    retracted_entries: tuple[ViewEntry, ...]
    """The entries retracted since then that the call before had seen."""
    visible_tokens: int
    """Estimated tokens of all blocks that the call saw."""
    request: RequestOverhead
    is_whole: bool
    """Whether the fold has all new entries as they were sent."""
    saw_this_view: bool
    """Whether the call saw this view, and not one that a compaction has ended."""


@dataclass(frozen=True, slots=True)
class EarlierUsage:
    """What calls on the previous view tell about this one."""

    model: str | None
    ratios: Mapping[ContentKind, float]
    """The model's tokens for one estimated token, by kind of content."""
    unseen_tokens: int
    """Tokens that the provider counted and no log holds, such as its own prompts and tools."""
    learned_to: int = 0
    """The position up to which all calls are already in the ratios."""


class _Growth(NamedTuple):
    """How much a view grew after a call."""

    tokens: float
    known: float
    """The part that needs no estimate by kind."""
    load: ContentTokens
    """The estimated tokens of the rest."""
    answer: ContentTokens
    """The estimated tokens of the call's answer, if its size is reported."""
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """How much of the context a view takes."""

    calibration: TokenCalibration
    used_tokens: int
    reported_tokens: int | None
    """Context of the newest call that saw this view and has a credible report."""
    last_seen_position: int | None = None
    """The last position that this call saw."""


class ContextUsageTracker:
    """Learns from the calls of one fold, in order, each once."""

    def __init__(
        self,
        token_counts: TokenCounts | None = None,
        earlier: Callable[[], EarlierUsage | None] = lambda: None,
    ) -> None:
        self._tally = token_counts or TokenCounts()
        self._earlier = earlier
        self._unseen = self._learned_to = 0
        self._gauge: TokenCalibration | None = None
        self._anchor: CallSample | None = None
        """The newest call with a credible report."""
        self._since: tuple[ViewEntry, ...] = ()
        self._gone: tuple[ViewEntry, ...] = ()
        """The changes after it that later calls without a credible report saw."""
        self._news: list[CallSample] = []
        self._summed: tuple[TokenCalibration | None, tuple[ViewEntry, ...], int] = (None, (), 0)
        """The total tokens of some entries under one calibration."""

    def add_sample(self, lap: CallSample) -> None:
        self._news.append(lap)

    def find_calibration(self) -> TokenCalibration:
        """Return the calibration after all samples so far."""
        if self._gauge is None:
            earlier = self._earlier()
            self._gauge = TokenCalibration()
            if earlier is not None:
                self._unseen, self._learned_to = earlier.unseen_tokens, earlier.learned_to
                self._gauge = TokenCalibration(model=earlier.model, prior=earlier.ratios)
        news, self._news = self._news, []
        for lap in news:
            if lap.call.position > self._learned_to or lap.saw_this_view:
                self._gauge = self._learn(self._gauge, lap)
        return self._gauge

    def measure_usage(
        self,
        entries: tuple[ViewEntry, ...],
        request: RequestOverhead,
        gone: Iterable[ViewEntry] = (),
    ) -> ContextUsage:
        """Return the usage of a view; `retracted_entries` were retracted since a call."""
        gauge = self.find_calibration()
        anchor = self._anchor if self._anchor and self._anchor.saw_this_view else None
        if anchor is None:
            overhead = gauge.get_ratio(ContentKind.REQUEST) * self._count_overhead(request)
            return ContextUsage(
                gauge, round(self._sum_tokens(gauge, entries) + overhead) + self._unseen, None
            )
        seen = anchor.call.position
        later = len(entries)
        while later and entries[later - 1].position > seen:
            later -= 1
        lost = [entry for entry in (*self._gone, *gone) if entry.position <= seen]
        growth = self._measure_growth(gauge, anchor, entries[later:], lost, request)
        context = _get_context(anchor)
        return ContextUsage(gauge, max(1, round(context + growth.tokens)), context, seen)

    def _sum_tokens(self, calibration: TokenCalibration, entries: tuple[ViewEntry, ...]) -> int:
        """Return the size of all entries, measuring only those added since the last time."""
        known, summed, total = self._summed
        if calibration is not known or entries[: len(summed)] != summed:
            summed, total = (), 0
        total += sum(self.list_sizes(calibration, entries[len(summed) :]))
        self._summed = calibration, entries, total
        return total

    def list_sizes(
        self, calibration: TokenCalibration, entries: Sequence[ViewEntry]
    ) -> tuple[int, ...]:
        """Return the model's tokens for each entry; estimates if nothing was learned."""
        rule, size = find_image_rule(calibration.model), self._tally.count_entry
        if not calibration.has_learned:
            found = (size(entry, rule) for entry in entries)
            return tuple(max(1, text + media) for _, text, media in found)
        ratios = {sort: calibration.get_ratio(sort) for sort in ContentKind}
        frame = FRAME_TOKENS * ratios[ContentKind.FRAME]
        return tuple(
            max(1, round(text * ratios[sort] + media * ratios[ContentKind.MEDIA] + frame))
            for sort, text, media in (size(entry, rule) for entry in entries)
        )

    def _learn(self, calibration: TokenCalibration, lap: CallSample) -> TokenCalibration:
        calibration = calibration.switch_model(lap.call.model)
        context = _get_context(lap)
        anchor = self._anchor
        if anchor is not None and anchor.saw_this_view and not lap.saw_this_view:
            return calibration  # reported late: a newer call saw this view
        if anchor is None or not _is_same_view(anchor, lap):
            if not is_credible(context, self._estimate_tokens(calibration, lap)):
                return calibration
            self._settle_sample(lap)
            return calibration
        since, gone = (*self._since, *lap.new_entries), (*self._gone, *lap.retracted_entries)
        growth = self._measure_growth(calibration, anchor, since, gone, lap.request)
        expected = _get_context(anchor) + growth.tokens
        if not is_credible(context, expected) and not is_credible(
            context, self._estimate_tokens(calibration, lap)
        ):
            self._since, self._gone = since, gone
            return calibration
        is_again = lap.call.position == anchor.call.position
        if lap.is_whole and not is_again and lap.call.model == anchor.call.model:
            calibration = calibration.learn_growth(growth.answer, growth.answer_tokens)
            if context > _get_context(anchor):
                rest = context - _get_context(anchor) - growth.known
                calibration = calibration.learn_growth(growth.load, rest)
        self._settle_sample(lap)
        return calibration

    def _estimate_tokens(self, calibration: TokenCalibration, lap: CallSample) -> float:
        ratio = calibration.prior.get(ContentKind.TEXT, 1.0)
        return ratio * (lap.visible_tokens + self._count_overhead(lap.request))

    def _settle_sample(self, lap: CallSample) -> None:
        self._anchor, self._since, self._gone = lap, (), ()

    def _measure_growth(
        self,
        calibration: TokenCalibration,
        anchor: CallSample,
        since: Iterable[ViewEntry],
        gone: Iterable[ViewEntry],
        request: RequestOverhead,
    ) -> _Growth:
        rule = find_image_rule(calibration.model)
        entries = list(since)
        answer = _find_answer(entries)
        answer_tokens = self._count_answer_tokens(calibration, anchor.call, answer, rule)
        if answer_tokens is None:
            answer, answer_tokens = [], 0
        own = {entry.position for entry in answer}
        load = self._tally.sum_by_kind((e for e in entries if e.position not in own), rule)
        known = float(answer_tokens)
        if request != anchor.request:
            more = self._count_overhead(request) - self._count_overhead(anchor.request)
            known += calibration.get_ratio(ContentKind.REQUEST) * more
        known -= calibration.predict_tokens(self._tally.sum_by_kind(gone, rule))
        tokens = known + calibration.predict_tokens(load)
        return _Growth(tokens, known, load, self._tally.sum_by_kind(answer, rule), answer_tokens)

    def _count_answer_tokens(
        self,
        calibration: TokenCalibration,
        call: ModelCalled,
        answer: Sequence[ViewEntry],
        rule: ImageRule,
    ) -> int | None:
        """Return the reported tokens of a call's answer; None if they differ from what is sent
        again.

        Reasoning outside the log is not sent again; content that its provider sealed is.
        """
        output = call.usage.output if call.usage else None
        if output is None or not answer:
            return None
        sealed = sum(
            len(entry.block.native.item)
            for entry in answer
            if entry.block.kind is BlockKind.THINKING and entry.block.native
        )
        if not sealed and call.usage and call.usage.reasoning:
            output -= call.usage.reasoning
        shows = calibration.predict_tokens(self._tally.sum_by_kind(answer, rule))
        most = (
            MAX_RATIO * shows
            + MAX_EXTRA_BLOCK_TOKENS * len(answer)
            + MAX_TOKENS_PER_SEALED_CHAR * sealed
        )
        return output if _MIN_ANSWER_SHARE * shows <= output <= most else None

    def _count_overhead(self, request: RequestOverhead) -> int:
        """Return the estimated tokens of everything that is sent except the blocks."""
        tally = self._tally
        return (
            tally.count_request(request.system)
            + tally.count_request(request.tools)
            + tally.count_text(request.summary)
        )


def _get_context(lap: CallSample) -> int:
    context = lap.call.context
    assert context is not None, "only calls that were measured make laps"
    return context


def _is_same_view(one: CallSample, other: CallSample) -> bool:
    if one.saw_this_view or other.saw_this_view:
        return one.saw_this_view and other.saw_this_view
    return (one.call.lineage, one.call.lineage_version) == (
        other.call.lineage,
        other.call.lineage_version,
    )


def _find_answer(entries: Sequence[ViewEntry]) -> list[ViewEntry]:
    """Return the model's answer to a call: its first message after it."""
    answer: list[ViewEntry] = []
    for entry in entries:
        by_model = entry.block.kind in ASSISTANT_KINDS
        if by_model and (not answer or entry.block.message_id == answer[0].block.message_id):
            answer.append(entry)
        elif answer and answer[0].block.message_id is None:
            break
    return answer
