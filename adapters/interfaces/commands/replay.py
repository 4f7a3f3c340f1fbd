"""Implements `replay`: replays a recorded session under another policy."""

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from ....projections.replay.replay import ReplayCompaction, ReplayedCall
from ...analysis.replaying import run_replay
from ...analysis.replaying.deciders import NO_POLICY, RECORDED_POLICY, REPLAY_SUMMARIZERS
from ...analysis.replaying.run_replay import Replay
from ..command_line.completion import suggest_policies
from ..command_line.options import POLICY_SETTINGS, SESSION, parse_settings
from ..command_line.outcomes import describe_repair, repair_to_json
from ..command_line.printing import (
    clip_text,
    format_count,
    format_handles,
    pick,
    print_json,
    print_note,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_session
from ..command_line.verbs import Invocation, flag, option

_LABEL_CELLS = 10
_REASON_CHARACTERS = 110
"""Characters shown of a reason; the JSON has all of it."""

_DECISIONS = {
    NO_POLICY: "never compacted",
    RECORDED_POLICY: "compacted as it was recorded",
}
_NUMBER = re.compile(r"#?[0-9][0-9,.]*%?")


def replay(
    call: Invocation,
    session: str = SESSION,
    *,
    policy: str = option(
        "--policy NAME[@PRESET]",
        "See `cutbank policies`; none never compacts, recorded does as was done.",
        ...,
        autocompletion=suggest_policies,
    ),
    settings: list[str] | None = POLICY_SETTINGS,
    limit: int | None = option(
        "--limit TOKENS",
        "What a prompt may have; else as the settings, the log or the model say.",
        min=1,
    ),
    summarizer: str = option(
        "--summarizer NAME", f"Who writes summaries: {', '.join(REPLAY_SUMMARIZERS)}.", "extractive"
    ),
    budget: int | None = option("--budget TOKENS", "What each summary may take.", min=1),
    model: str | None = option("--model NAME", "The agent's model, for prices."),
    lineage: str | None = option("--lineage NAME", "Store the decisions as a new lineage."),
    dump_views: Path | None = option("--dump-views FILE", "Write each view to a new file."),
    cache: Path | None = option("--cache FILE", "Where a model's summaries are kept."),
    allow_llm: bool = flag("--allow-llm", "Ask a model for summaries that are not kept."),
) -> None:
    """Show what would have been sent, had another policy decided.

    As in `cutbank replay fix-login --policy pi --limit 32000`: the policy is asked before each
    recorded call, and each compaction is shown with what left, and the prompts it led to. Nothing
    is compacted, and nothing stored that was not asked for.
    """
    with (
        open_call_session(call, session) as found,
        show_progress("calls", wanted=not call.as_json) as progress,
    ):
        done = run_replay.replay(
            found,
            policy,
            settings=parse_settings(settings or []),
            limit=limit,
            summarizer=summarizer,
            budget=budget,
            model=model,
            lineage=lineage,
            dump_views=dump_views,
            cache=cache,
            allow_llm=allow_llm,
            progress=progress,
        )
    if done.damaged:
        were = "summary was" if done.damaged == 1 else "summaries were"
        print_note(f"{done.damaged} {were} damaged in the cache, and not used")
    if call.as_json:
        print_json(_replay_to_json(done))
    else:
        print_replay(done)


def _replay_to_json(replay: Replay) -> dict[str, Any]:
    calibration = replay.calibration and pick(
        replay.calibration, "reports chars_per_token overhead"
    )
    if calibration:
        calibration["chars_per_token"] = round(calibration["chars_per_token"], 3)
    return {
        **pick(replay, "session namespace policy limit limit_source"),
        **pick(replay, "summariser=summarizer lineage"),
        "calls": len(replay.calls),
        **pick(replay, "tokens peak=peak_tokens unchanged=unchanged_tokens"),
        "compactions": len(replay.compactions),
        **pick(replay, "futile=futile_count refused=refused_count"),
        **pick(replay, "summarisers=summarizer_counts stood_in=fallback_count damaged"),
        "calibration": calibration,
        "sent": [_call_to_json(sent) for sent in replay.calls],
    }


def _call_to_json(sent: ReplayedCall) -> dict[str, Any]:
    return {
        **pick(sent.call, "call=number position=last_seen_position"),
        **pick(sent, "tokens unchanged refused=is_refused"),
        "compacted": [_compaction_to_json(one) for one in sent.compactions],
        "futile": [pick(one, "trigger reason") for one in sent.futile],
    }


def _compaction_to_json(one: ReplayCompaction) -> dict[str, Any]:
    boundary, summary = one.boundary, one.summary
    return {
        **pick(boundary, "trigger boundary=originator_version after first_kept"),
        "left": one.left,
        "kept": boundary.kept,
        "trimmed": [trim.position for trim in boundary.trims],
        **pick(boundary, "pre_tokens post_tokens"),
        "unchanged": one.unchanged,
        "repairs": [repair_to_json(repair) for repair in one.repairs],
        "orphaned": list(one.orphaned_calls),
        "summary": summary and summary.text,
        "summariser": summary and summary.summarizer,
        "rejected": list(one.refused_drafts),
    }


def print_replay(replay: Replay) -> None:
    for line in _call_lines(replay):
        print_text(line)
    calls = format_count(len(replay.calls), "call") if replay.calls else "no model was called"
    decisions = _DECISIONS.get(replay.policy, f"compacted by {replay.policy}")
    print_text(f"{replay.session}: {calls}, {decisions}", bold=True)
    for label, line in _total_lines(replay):
        print_text(f"{label:<{_LABEL_CELLS}}{line}")


def _total_lines(replay: Replay) -> Iterator[tuple[str, str]]:
    yield "limit", f"{format_count(replay.limit, 'token')} ({replay.limit_source.phrase})"
    if not replay.calls:
        return
    yield "prompts", f"{replay.tokens:,} tokens in all, the largest {replay.peak_tokens:,}"
    yield "tokens", _describe_measure(replay)
    same = f"{replay.unchanged_tokens:,} of these stood in the prompt before as well"
    yield "cache", f"{same}: a provider's cache may hold them"
    futile = f"; {replay.futile_count:,} more gained nothing" if replay.futile_count else ""
    yield "compacted", f"{format_count(len(replay.compactions), 'compaction')}{futile}"
    if replay.summarizer_counts:
        by = ", ".join(f"{count:,} by {name}" for name, count in replay.summarizer_counts.items())
        fallbacks = replay.fallback_count
        yield "summaries", by + (f"; {fallbacks:,} stood in for another" if fallbacks else "")
    if replay.refused_count:
        yield "refused", f"{format_count(replay.refused_count, 'prompt')} over the limit"
    if replay.lineage:
        yield "stored", f"as the lineage {replay.lineage}; to see it:"
        yield "", shlex.join(["cutbank", "view", replay.session, "--lineage", replay.lineage])


def _describe_measure(replay: Replay) -> str:
    calibration = replay.calibration
    if calibration is None:
        return "estimated, four characters each: no provider reported any"
    by = format_count(calibration.reports, "report")
    own = "as reported" if replay.policy == RECORDED_POLICY else "calibrated"
    return (
        f"{own}, by {by} of the provider: {calibration.chars_per_token:.1f} characters each, and "
        f"{calibration.overhead:,} in addition to the blocks"
    )


def _call_lines(replay: Replay) -> Iterator[str]:
    """Yield lines; consecutive calls with the same text share one."""
    for alike, calls in groupby(replay.calls, key=_comparison_key):
        group = list(calls)
        if not alike:
            continue
        first, last = group[0].call.number, group[-1].call.number
        named = f"call {first:,}" if first == last else f"calls {first:,}-{last:,}"
        line, *others = _describe_call(group[0])
        yield f"{named}: {line}"
        yield from (f"{'':<{_LABEL_CELLS}}{line}" for line in others)


def _comparison_key(sent: ReplayedCall) -> tuple[str, ...]:
    """Return the text about a call, without numbers that differ between futile calls."""
    said = tuple(_describe_call(sent))
    return said if sent.compactions else tuple(_NUMBER.sub("0", line) for line in said)


def _describe_call(sent: ReplayedCall) -> Iterator[str]:
    for compacted in sent.compactions:
        yield from _describe_compaction(sent, compacted)
    for one in sent.futile:
        # Leave out details such as block sizes.
        reason = one.reason.partition("; ")[0].partition(" (")[0]
        yield f"{one.trigger}: {clip_text(reason, _REASON_CHARACTERS)}"
    if sent.is_refused:
        yield "refused: the prompt is larger than the limit"


def _describe_compaction(sent: ReplayedCall, compacted: ReplayCompaction) -> Iterator[str]:
    boundary, summary, left = compacted.boundary, compacted.summary, compacted.left
    yield (
        f"{boundary.trigger} at #{sent.call.last_seen_position}: {boundary.pre_tokens:,} -> "
        f"{boundary.post_tokens:,} tokens, kept from #{boundary.first_kept} on"
    )
    gone = f"{format_count(len(left), 'block')}: {format_handles(left)}" if left else "no block"
    trims = len(boundary.trims)
    yield f"left {gone}" + (f"; {format_count(trims, 'result')} shortened" if trims else "")
    if summary is not None:
        yield f"in its place a summary by {summary.summarizer}, {summary.tokens:,} tokens"
    for repair in compacted.repairs:
        yield f"repaired {describe_repair(repair)}"
    for complaint in compacted.refused_drafts:
        yield f"it stood in for another: {complaint}"
