"""Says what a replay came to, for people and for programs."""

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ....domain.ranges import Ranges
from ....projections.replay.served import Compacted
from ...analysis.replaying.deciders import AS_RECORDED, NOBODY
from ...analysis.replaying.result import Replay, Sent
from .explained import repair_in_words
from .printing import clipped, counted, runs, say, shortly

WIDE = 10
"""Columns of what stands in front of a line."""
WHY = 110
"""Characters of a reason; the JSON has each whole."""

_NUMBER = re.compile(r"#?[0-9][0-9,.]*%?")


def say_replay(replay: Replay) -> None:
    """A line or more for each call where something happened, and what it came to in all."""
    for line in _happened(replay):
        say(line)
    say(f"{replay.session}: {_calls(replay)}, {_decided(replay)}", bold=True)
    limit = f"{counted(replay.limit, 'token')} ({replay.limit_source.phrase})"
    say(f"{'limit':<{WIDE}}{limit}")
    if not replay.calls:
        return
    say(f"{'prompts':<{WIDE}}{replay.tokens:,} tokens in all, the largest {replay.peak:,}")
    say(f"{'tokens':<{WIDE}}{_measured_by(replay)}")
    whole = f"{replay.unchanged:,} of these stood in the prompt before as well"
    say(f"{'cache':<{WIDE}}{whole}: a provider's cache may hold them")
    compacted = counted(len(replay.compactions), "compaction")
    nothing = f"; {replay.futile:,} more came to nothing" if replay.futile else ""
    say(f"{'compacted':<{WIDE}}{compacted}{nothing}")
    if replay.summarisers:
        by = ", ".join(f"{count:,} by {name}" for name, count in replay.summarisers.items())
        stood_in = f"; {replay.stood_in:,} stood in for another" if replay.stood_in else ""
        say(f"{'summaries':<{WIDE}}{by}{stood_in}")
    if replay.refused:
        say(f"{'refused':<{WIDE}}{counted(replay.refused, 'prompt')} over the limit")
    if replay.lineage:
        say(f"{'stored':<{WIDE}}as the lineage {replay.lineage}; to see it:")
        see = shlex.join(["cutbank", "view", replay.session, "--lineage", replay.lineage])
        say(f"{'':<{WIDE}}{see}")


def as_json(replay: Replay) -> dict[str, Any]:
    """A replay as `replay --json` says it."""
    return {
        "session": replay.session,
        "namespace": replay.namespace,
        "policy": replay.policy,
        "limit": replay.limit,
        "limit_source": replay.limit_source,
        "summariser": replay.summariser,
        "lineage": replay.lineage,
        "calls": len(replay.calls),
        "tokens": replay.tokens,
        "peak": replay.peak,
        "unchanged": replay.unchanged,
        "compactions": len(replay.compactions),
        "futile": replay.futile,
        "refused": replay.refused,
        "summarisers": replay.summarisers,
        "stood_in": replay.stood_in,
        "damaged": replay.damaged,
        "calibration": replay.calibration
        and {
            "reports": replay.calibration.reports,
            "chars_per_token": round(replay.calibration.chars_per_token, 3),
            "overhead": replay.calibration.overhead,
        },
        "sent": [_sent_as_json(sent) for sent in replay.calls],
    }


def _measured_by(replay: Replay) -> str:
    """Whether tokens are reported or estimated."""
    calibration = replay.calibration
    if calibration is None:
        return "estimated, four characters each: no provider reported any"
    by = counted(calibration.reports, "report")
    own = "as reported" if replay.policy == AS_RECORDED else "calibrated"
    return (
        f"{own}, by {by} of the provider: {calibration.chars_per_token:.1f} characters each, and "
        f"{calibration.overhead:,} besides the blocks"
    )


def _calls(replay: Replay) -> str:
    return counted(len(replay.calls), "call") if replay.calls else "no model was called"


