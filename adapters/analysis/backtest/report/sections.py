"""Renders the parts of a report as HTML: setups, results and caveats."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from .....domain.backtest.cell import Cell, CellOutcome
from .....domain.backtest.comparison import SetupDifference
from .....domain.backtest.result import BacktestResult
from .....domain.backtest.totals import ControlTotal, SetupTotal
from .....domain.fidelity.scores import Scores, divide
from .....domain.pricing import format_dollars
from ..backtest_text import (
    NOT_KNOWN,
    describe_calibration,
    format_cell_session,
    format_difference,
    format_mean_difference,
    format_part,
    has_texts,
    make_recall_command,
)
from .figures import ByLimit, count_lost_kinds, label_figure
from .html_parts import (
    Inline,
    escape_html,
    make_code,
    make_data_cell,
    make_paragraph,
    make_table,
    wrap_table,
)
from .lost_facts import find_most_missed

NUMBER_CLASS = ' class="n"'
_MAX_FACTS = 15
MAX_TABLE_ROWS = 200
"""Failures and skipped sessions shown; the Parquet tables have all."""


def render_run(measured: BacktestResult, command: str) -> str:
    """Render sessions by format, setups, and the command."""
    sources = Counter(
        {(cell.namespace, cell.session): cell.source for cell in measured.cells}.values()
    )
    # A failed cell may not know how long its session is.
    by_length = sorted(measured.cells, key=lambda cell: cell.calls)
    once = {(cell.namespace, cell.session): cell for cell in by_length}.values()
    rows: list[Sequence[Inline]] = [
        ("sessions", len(once)),
        ("calls of a model", sum(cell.calls for cell in once)),
        ("blocks", sum(cell.blocks for cell in once)),
        ("setups", len(measured.setups)),
        ("cells", len(measured.cells)),
        ("sessions left out", len(measured.skipped)),
    ]
    said = describe_calibration(measured)
    formats = ", ".join(
        f"{source or 'written by agents themselves'} {number:,}"
        for source, number in sorted(sources.items(), key=lambda one: (-one[1], one[0] or ""))
    )
    return "\n".join(
        (
            make_table("In all", ("", "number"), rows),
            make_paragraph(f"Formats: {formats}.") if formats else "",
            make_paragraph(f"{said[0].upper()}{said[1:]}."),
            f"<p>To run it again:</p>\n<pre>{escape_html(command)}</pre>",
        )
    )


def render_headline(totals: Sequence[SetupTotal]) -> str:
    """Render one limit's setups: cost, and fidelity on the boundaries that all share."""
    limit = f"limit {totals[0].setup.limit:,} tokens"
    costs = (
        "policy", "sessions", "compactions", "tokens a call", "prompt tokens", "cost",
        "prompts without cache", "cost of summaries", "tokens written again", "prompts refused",
    )  # fmt: skip
    kept = (
        "policy", *map(label_figure, ("R", "C", "P", "F3", "hard R")), "modified files named",
        "read files named", "constraints kept", "re-reads named", "facts invented",
        "facts that were needed",
    )  # fmt: skip
    parts = [make_table(f"What it costs, {limit}", costs, map(_cost_columns, totals))]
    if scored := [one for one in totals if has_texts(one.setup)]:
        parts.append(make_table(f"What it keeps, {limit}", kept, map(_fidelity_columns, scored)))
    return "\n".join(parts)


def render_own_boundaries(totals: Sequence[SetupTotal]) -> str:
    """Render the scores at each setup's own boundaries, with the maximum possible there."""
    return make_table(
        f"On their own boundaries, limit {totals[0].setup.limit:,}",
        (
            "policy",
            "boundaries",
            "facts at stake",
            label_figure("R"),
            "most that could be kept",
            *map(label_figure, ("C", "P", "F3")),
        ),
        (
            (
                one.setup.label,
                one.own.boundaries,
                one.own.stakes,
                format_part(one.own.recall),
                format_part(one.own_bound),
                format_part(one.own.context),
                format_part(one.own.prose),
                format_part(one.own.f3),
            )
            for one in totals
        ),
    )


