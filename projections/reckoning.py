"""Reckons how much of a model's context a view takes: what was reported, and what came since."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..domain.blocks import BY_ASSISTANT, Kind
from ..domain.counting.gauge import (
    CALL_FRAME,
    FRAME,
    HIDDEN,
    MOST,
    Gauge,
    Sort,
    is_credible,
)
from ..domain.counting.images import ImageRule, image_rule
from ..domain.session_events import ModelCalled
from .entry import Entry
from .recorded import Recorded
from .tally import Tally

SHORT = 0.5
"""A reported answer below this share of what stands in the log was counted while it streamed."""


class Request(NamedTuple):
    """What is sent besides the blocks."""

    system: Recorded | None
    tools: Recorded | None
    summary: str


class Lap(NamedTuple):
    """A call of a model, and what became of the view since the call before it.

    A named tuple, the fastest to make: a fold makes one of each call.
    """

    call: ModelCalled
    since: tuple[Entry, ...]
    """What was appended since, up to what the call saw; nothing for the first call."""
    gone: tuple[Entry, ...]
    """What was taken back since, of what the call before it had seen."""
    shown: int
    """Estimated tokens of all blocks that the call saw."""
    request: Request
    is_whole: bool
    """Whether the fold knows all that was appended, as it was shown."""
    is_here: bool
    """Whether the call saw this very view, and not one that a compaction has ended."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the calls on the view before this one tell about this one."""

    model: str | None
    ratio: float
    """Tokens that the model made of one estimated token."""
    unseen: int
    """Tokens that the provider counted and no log holds: its own prompts, tools that nobody set."""


@dataclass(frozen=True, slots=True)
class Use:
    """How much of the context a view takes, as far as can be told."""

    gauge: Gauge
    used: int
    reported: int | None
    """Context of the newest call that saw this view, where it can be believed."""
    seen: int | None = None
    """What that call saw last."""


