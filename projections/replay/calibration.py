"""Measures a recording by its provider's reports: what blocks take, and what is sent besides."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...domain.backtest.billing import CacheReport
from ...domain.counting.gauge import SORTS, Gauge, Sort, is_credible
from ...domain.event import Event
from ...domain.token_budget import CHARS_PER_TOKEN
from ..history_view import History
from ..reckoning import Reckoning
from ..recorded import Recorded
from .as_recorded import AsRecorded
from .fold import Fold, estimate_besides
from .recording import Calibration, Call, Recording
from .replay import replayed

NOTHING = CacheReport(unchanged=0, read=0, written=0, plain=0)


def calibrate(recording: Recording, decisions: Sequence[Event], lineage: str) -> Recording:
    """The same session, its blocks as large as its model counts them.

    `decisions` are the compactions that took place, those of `lineage`. Where no size was reported
    that can be believed, it is the recording as it was, and all of its tokens are estimates.
    """
    if not any(call.prompt for call in recording.calls):
        return recording
    gauge = History(sees=lambda _: False).apply_all(recording.log).reckoning.gauge()
    scaled = replace(recording, log=list(_scale(recording.log, gauge)))
    besides: list[int | None] = []
    fold, decider = Fold(scaled, lineage), AsRecorded(decisions, lineage)
    for call in scaled.calls:
        fold.advance(call.sees)
        decider.decided(fold, call)
        besides.append(_besides(fold, call))
    known = [tokens for tokens in besides if tokens is not None]
    if not known:
        return recording
    calibration = Calibration(
        reports=len(known),
        chars_per_token=CHARS_PER_TOKEN * (_tokens(recording) or 1) / (_tokens(scaled) or 1),
        besides=tuple(_fill(besides, known[0])),
        cached=tuple(map(_cached, scaled.calls)),
    )
    measured = replace(scaled, calibration=calibration)
    sent = replayed(measured, AsRecorded(decisions, lineage))
    cached = tuple(
        report and replace(report, unchanged=served.unchanged)
        for report, served in zip(calibration.cached, sent, strict=True)
    )
    return replace(measured, calibration=replace(calibration, cached=cached))


def _scale(log: Sequence[Recorded], gauge: Gauge) -> Iterator[Recorded]:
    """Each event with the tokens that its block has to the model."""
    shown = History(sees=lambda _: None).apply_all(one for one in log if one.tokens)
    entries = [
        replace(entry, shown=None, tokens=log[entry.position - 1].tokens)
        for entry in shown.entries.values()
    ]
    sizes = Reckoning().sizes(gauge, entries)
    found = {
        entry.position: (tokens, gauge.ratio(SORTS.get(entry.block.kind, Sort.TEXT)))
        for entry, tokens in zip(entries, sizes, strict=True)
    }
    for one in log:
        if one.position in found:
            tokens, ratio = found[one.position]
            yield replace(one, tokens=tokens, ratio=ratio)
        else:
            yield one


def _besides(fold: Fold, call: Call) -> int | None:
    """What a reported prompt had besides blocks and summary; None where it cannot be told."""
    context = call.reported.context if call.reported else None
    if context is None or not is_credible(context, fold.tokens - fold.request_tokens):
        return None
    # Less than the log tells was sent besides only where blocks are smaller than they look.
    return max(estimate_besides(fold.history), fold.request_tokens)


def _cached(call: Call) -> CacheReport | None:
    if call.reported is None:
        # Where calls are recorded, this is none: a piece of another one's answer, or what the
        # agent's program said in the model's name.
        return NOTHING
    usage = call.reported.usage
    if usage is None or usage.context is None:
        return None
    return CacheReport(
        unchanged=0,
        read=usage.cache_read or 0,
        written=usage.cache_write or 0,
        plain=usage.input or 0,
        written_1h=usage.cache_write_1h or 0,
    )


def _fill(besides: Iterable[int | None], first: int) -> Iterator[int]:
    """Of calls without a report, what the one before them had."""
    last = first
    for tokens in besides:
        last = last if tokens is None else tokens
        yield last


def _tokens(recording: Recording) -> int:
    return sum(one.tokens for one in recording.log)
