"""Calibrates a recording by its provider's reports: sizes of blocks, and the rest of prompts."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ..domain.billing import CacheReport
from ..domain.event import Event
from ..domain.token_estimate import (
    CHARS_PER_TOKEN,
    CONTENT_KINDS,
    ContentKind,
    TokenCalibration,
    is_credible,
)
from .context_usage import ContextUsageTracker
from .history_view import HistoryFold
from .recording import RecordedCall, Recording, RecordingCalibration
from .replay import RecordedDecider, replay_recording
from .replay_fold import ReplayFold
from .view_content import RecordedEvent, estimate_system_and_tools

_EMPTY_CACHE_REPORT = CacheReport(unchanged=0, read=0, written=0, plain=0)


def calibrate_recording(
    recording: Recording, decisions: Sequence[Event], lineage: str
) -> Recording:
    """Return the same session with its blocks as large as its model counts them.

    `decisions` are the recorded compactions of `lineage`. Without a credible report, return the
    recording unchanged, with estimated tokens.
    """
    if not any(call.prompt for call in recording.calls):
        return recording
    fold = HistoryFold(sees=lambda _: False).apply_all(recording.log.values())
    ratios = fold.usage_tracker.find_calibration()
    scaled = replace(recording, log=_scale_events(recording.log, ratios))
    replayed = replay_recording(scaled, RecordedDecider(decisions, lineage))
    overheads = [_count_overhead(fold, served.call) for served, fold in replayed]
    known = [tokens for tokens in overheads if tokens is not None]
    if not known:
        return recording
    calibration = RecordingCalibration(
        reports=len(known),
        chars_per_token=CHARS_PER_TOKEN * _count_tokens(recording) / _count_tokens(scaled),
        # A call without a report has the overhead of the one before it.
        overhead_by_call=tuple(
            accumulate(overheads, lambda last, now: last if now is None else now, initial=known[0])
        )[1:],
        cache_reports=tuple(map(_make_cache_report, scaled.calls)),
    )
    measured = replace(scaled, calibration=calibration)
    replayed = replay_recording(measured, RecordedDecider(decisions, lineage))
    cached = tuple(
        report and replace(report, unchanged=served.unchanged)
        for report, (served, _) in zip(calibration.cache_reports, replayed, strict=True)
    )
    return replace(measured, calibration=replace(calibration, cache_reports=cached))


def _scale_events(
    log: dict[int, RecordedEvent], calibration: TokenCalibration
) -> dict[int, RecordedEvent]:
    """Return the log with the model's tokens of each block."""
    shown = HistoryFold(sees=lambda _: None).apply_all(one for one in log.values() if one.tokens)
    entries = [
        replace(entry, shown=None, tokens=log[entry.position].tokens)
        for entry in shown.entries.values()
    ]
    sizes = ContextUsageTracker().list_sizes(calibration, entries)
    scaled = dict(log)
    for entry, tokens in zip(entries, sizes, strict=True):
        kind = CONTENT_KINDS.get(entry.block.kind, ContentKind.TEXT)
        scaled[entry.position] = replace(
            log[entry.position], tokens=tokens, ratio=calibration.get_ratio(kind)
        )
    return scaled


def _count_overhead(fold: ReplayFold, call: RecordedCall) -> int | None:
    """Return a reported prompt's tokens apart from blocks and summary; None if unknown."""
    context = call.report.context if call.report else None
    if context is None or not is_credible(context, fold.tokens - fold.request_tokens):
        return None
    # A smaller number only means that blocks are smaller than estimated.
    return max(
        estimate_system_and_tools(fold.history.system, fold.history.tools), fold.request_tokens
    )


def _make_cache_report(call: RecordedCall) -> CacheReport | None:
    if call.report is None:
        # The session records its calls, so this is not one: a part of another answer, or text of
        # the agent's program in the model's name.
        return _EMPTY_CACHE_REPORT
    usage = call.report.usage
    if usage is None or usage.context is None:
        return None
    return CacheReport(
        unchanged=0,
        read=usage.cache_read or 0,
        written=usage.cache_write or 0,
        plain=usage.input or 0,
        written_1h=usage.cache_write_1h or 0,
    )


def _count_tokens(recording: Recording) -> int:
    return sum(one.tokens for one in recording.log.values()) or 1