def _decided(replay: Replay) -> str:
    match replay.policy:
        case str(name) if name == NOBODY:
            return "never compacted"
        case str(name) if name == AS_RECORDED:
            return "compacted as it was recorded"
        case name:
            return f"compacted by {name}"


def _happened(replay: Replay) -> Iterator[str]:
    """Calls of which the same is to be said, one after the other, share a line."""
    for alike, calls in groupby(replay.calls, key=_alike):
        group = list(calls)
        if not alike:
            continue
        first, last = group[0].call, group[-1].call
        named = f"call {first:,}" if first == last else f"calls {first:,}-{last:,}"
        line, *others = _said(group[0])
        yield f"{named}: {line}"
        yield from (f"{'':<{WIDE}}{line}" for line in others)


def _alike(sent: Sent) -> tuple[str, ...]:
    """What is said of a call, without the numbers that differ from one futile call to the next."""
    said = tuple(_said(sent))
    return said if sent.compactions else tuple(_NUMBER.sub("0", line) for line in said)


def _said(sent: Sent) -> Iterator[str]:
    for compacted, left in zip(sent.compactions, sent.left, strict=True):
        yield from _compacted(sent, compacted, left)
    yield from (f"{one.trigger}: {_why(one.reason)}" for one in sent.futile)
    if sent.is_refused:
        yield "refused: the prompt is larger than the limit"


def _why(reason: str) -> str:
    """A reason without what it tells for the sake of completeness: sizes of blocks, and figures."""
    return clipped(reason.partition("; ")[0].partition(" (")[0], WHY)


def _compacted(sent: Sent, compacted: Compacted, left: Ranges) -> Iterator[str]:
    boundary, summary = compacted.boundary, compacted.summary
    yield (
        f"{boundary.trigger} at #{sent.sees}: {boundary.pre_tokens:,} -> "
        f"{boundary.post_tokens:,} tokens, kept from #{boundary.first_kept} on"
    )
    gone = f"{counted(len(left), 'block')}: {shortly(left)}" if left else "no block"
    shortened = f"; {counted(len(boundary.trims), 'result')} shortened" if boundary.trims else ""
    yield f"left {gone}{shortened}"
    if summary is not None:
        yield f"in its place a summary by {summary.summariser}, {summary.tokens:,} tokens"
    for repair in compacted.repairs:
        yield f"repaired {repair_in_words(repair)}"
    for complaint in compacted.refused:
        yield f"it stood in for another: {complaint}"


def _sent_as_json(sent: Sent) -> dict[str, Any]:
    return {
        "call": sent.call,
        "position": sent.sees,
        "tokens": sent.tokens,
        "unchanged": sent.unchanged,
        "refused": sent.is_refused,
        "compacted": [
            _compacted_as_json(one, left)
            for one, left in zip(sent.compactions, sent.left, strict=True)
        ],
        "futile": [{"trigger": one.trigger.value, "reason": one.reason} for one in sent.futile],
    }


def _compacted_as_json(one: Compacted, left: Ranges) -> dict[str, Any]:
    boundary, summary = one.boundary, one.summary
    return {
        "trigger": boundary.trigger.value,
        "boundary": boundary.originator_version,
        "after": boundary.after,
        "first_kept": boundary.first_kept,
        "left": runs(left),
        "kept": runs(boundary.kept),
        "trimmed": [trim.position for trim in boundary.trims],
        "pre_tokens": boundary.pre_tokens,
        "post_tokens": boundary.post_tokens,
        "unchanged": one.unchanged,
        "repairs": [
            {
                "rule": repair.rule,
                "wanted": repair.wanted,
                "got": repair.got,
                "stays": runs(repair.stays),
                "leaves": runs(repair.leaves),
                "trimmed": runs(repair.trimmed),
            }
            for repair in one.repairs
        ],
        "orphaned": list(one.orphaned),
        "summary": summary and summary.text,
        "summariser": summary and summary.summariser,
        "rejected": list(one.refused),
    }
