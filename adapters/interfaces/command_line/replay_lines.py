"""Writes the result of a replay, as lines and as JSON."""

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ....domain.ranges import Ranges
from ....projections.replay.replay import ReplayCompaction
from ...analysis.replaying.deciders import NO_POLICY, RECORDED_POLICY
from ...analysis.replaying.run_replay import Replay, ReplayCallResult
from .explanation_lines import describe_repair
from .printing import clip_text, format_count, format_handles, list_handle_ranges, print_text

_NUMBER_CELLS = 10
"""Columns of a line's label."""
_REASON_CHARACTERS = 110
"""Characters shown of a reason; the JSON has all of it."""

_NUMBER = re.compile(r"#?[0-9][0-9,.]*%?")


def print_replay(replay: Replay) -> None:
    """Print a line or more for each call with a compaction, and the totals."""
    for line in _call_lines(replay):
        print_text(line)
    print_text(f"{replay.session}: {_format_calls(replay)}, {_format_decisions(replay)}", bold=True)
    limit = f"{format_count(replay.limit, 'token')} ({replay.limit_source.phrase})"
    print_text(f"{'limit':<{_NUMBER_CELLS}}{limit}")
    if not replay.calls:
        return
    print_text(
        f"{'prompts':<{_NUMBER_CELLS}}{replay.tokens:,} tokens in all, the largest "
        f"{replay.peak_tokens:,}"
    )
    print_text(f"{'tokens':<{_NUMBER_CELLS}}{_describe_measure(replay)}")
    whole = f"{replay.unchanged_tokens:,} of these stood in the prompt before as well"
    print_text(f"{'cache':<{_NUMBER_CELLS}}{whole}: a provider's cache may hold them")
    compacted = format_count(len(replay.compactions), "compaction")
    nothing = f"; {replay.futile_count:,} more gained nothing" if replay.futile_count else ""
    print_text(f"{'compacted':<{_NUMBER_CELLS}}{compacted}{nothing}")
    if replay.summarizer_counts:
        by = ", ".join(f"{count:,} by {name}" for name, count in replay.summarizer_counts.items())
        stood_in = (
            f"; {replay.fallback_count:,} stood in for another" if replay.fallback_count else ""
        )
        print_text(f"{'summaries':<{_NUMBER_CELLS}}{by}{stood_in}")
    if replay.refused_count:
        print_text(
            f"{'refused':<{_NUMBER_CELLS}}{format_count(replay.refused_count, 'prompt')} over "
            "the limit"
        )
    if replay.lineage:
        print_text(f"{'stored':<{_NUMBER_CELLS}}as the lineage {replay.lineage}; to see it:")
        see = shlex.join(["cutbank", "view", replay.session, "--lineage", replay.lineage])
        print_text(f"{'':<{_NUMBER_CELLS}}{see}")


def replay_to_json(replay: Replay) -> dict[str, Any]:
    """Return a replay as `replay --json` prints it."""
    return {
        "session": replay.session,
        "namespace": replay.namespace,
        "policy": replay.policy,
        "limit": replay.limit,
        "limit_source": replay.limit_source,
        "summariser": replay.summarizer,
        "lineage": replay.lineage,
        "calls": len(replay.calls),
        "tokens": replay.tokens,
        "peak": replay.peak_tokens,
        "unchanged": replay.unchanged_tokens,
        "compactions": len(replay.compactions),
        "futile": replay.futile_count,
        "refused": replay.refused_count,
        "summarisers": replay.summarizer_counts,
        "stood_in": replay.fallback_count,
        "damaged": replay.damaged,
        "calibration": replay.calibration
        and {
            "reports": replay.calibration.reports,
            "chars_per_token": round(replay.calibration.chars_per_token, 3),
            "overhead": replay.calibration.overhead,
        },
        "sent": [_call_to_json(sent) for sent in replay.calls],
    }


def _describe_measure(replay: Replay) -> str:
    """Describe whether tokens are reported or estimated."""
    calibration = replay.calibration
    if calibration is None:
        return "estimated, four characters each: no provider reported any"
    by = format_count(calibration.reports, "report")
    own = "as reported" if replay.policy == RECORDED_POLICY else "calibrated"
    return (
        f"{own}, by {by} of the provider: {calibration.chars_per_token:.1f} characters each, and "
        f"{calibration.overhead:,} besides the blocks"
    )