def render_controls(found: Iterable[ControlTotal]) -> str:
    return make_table(
        "Controls: what texts score that no policy would write, and the most that any could",
        ("control", "limit", "budget", *map(label_figure, ("R", "C", "P", "F3", "hard R"))),
        (
            (
                one.name,
                one.limit,
                one.budget,
                format_part(one.recall),
                *_format_scores(one.scores),
                format_part(divide(one.scores.hard_hits, one.scores.hard_stakes)),
            )
            for one in found
        ),
    )


def render_differences(found: Sequence[SetupDifference]) -> str:
    """Render the differences from the first setup, by limit."""
    tables = []
    for limit in dict.fromkeys(one.setup.limit for one in found):
        here = [one for one in found if one.setup.limit == limit]
        tables.append(
            make_table(
                f"Against {here[0].against.label}, limit {limit:,}",
                ("policy", "figure", "all sessions together [95 %]", "verdict",
                 "sessions it bears on", "mean over sessions [95 %]", "sessions in the mean"),
                (
                    (
                        one.setup.label,
                        label_figure(one.metric.value),
                        format_difference(one),
                        one.verdict.value,
                        one.sessions,
                        format_mean_difference(one),
                        one.session_mean_count,
                    )
                    for one in here
                ),
            )
        )  # fmt: skip
    return "\n".join(tables)


def render_lost_kinds(totals: ByLimit) -> str:
    """Render the numbers of the drawing."""
    found = [one for each in totals.values() for one in each if one.cells]
    kinds = sorted({kind for one in found for kind in count_lost_kinds(one)})
    return make_table(
        "Facts lost, by kind",
        ("policy", "limit", "at stake", "lost", *kinds),
        (
            (
                one.setup.label,
                one.setup.limit,
                one.canonical.stakes,
                sum(lost.values()),
                *(lost[kind] for kind in kinds),
            )
            for one in found
            if (lost := count_lost_kinds(one)) is not None
        ),
    )


def render_lost_facts(totals: ByLimit) -> str:
    """Render the most missed facts of each setup, and the commands that show them."""
    parts = []
    for each in totals.values():
        for total in each:
            facts = find_most_missed(total, _MAX_FACTS)
            if not facts:
                continue
            setup = total.setup
            rows = "\n".join(
                f'<tr><th scope="row">{make_code(fact.first.key)}</th>'
                + make_data_cell("kind", escape_html(fact.first.kind))
                + make_data_cell("missed", f"{fact.times:,}", NUMBER_CLASS)
                + make_data_cell("session", escape_html(format_cell_session(fact.cell)))
                + make_data_cell("handle", f"#{fact.first.position}", NUMBER_CLASS)
                + make_data_cell("used by call", f"{fact.first.call:,}", NUMBER_CLASS)
                + make_data_cell(
                    "to see it", make_code(make_recall_command(fact.cell, fact.first.position))
                )
                + "</tr>"
                for fact in facts
            )
            name = f"{setup.label}, limit {setup.limit:,}"
            headings = ("fact", "kind", "missed", "session", "handle", "used by call", "to see it")
            head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
            shown = wrap_table(f"Lost under {name}", head, rows)
            parts.append(f"<details><summary>{escape_html(name)}</summary>\n{shown}</details>")
    return "\n".join(parts)


def render_trouble(totals: ByLimit) -> str:
    """Render plans that would have broken a history, and prompts too large for any model."""
    return make_table(
        "What would have gone wrong",
        ("policy", "limit", "calls", "compactions", "prompts refused", "came to nothing",
         "plans that part calls from results", "calls and results parted", "repairs",
         "summaries by a stand-in", "largest prompt"),
        (
            (
                one.setup.label,
                one.setup.limit,
                one.sum_field("calls"),
                one.sum_field("compactions"),
                one.sum_field("refused"),
                one.sum_field("futile"),
                *_repair_columns(one),
                max((cell.peak_tokens for cell in one.cells), default=0),
            )
            for each in totals.values()
            for one in each
        ),
    )  # fmt: skip


