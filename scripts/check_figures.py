"""Fails where summaries, or the default policy, are worse on recorded sessions than they may be.

usage: .venv/bin/python scripts/check_figures.py SESSIONS REPORT

REPORT is the folder of a backtest's report on the same sessions at 32,000 tokens, and other limits.
Its first policy is the default; another one, with some of its settings, shows models as much.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from measure_summaries import LIMIT, measure, print_header, print_scores, read_sessions

from cutbank.domain.backtest_cell import (
    BacktestResult,
    Cell,
    SetupTotal,
    compute_control_totals,
    compute_totals,
    restrict_to_shared_sessions,
)
from cutbank.domain.fidelity.rows import Scores
from cutbank.domain.summaries.extractive import ExtractiveSummarizer

BUDGETS = (2_000, 500)


def check_summaries(folder: str, measured: BacktestResult) -> Iterator[str]:
    """Yield what is wrong with summaries of a budget, and of recorded summaries' sizes."""
    sessions = list(read_sessions(folder))
    print_header()
    for budget in BUDGETS:
        total, replaced = measure(sessions, ExtractiveSummarizer(), budget)
        yield from _check_text(f"of {budget:,} tokens", total, replaced)
        controls = [
            one.scores
            for one in compute_control_totals(measured)
            if one.limit == LIMIT and one.budget == budget and one.bound is None
        ]
        if total.f3 is not None and total.f3 <= max(control.f3 or 0 for control in controls):
            yield f"summaries of {budget:,} tokens: F3 is no better than a control's"
    recorded = list(read_sessions(folder, as_recorded=True))
    theirs = sum([one.measure.score(one.views) for one in recorded], Scores())
    print_scores("recorded", None, len(recorded), theirs)
    total, replaced = measure(recorded, ExtractiveSummarizer(), None)
    yield from _check_text("as large as the recorded", total, replaced)
    if (total.f3 or 0) < (theirs.f3 or 0):
        yield "summaries as large as the recorded: F3 is lower than theirs"


def _check_text(which: str, total: Scores, replaced: int) -> Iterator[str]:
    if total.novel:
        yield f"summaries {which}: {total.novel} facts are nowhere in the history"
    if replaced:
        yield f"summaries {which}: {replaced} failed the gate"


def check_policies(measured: BacktestResult) -> Iterator[str]:
    """Yield what is wrong with the first policy beside the others."""
    totals = restrict_to_shared_sessions(compute_totals(measured))
    for limit in sorted({total.setup.limit for total in totals}):
        ours, *rivals = (total for total in totals if total.setup.limit == limit)
        for rival in rivals:
            if refused := sum(map(_count_refused, ours.cells, rival.cells)):
                yield f"at {limit:,}: {refused} prompts were refused that {rival.setup.label} sent"
        larger = [one for one in rivals if _count_tokens(one) >= _count_tokens(ours)]
        if not larger:
            yield f"at {limit:,}: no other policy shows as many tokens, to compare F3 with"
            continue
        rival = min(larger, key=_count_tokens)
        print(f"at {limit:,}: {_write_f3(ours)}; {_write_f3(rival)}")
        if ours.canonical.stakes and (ours.canonical.f3 or 0) <= (rival.canonical.f3 or 0):
            yield f"at {limit:,}: F3 is no better than that of {rival.setup.label}"


def _count_refused(ours: Cell, theirs: Cell) -> int:
    """Return how many prompts of ours were too large for the model, and theirs were not."""
    limit = ours.setup.limit
    return sum(a > limit >= b for a, b in zip(ours.context, theirs.context, strict=True))


def _count_tokens(total: SetupTotal) -> float:
    return total.tokens_per_call or 0.0


def _write_f3(total: SetupTotal) -> str:
    f3, tokens = total.canonical.f3 or 0, _count_tokens(total)
    return f"{total.setup.label} has F3 {f3:.3f} with {tokens:,.0f} tokens a call"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sessions")
    parser.add_argument("report", type=Path)
    asked = parser.parse_args()
    written = (asked.report / "measured.json").read_bytes()
    measured = BacktestResult.model_validate_json(written)
    faults = [*check_summaries(asked.sessions, measured), *check_policies(measured)]
    for fault in faults:
        print(f"wrong: {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
