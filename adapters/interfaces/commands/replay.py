"""Implements `replay`: replays a recorded session under another policy."""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.ranges import Ranges
from ....projections.replay import ReplayCompaction, ReplayedCall
from ...analysis import run_replay
from ...analysis.deciders import REPLAY_SUMMARIZERS
from ...analysis.run_replay import Replay
from ..command_line.options import POLICY_SETTINGS, SESSION, parse_settings, suggest_policies
from ..command_line.printing import (
    format_count,
    format_handles,
    list_fields,
    pick,
    print_fields,
    print_note,
    print_rows,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_session
from ..command_line.verbs import Answer, Invocation, flag, option
from .compact import describe_repair, repair_to_json

_TOTALS = (
    *("limit", "limit_source", "tokens", "peak", "unchanged", "compactions", "futile", "refused"),
    *("summarizers", "stood_in", "calibration"),
)
"""What the text says of all calls, by its name in JSON."""


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
) -> Answer:
    """As in `cutbank replay fix-login --policy pi --limit 32000`: the policy is asked before each
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
    return Answer(_replay_to_json(done), partial(print_replay, done))


def _replay_to_json(replay: Replay) -> dict[str, Any]:
    calibration = replay.calibration and {
        **pick(replay.calibration, "reports"),
        "chars_per_token": round(replay.calibration.chars_per_token, 3),
        **pick(replay.calibration, "overhead"),
    }
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
        **pick(summary, "summary=text summariser=summarizer"),
        "rejected": list(one.refused_drafts),
    }


def print_replay(replay: Replay) -> None:
    calls = format_count(len(replay.calls), "call") if replay.calls else "no model was called"
    print_text(f"{replay.session}: {calls}, under the policy {replay.policy}", bold=True)
    totals = _replay_to_json(replay) | {"limit_source": replay.limit_source.phrase}
    totals["summarizers"] = replay.summarizer_counts
    print_fields(list_fields({name: totals[name] for name in _TOTALS}))
    rows = [_compaction_row(sent, one) for sent in replay.calls for one in sent.compactions]
    print_rows(rows, "compactions")
    if refused := Ranges.of(one.call.number for one in replay.calls if one.is_refused):
        print_text(f"\ncalls over the limit: {str(refused).replace('#', '')}")
    if replay.lineage:
        print_text(f"\nIt is stored as the lineage {replay.lineage}; to see it:")
        print_text(shlex.join(["cutbank", "view", replay.session, "--lineage", replay.lineage]))


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