def _format_calls(replay: Replay) -> str:
    return format_count(len(replay.calls), "call") if replay.calls else "no model was called"


def _format_decisions(replay: Replay) -> str:
    match replay.policy:
        case str(name) if name == NO_POLICY:
            return "never compacted"
        case str(name) if name == RECORDED_POLICY:
            return "compacted as it was recorded"
        case name:
            return f"compacted by {name}"


def _call_lines(replay: Replay) -> Iterator[str]:
    """Yield lines; consecutive calls with the same text share one."""
    for alike, calls in groupby(replay.calls, key=_comparison_key):
        group = list(calls)
        if not alike:
            continue
        first, last = group[0].call, group[-1].call
        named = f"call {first:,}" if first == last else f"calls {first:,}-{last:,}"
        line, *others = _describe_call(group[0])
        yield f"{named}: {line}"
        yield from (f"{'':<{_NUMBER_CELLS}}{line}" for line in others)


def _comparison_key(sent: ReplayCallResult) -> tuple[str, ...]:
    """Return the text about a call, without numbers that differ between futile calls."""
    said = tuple(_describe_call(sent))
    return said if sent.compactions else tuple(_NUMBER.sub("0", line) for line in said)


def _describe_call(sent: ReplayCallResult) -> Iterator[str]:
    for compacted, left in zip(sent.compactions, sent.left_ranges, strict=True):
        yield from _describe_compaction(sent, compacted, left)
    yield from (f"{one.trigger}: {_shorten_reason(one.reason)}" for one in sent.futile)
    if sent.is_refused:
        yield "refused: the prompt is larger than the limit"


def _shorten_reason(reason: str) -> str:
    """Return a reason without details such as block sizes."""
    return clip_text(reason.partition("; ")[0].partition(" (")[0], _REASON_CHARACTERS)


def _describe_compaction(
    sent: ReplayCallResult, compacted: ReplayCompaction, left: Ranges
) -> Iterator[str]:
    boundary, summary = compacted.boundary, compacted.summary
    yield (
        f"{boundary.trigger} at #{sent.last_seen_position}: {boundary.pre_tokens:,} -> "
        f"{boundary.post_tokens:,} tokens, kept from #{boundary.first_kept} on"
    )
    gone = f"{format_count(len(left), 'block')}: {format_handles(left)}" if left else "no block"
    shortened = (
        f"; {format_count(len(boundary.trims), 'result')} shortened" if boundary.trims else ""
    )
    yield f"left {gone}{shortened}"
    if summary is not None:
        yield f"in its place a summary by {summary.summariser}, {summary.tokens:,} tokens"
    for repair in compacted.repairs:
        yield f"repaired {describe_repair(repair)}"
    for complaint in compacted.refused_drafts:
        yield f"it stood in for another: {complaint}"


def _call_to_json(sent: ReplayCallResult) -> dict[str, Any]:
    return {
        "call": sent.call,
        "position": sent.last_seen_position,
        "tokens": sent.tokens,
        "unchanged": sent.unchanged_tokens,
        "refused": sent.is_refused,
        "compacted": [
            _compaction_to_json(one, left)
            for one, left in zip(sent.compactions, sent.left_ranges, strict=True)
        ],
        "futile": [{"trigger": one.trigger.value, "reason": one.reason} for one in sent.futile],
    }


def _compaction_to_json(one: ReplayCompaction, left: Ranges) -> dict[str, Any]:
    boundary, summary = one.boundary, one.summary
    return {
        "trigger": boundary.trigger.value,
        "boundary": boundary.originator_version,
        "after": boundary.after,
        "first_kept": boundary.first_kept,
        "left": list_handle_ranges(left),
        "kept": list_handle_ranges(boundary.kept),
        "trimmed": [trim.position for trim in boundary.trims],
        "pre_tokens": boundary.pre_tokens,
        "post_tokens": boundary.post_tokens,
        "unchanged": one.unchanged,
        "repairs": [
            {
                "rule": repair.rule,
                "wanted": repair.wanted,
                "got": repair.got,
                "stays": list_handle_ranges(repair.stays),
                "leaves": list_handle_ranges(repair.leaves),
                "trimmed": list_handle_ranges(repair.trimmed),
            }
            for repair in one.repairs
        ],
        "orphaned": list(one.orphaned_calls),
        "summary": summary and summary.text,
        "summariser": summary and summary.summariser,
        "rejected": list(one.refused_drafts),
    }
