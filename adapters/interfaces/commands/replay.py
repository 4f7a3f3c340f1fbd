"""Implements `replay`: replays a recorded session under another policy."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....domain.ranges import Ranges
from ....projections.replay.replay import ReplayCompaction, ReplayedCall
from ...analysis.replaying import run_replay
from ...analysis.replaying.deciders import NO_POLICY, RECORDED_POLICY, REPLAY_SUMMARIZERS
from ...analysis.replaying.run_replay import Replay
from ..command_line.completion import suggest_policies
from ..command_line.options import POLICY_SETTINGS, SESSION, parse_settings
from ..command_line.outcomes import describe_repair, repair_to_json
from ..command_line.printing import (
    format_count,
    format_handles,
    pick,
    print_fields,
    print_json,
    print_note,
    print_rows,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_session
from ..command_line.verbs import Invocation, flag, option

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
    calls = format_count(len(replay.calls), "call") if replay.calls else "no model was called"
    decisions = _DECISIONS.get(replay.policy, f"compacted by {replay.policy}")
    print_text(f"{replay.session}: {calls}, {decisions}", bold=True)
    print_fields(_total_fields(replay))
    rows = [_compaction_row(sent, one) for sent in replay.calls for one in sent.compactions]
    print_rows(rows, "compactions")
    print_rows(_list_futile_calls(replay), "calls where nothing could leave")
    if replay.lineage:
        print_text(f"\nIt is stored as the lineage {replay.lineage}; to see it:")
        print_text(shlex.join(["cutbank", "view", replay.session, "--lineage", replay.lineage]))


def _total_fields(replay: Replay) -> Iterator[tuple[str, str]]:
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


def _compaction_row(sent: ReplayedCall, one: ReplayCompaction) -> dict[str, object]:
    boundary, summary = one.boundary, one.summary
    repairs = [describe_repair(repair) for repair in one.repairs]
    return {
        "call": sent.call.number,
        "trigger": boundary.trigger,
        "at": f"#{sent.call.last_seen_position}",
        "before": boundary.pre_tokens,
        "after": boundary.post_tokens,
        "kept from": f"#{boundary.first_kept}",
        "left": format_handles(one.left),
        "trims": len(boundary.trims) or None,
        "summary": summary and f"{summary.tokens:,} by {summary.summarizer}",
        "remarks": "; ".join([*repairs, *one.refused_drafts]),
    }


def _list_futile_calls(replay: Replay) -> list[dict[str, object]]:
    """Return a row for all calls with the same reason, but for the numbers in it."""
    calls: dict[str, list[int]] = {}
    rows: dict[str, dict[str, object]] = {}
    for sent in replay.calls:
        # Leave out details such as block sizes.
        why = "; ".join(
            f"{one.trigger}: {one.reason.partition('; ')[0].partition(' (')[0]}"
            for one in sent.futile
        )
        if why or sent.is_refused:
            alike = f"{_NUMBER.sub('0', why)} {sent.is_refused}"
            calls.setdefault(alike, []).append(sent.call.number)
            rows.setdefault(alike, {"refused": sent.is_refused, "why": why})
    return [
        {"calls": str(Ranges.of(calls[alike])).replace("#", ""), **row}
        for alike, row in rows.items()
    ]