class Reckoning:
    """Learns from the calls of one fold, in order; each of them is taken in once."""

    def __init__(
        self, tally: Tally | None = None, earlier: Callable[[], Earlier | None] = lambda: None
    ) -> None:
        self._tally = tally or Tally()
        self._earlier = earlier
        self._unseen = 0
        self._gauge: Gauge | None = None
        self._anchor: Lap | None = None
        """The newest call whose report was believed."""
        self._since: tuple[Entry, ...] = ()
        self._gone: tuple[Entry, ...] = ()
        """What changed after it, as far as later calls saw it whose report was not."""
        self._news: list[Lap] = []
        self._summed: tuple[Gauge | None, tuple[Entry, ...], int] = (None, (), 0)
        """What a gauge made of some entries in all."""

    def take(self, lap: Lap) -> None:
        self._news.append(lap)

    def anchored_at(self) -> int:
        """What the newest call saw last whose report was believed; 0 where there was none."""
        self.gauge()
        return self._anchor.call.position if self._anchor else 0

    def gauge(self) -> Gauge:
        """What is known by now."""
        if self._gauge is None:
            earlier = self._earlier()
            self._gauge = Gauge()
            if earlier is not None:
                self._unseen = earlier.unseen
                self._gauge = Gauge(model=earlier.model, prior=earlier.ratio)
        news, self._news = self._news, []
        for lap in news:
            self._gauge = self._learned(self._gauge, lap)
        return self._gauge

    def use(self, entries: tuple[Entry, ...], request: Request, gone: Iterable[Entry] = ()) -> Use:
        """What a view takes that holds these entries now; `gone` was taken back since a call."""
        gauge = self.gauge()
        anchor = self._anchor if self._anchor and self._anchor.is_here else None
        if anchor is None:
            besides = gauge.ratio(Sort.REQUEST) * self._besides(request)
            return Use(gauge, round(self._sum(gauge, entries) + besides) + self._unseen, None)
        seen = anchor.call.position
        later = len(entries)
        while later and entries[later - 1].position > seen:
            later -= 1
        lost = [entry for entry in (*self._gone, *gone) if entry.position <= seen]
        grown, _, _ = self._growth(gauge, anchor, entries[later:], lost, request)
        context = _context(anchor)
        return Use(gauge, max(1, round(context + grown)), context, seen)

    def _sum(self, gauge: Gauge, entries: tuple[Entry, ...]) -> int:
        """The sizes of all entries; only what came since the last time is looked at."""
        known, summed, total = self._summed
        if gauge is not known or entries[: len(summed)] != summed:
            summed, total = (), 0
        total += sum(self.sizes(gauge, entries[len(summed) :]))
        self._summed = gauge, entries, total
        return total

    def sizes(self, gauge: Gauge, entries: Sequence[Entry]) -> tuple[int, ...]:
        """Tokens of each entry as the model counts it; as estimated where nothing was learned."""
        rule, size = image_rule(gauge.model), self._tally.size
        if not gauge.has_learned:
            found = (size(entry, rule) for entry in entries)
            return tuple(max(1, text + media) for _, text, media in found)
        ratios = {sort: gauge.ratio(sort) for sort in Sort}
        frame = FRAME * ratios[Sort.FRAME]
        return tuple(
            max(1, round(text * ratios[sort] + media * ratios[Sort.MEDIA] + frame))
            for sort, text, media in (size(entry, rule) for entry in entries)
        )

    def _learned(self, gauge: Gauge, lap: Lap) -> Gauge:
        gauge = gauge.speaking_to(lap.call.model)
        context = _context(lap)
        anchor = self._anchor
        if anchor is not None and anchor.is_here and not lap.is_here:
            return gauge  # told late: this view has been seen since
        if anchor is None or not _on_one_view(anchor, lap):
            if not is_credible(context, self._estimated(gauge, lap)):
                return gauge.refusing()
            self._settle(lap)
            return gauge
        since, gone = (*self._since, *lap.since), (*self._gone, *lap.gone)
        grown, fixed, load = self._growth(gauge, anchor, since, gone, lap.request)
        expected = _context(anchor) + grown
        if not is_credible(context, expected) and not is_credible(
            context, self._estimated(gauge, lap)
        ):
            self._since, self._gone = since, gone
            return gauge.refusing()
        is_again = lap.call.position == anchor.call.position
        if lap.is_whole and not is_again and lap.call.model == anchor.call.model:
            gauge = gauge.predicted(expected, context)
            if context > _context(anchor):
                gauge = gauge.learned(load, context - _context(anchor) - fixed)
        self._settle(lap)
        return gauge

    def _estimated(self, gauge: Gauge, lap: Lap) -> float:
        """What a call saw, by the plain estimate."""
        return gauge.prior * (lap.shown + self._besides(lap.request))

    def _settle(self, lap: Lap) -> None:
        self._anchor, self._since, self._gone = lap, (), ()

    def _growth(
        self,
        gauge: Gauge,
        anchor: Lap,
        since: Iterable[Entry],
        gone: Iterable[Entry],
        request: Request,
    ) -> tuple[float, float, dict[Sort, int]]:
        """What a view grew by after a call; how much of it is known; the load of the rest."""
        rule = image_rule(gauge.model)
        entries = list(since)
        answer = _answer(entries)
        fixed = self._answered(gauge, anchor.call, answer, rule)
        if fixed is not None:
            own = {entry.position for entry in answer}
            entries = [entry for entry in entries if entry.position not in own]
        load = self._tally.load(entries, rule)
        known = float(fixed or 0)
        if request != anchor.request:
            more = self._besides(request) - self._besides(anchor.request)
            known += gauge.ratio(Sort.REQUEST) * more
        known -= gauge.tokens(self._tally.load(gone, rule))
        return known + gauge.tokens(load), known, load

    def _answered(
        self, gauge: Gauge, call: ModelCalled, answer: Sequence[Entry], rule: ImageRule
    ) -> int | None:
        """Tokens of a call's answer, as reported; None where that cannot be what is sent again.

        Reasoning that is not in the log is not sent again. What its provider sealed is.
        """
        output = call.usage.output if call.usage else None
        if output is None or not answer:
            return None
        sealed = sum(
            len(entry.block.native.item)
            for entry in answer
            if entry.block.kind is Kind.THINKING and entry.block.native
        )
        if not sealed and call.usage and call.usage.reasoning:
            output -= call.usage.reasoning
        shows = gauge.tokens(self._tally.load(answer, rule))
        most = MOST * shows + CALL_FRAME * len(answer) + HIDDEN * sealed
        return output if SHORT * shows <= output <= most else None

    def _besides(self, request: Request) -> int:
        """Estimated tokens of what is sent besides the blocks."""
        tally = self._tally
        return (
            tally.request(request.system)
            + tally.request(request.tools)
            + tally.text(request.summary)
        )


def _context(lap: Lap) -> int:
    context = lap.call.context
    assert context is not None, "only calls that were measured make laps"
    return context


def _on_one_view(one: Lap, other: Lap) -> bool:
    """Whether both calls saw the same view, the later one more of it."""
    if one.is_here or other.is_here:
        return one.is_here and other.is_here
    return (one.call.lineage, one.call.lineage_version) == (
        other.call.lineage,
        other.call.lineage_version,
    )


def _answer(entries: Sequence[Entry]) -> list[Entry]:
    """What a model answered a call with: the first message of its own after it."""
    answer: list[Entry] = []
    for entry in entries:
        by_model = entry.block.kind in BY_ASSISTANT
        if by_model and (not answer or entry.block.message_id == answer[0].block.message_id):
            answer.append(entry)
        elif answer and answer[0].block.message_id is None:
            break
    return answer
