"""Implements `tune`: searches a policy's settings on recorded sessions, and writes them."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.backtest_comparison import MIN_SESSIONS, SetupDifference
from ....domain.errors import ExportError
from ...analysis.backtest.grid import DEFAULT_GRID_LIMIT
from ...analysis.backtest.tuning import Objective, TuningResult, check_optuna
from ...analysis.backtest.tuning import tune as tune_policy
from ...storage.private_files import open_new
from ..command_line.options import suggest_policies
from ..command_line.printing import format_count, pick, print_rows, print_text, show_progress
from ..command_line.verbs import Answer, Invocation, argument, flag, option
from .backtest import open_measured_sessions

_MAX_TRIALS = 5
"""Trials that are listed, the best ones."""


def tune(
    call: Invocation,
    target: str = argument("SESSION|PATH|all", "Transcripts or a folder of them, or all sessions."),
    *,
    policy: str = option(
        "--policy NAME[@PRESET]", "Whose settings.", ..., autocompletion=suggest_policies
    ),
    objective: str = option(
        "--objective NAME", f"What is best: {', '.join(Objective)}.", Objective.COST.value
    ),
    limit: int = option("--limit TOKENS", "What a prompt may have.", DEFAULT_GRID_LIMIT, min=1),
    trials: int = option("--trials N", "Settings to try.", 30, min=1, max=10_000),
    out: Path | None = option("--out FILE", "A new settings file for what is found."),
    jobs: int | None = option("--jobs -j N", "Processes; else one for each core.", min=1, max=256),
    quiet: bool = flag("--quiet -q", "No progress."),
) -> Answer:
    """They are searched on one half of the sessions, and judged on the other half.

    A file is written only if they beat the defaults there.
    """
    check_optuna()  # before sessions are read
    if out is not None and out.exists():
        raise ExportError(f"{out} is there already: name a new file")
    with (
        open_measured_sessions(call, target, quiet=quiet) as (store, sessions, _),
        show_progress("searching", wanted=not quiet) as progress,
    ):
        found = tune_policy(
            store,
            policy,
            objective=objective,
            sessions=sessions,
            limit=limit,
            trials=trials,
            jobs=jobs,
            progress=progress,
        )
    written = str(out) if out is not None and found.is_better else None
    if written is not None and out is not None:
        with open_new(out) as file:
            file.write("\n".join([*write_settings(found), ""]).encode())
    return Answer(
        _result_to_json(found) | {"written": written},
        partial(print_result, found, written),
        is_good=found.is_better,
    )


def write_settings(found: TuningResult) -> Iterator[str]:
    """Yield the lines of a settings file that has what was found."""
    yield "[compaction]"
    yield f"policy = {json.dumps(found.policy)}"
    yield ""
    yield "[compaction.settings]"
    for name, value in found.settings.items():
        yield f"{name} = {json.dumps('none' if value is None else value)}"


def _result_to_json(found: TuningResult) -> dict[str, Any]:
    return {
        **pick(found, "policy objective limit searched judged cost_unit"),
        "better": found.is_better,
        "settings": dict(found.settings),
        "differences": [
            pick(one, "metric sessions overall interval verdict") for one in found.differences
        ],
        "trials": [pick(one, "settings cost f3 refused") for one in found.trials],
    }


def print_result(found: TuningResult, written: str | None) -> None:
    searched, judged = (format_count(len(of), "session") for of in (found.searched, found.judged))
    tried = format_count(len(found.trials), "trial")
    print_text(f"{found.policy} at {found.limit:,}: {tried} on {searched}, judged on {judged}")
    by_cost = found.objective is Objective.COST
    shown = sorted(
        found.trials[1:],
        key=lambda one: (one.settings != found.settings, one.cost if by_cost else -one.f3),
    )
    rows: list[Mapping[str, object]] = [
        {
            "settings": " ".join(f"{key}={value}" for key, value in one.settings.items())
            or "the defaults",
            found.cost_unit: f"{one.cost:,.2f}" if found.cost_unit == "usd" else f"{one.cost:,.0f}",
            "F3": f"{one.f3:.3f}",
            "refused": one.refused,
        }
        for one in (found.trials[0], *shown)
    ]
    print_rows(rows, "searched on the first half", _MAX_TRIALS, ": --json has all")
    print_rows(
        [
            {
                "measure": str(one.metric),
                "difference": _format_change(one, one.overall),
                "95 percent": " to ".join(_format_change(one, end) for end in one.interval or ()),
                "verdict": str(one.verdict),
            }
            for one in found.differences
        ],
        "judged on the other half, against the defaults",
    )
    print_text()
    if not found.is_better:
        print_text(f"Nothing that was tried beats the defaults{_explain(found)}.")
    elif written is not None:
        print_text(f"written: {written}")
    else:
        for line in write_settings(found):
            print_text(line, verbatim=True)


def _explain(found: TuningResult) -> str:
    if not found.differences:
        return ""
    sessions = found.differences[0].sessions
    few = sessions < MIN_SESSIONS
    more = f": {sessions} sessions tell nothing, {MIN_SESSIONS} or more may" if few else ""
    return f" on the other half{more}"


def _format_change(one: SetupDifference, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.1%}" if one.metric.is_amount else f"{value:+.3f}"