def render_failures(measured: BacktestResult) -> str:
    """Render cells without a result, and skipped sessions, each with its reason."""
    failed = [cell for cell in measured.cells if cell.outcome is not CellOutcome.DONE]
    remarked = [cell for cell in measured.cells if cell.outcome is CellOutcome.DONE and cell.why]
    parts = [
        _render_cells("Failed", failed) if failed else make_paragraph("No cell failed."),
        _render_remarks(remarked) if remarked else "",
        _render_skipped(measured.skipped) if measured.skipped else "",
    ]
    return "\n".join(filter(None, parts))


def _cost_columns(total: SetupTotal) -> Sequence[Inline]:
    return (
        total.setup.label,
        f"{len(total.cells)}/{total.sessions}",
        total.sum_field("compactions"),
        None if total.tokens_per_call is None else round(total.tokens_per_call),
        total.bill.prompt_tokens,
        _format_cost(total),
        _format_dollars(_sum_known(total.priced_cells, "uncached_usd")),
        _format_dollars(_sum_known(total.priced_cells, "summaries_usd")),
        total.bill.rewritten_tokens,
        total.sum_field("refused"),
    )


def _fidelity_columns(total: SetupTotal) -> Sequence[Inline]:
    scores = total.canonical
    return (
        total.setup.label,
        format_part(scores.recall),
        *_format_scores(scores),
        format_part(divide(scores.hard_hits, scores.hard_stakes)),
        format_part(divide(scores.modified_named, scores.modified)),
        format_part(divide(scores.read_named, scores.read)),
        format_part(divide(scores.constraints_kept, scores.constraints)),
        format_part(divide(scores.rereads_named, scores.rereads)),
        scores.novel,
        format_part(scores.precision),
    )


def _format_scores(scores: Scores) -> tuple[str, str, str]:
    return format_part(scores.context), format_part(scores.prose), format_part(scores.f3)


def _format_cost(total: SetupTotal) -> str:
    few = len(total.priced_cells) < len(total.cells)
    return _format_dollars(total.usd) + (
        f" of {len(total.priced_cells):,}" if few and total.priced_cells else ""
    )


def _sum_known(cells: Sequence[Cell], name: str) -> float | None:
    return sum(getattr(cell.bill, name) or 0.0 for cell in cells) if cells else None


def _format_dollars(amount: float | None) -> str:
    return NOT_KNOWN if amount is None else format_dollars(amount)


def _repair_columns(total: SetupTotal) -> Sequence[Inline]:
    """Return the repairs of plans and of summaries."""
    if not has_texts(total.setup):
        return (NOT_KNOWN,) * 4
    broken, orphaned = total.sum_field("broken"), total.sum_field("orphaned")
    return broken, orphaned, _format_repairs(total), total.sum_field("stood_in")


def _format_repairs(total: SetupTotal) -> str:
    found: Counter[str] = Counter()
    for cell in total.cells:
        found.update(cell.repairs)
    return ", ".join(f"{rule} {number:,}" for rule, number in sorted(found.items())) or NOT_KNOWN


def _render_cells(caption: str, cells: Sequence[Cell]) -> str:
    rows = (
        (
            format_cell_session(cell),
            cell.setup.label,
            cell.setup.limit,
            cell.outcome.value,
            cell.why,
        )
        for cell in cells[:MAX_TABLE_ROWS]
    )
    shown = make_table(caption, ("session", "policy", "limit", "outcome", "why"), rows)
    return shown + _format_more(len(cells))


def _render_remarks(cells: Sequence[Cell]) -> str:
    """Render by setup how many sessions have a remark, and the first one."""
    by_setup: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        by_setup.setdefault((cell.setup.label, cell.setup.limit), []).append(cell)
    rows = (
        (label, limit, len(found), format_cell_session(found[0]), found[0].why)
        for (label, limit), found in by_setup.items()
    )
    return make_table("Remarks", ("policy", "limit", "sessions", "as", "remark"), rows)


def _render_skipped(skipped: Mapping[str, str]) -> str:
    rows = islice(skipped.items(), MAX_TABLE_ROWS)
    return make_table("Sessions left out", ("session", "why"), rows) + _format_more(len(skipped))


def _format_more(number: int) -> str:
    if number <= MAX_TABLE_ROWS:
        return ""
    return make_paragraph(
        f"And {number - MAX_TABLE_ROWS:,} more, which the tables beside this page have."
    )
