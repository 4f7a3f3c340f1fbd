"""The parts of a report, each as HTML: what was run, what it came to, and what it does not say."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from .....domain.backtest.cell import Cell, Outcome
from .....domain.backtest.comparison import Difference
from .....domain.backtest.result import Measured
from .....domain.backtest.totals import ControlTotal, Total
from .....domain.fidelity.scores import Scores, ratio
from .....domain.pricing_in_words import dollars
from ..in_words import (
    NOT_KNOWN,
    apart,
    calibrated_in_words,
    has_texts,
    mean_apart,
    named,
    part,
    recall_of,
)
from .figures import ByLimit, in_words, lost_kinds
from .lost_facts import most_missed
from .markup import Inline, code, data_cell, paragraph, table, table_of, text

NUMBER = ' class="n"'
FACTS = 15
"""Lost facts that are shown of a setup."""
ROWS = 200
"""Of failures and of what was left out; the tables in Parquet have all."""


def what_was_run(measured: Measured, command: str) -> str:
    """Sessions by format, setups, and the command."""
    sources = Counter(
        {(cell.namespace, cell.session): cell.source for cell in measured.cells}.values()
    )
    # What failed may not know how long its session is.
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
    said = calibrated_in_words(measured)
    formats = ", ".join(
        f"{source or 'written by agents themselves'} {number:,}"
        for source, number in sorted(sources.items(), key=lambda one: (-one[1], one[0] or ""))
    )
    return "\n".join(
        (
            table("In all", ("", "number"), rows),
            paragraph(f"Formats: {formats}.") if formats else "",
            paragraph(f"{said[0].upper()}{said[1:]}."),
            f"<p>To run it again:</p>\n<pre>{text(command)}</pre>",
        )
    )


def headline(totals: Sequence[Total]) -> str:
    """One limit's setups: cost, and fidelity on the boundaries that all share."""
    limit = f"limit {totals[0].setup.limit:,} tokens"
    costs = (
        "policy", "sessions", "compactions", "tokens a call", "prompt tokens", "cost",
        "prompts without cache", "cost of summaries", "tokens written again", "prompts refused",
    )  # fmt: skip
    kept = (
        "policy", *map(in_words, ("R", "C", "P", "F3", "hard R")), "modified files named",
        "read files named", "constraints kept", "re-reads named", "facts invented",
        "facts that were needed",
    )  # fmt: skip
    parts = [table(f"What it costs, {limit}", costs, map(_costs, totals))]
    if scored := [one for one in totals if has_texts(one.setup)]:
        parts.append(table(f"What it keeps, {limit}", kept, map(_kept, scored)))
    return "\n".join(parts)


def own_boundaries(totals: Sequence[Total]) -> str:
    """The same scores where each setup itself cut, beside the most that could be had there."""
    return table(
        f"On their own boundaries, limit {totals[0].setup.limit:,}",
        (
            "policy",
            "boundaries",
            "facts at stake",
            in_words("R"),
            "most that could be kept",
            *map(in_words, ("C", "P", "F3")),
        ),
        (
            (
                one.setup.label,
                one.own.boundaries,
                one.own.stakes,
                part(one.own.recall),
                part(one.own_bound),
                part(one.own.context),
                part(one.own.prose),
                part(one.own.f3),
            )
            for one in totals
        ),
    )


def controls(found: Iterable[ControlTotal]) -> str:
    return table(
        "Controls: what texts score that no policy would write, and the most that any could",
        ("control", "limit", "budget", *map(in_words, ("R", "C", "P", "F3", "hard R"))),
        (
            (
                one.name,
                one.limit,
                one.budget,
                part(one.recall),
                *_three(one.scores),
                part(ratio(one.scores.hard_hits, one.scores.hard_stakes)),
            )
            for one in found
        ),
    )


def differences(found: Sequence[Difference]) -> str:
    """By limit, against its first setup."""
    tables = []
    for limit in dict.fromkeys(one.setup.limit for one in found):
        here = [one for one in found if one.setup.limit == limit]
        tables.append(
            table(
                f"Against {here[0].against.label}, limit {limit:,}",
                ("policy", "figure", "all sessions together [95 %]", "verdict",
                 "sessions it bears on", "mean over sessions [95 %]", "sessions in the mean"),
                (
                    (
                        one.setup.label,
                        in_words(one.measure.value),
                        apart(one),
                        one.verdict.value,
                        one.sessions,
                        mean_apart(one),
                        one.macro_sessions,
                    )
                    for one in here
                ),
            )
        )  # fmt: skip
    return "\n".join(tables)


def kinds_lost(totals: ByLimit) -> str:
    """The numbers of the drawing, for who reads them."""
    found = [one for each in totals.values() for one in each if one.cells]
    kinds = sorted({kind for one in found for kind in lost_kinds(one)})
    return table(
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
            if (lost := lost_kinds(one)) is not None
        ),
    )


def facts_lost(totals: ByLimit) -> str:
    """Of each setup the facts that were missed most often, and how to see them."""
    parts = []
    for each in totals.values():
        for total in each:
            facts = most_missed(total, FACTS)
            if not facts:
                continue
            setup = total.setup
            rows = "\n".join(
                f'<tr><th scope="row">{code(fact.first.key)}</th>'
                + data_cell("kind", text(fact.first.kind))
                + data_cell("missed", f"{fact.times:,}", NUMBER)
                + data_cell("session", text(named(fact.cell)))
                + data_cell("handle", f"#{fact.first.position}", NUMBER)
                + data_cell("used by call", f"{fact.first.call:,}", NUMBER)
                + data_cell("to see it", code(recall_of(fact.cell, fact.first.position)))
                + "</tr>"
                for fact in facts
            )
            name = f"{setup.label}, limit {setup.limit:,}"
            headings = ("fact", "kind", "missed", "session", "handle", "used by call", "to see it")
            head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
            shown = table_of(f"Lost under {name}", head, rows)
            parts.append(f"<details><summary>{text(name)}</summary>\n{shown}</details>")
    return "\n".join(parts)


def trouble(totals: ByLimit) -> str:
    """Plans that would have broken a history, and prompts that no model would have taken."""
    return table(
        "What would have gone wrong",
        ("policy", "limit", "calls", "compactions", "prompts refused", "came to nothing",
         "plans that part calls from results", "calls and results parted", "repairs",
         "summaries by a stand-in", "largest prompt"),
        (
            (
                one.setup.label,
                one.setup.limit,
                one.summed("calls"),
                one.summed("compactions"),
                one.summed("refused"),
                one.summed("futile"),
                *_repaired(one),
                max((cell.peak_tokens for cell in one.cells), default=0),
            )
            for each in totals.values()
            for one in each
        ),
    )  # fmt: skip


def failures(measured: Measured) -> str:
    """Cells without a result, and sessions that were left out: each with its reason."""
    failed = [cell for cell in measured.cells if cell.outcome is not Outcome.DONE]
    remarked = [cell for cell in measured.cells if cell.outcome is Outcome.DONE and cell.why]
    parts = [
        _cells("Failed", failed) if failed else paragraph("No cell failed."),
        _remarks(remarked) if remarked else "",
        _left_out(measured.skipped) if measured.skipped else "",
    ]
    return "\n".join(filter(None, parts))


def _costs(total: Total) -> Sequence[Inline]:
    return (
        total.setup.label,
        f"{len(total.cells)}/{total.sessions}",
        total.summed("compactions"),
        None if total.tokens_per_call is None else round(total.tokens_per_call),
        total.bill.prompt_tokens,
        _cost(total),
        _dollars(_known(total.priced, "uncached_usd")),
        _dollars(_known(total.priced, "summaries_usd")),
        total.bill.rewritten_tokens,
        total.summed("refused"),
    )


def _kept(total: Total) -> Sequence[Inline]:
    scores = total.canonical
    return (
        total.setup.label,
        part(scores.recall),
        *_three(scores),
        part(ratio(scores.hard_hits, scores.hard_stakes)),
        part(ratio(scores.modified_named, scores.modified)),
        part(ratio(scores.read_named, scores.read)),
        part(ratio(scores.constraints_kept, scores.constraints)),
        part(ratio(scores.rereads_named, scores.rereads)),
        scores.novel,
        part(scores.precision),
    )


def _three(scores: Scores) -> tuple[str, str, str]:
    return part(scores.context), part(scores.prose), part(scores.f3)


def _cost(total: Total) -> str:
    few = len(total.priced) < len(total.cells)
    return _dollars(total.usd) + (f" of {len(total.priced):,}" if few and total.priced else "")


def _known(cells: Sequence[Cell], name: str) -> float | None:
    return sum(getattr(cell.bill, name) or 0.0 for cell in cells) if cells else None


def _dollars(amount: float | None) -> str:
    return NOT_KNOWN if amount is None else dollars(amount)


def _repaired(total: Total) -> Sequence[Inline]:
    """Of plans and of summaries, what had to be mended."""
    if not has_texts(total.setup):
        return (NOT_KNOWN,) * 4
    broken, orphaned = total.summed("broken"), total.summed("orphaned")
    return broken, orphaned, _repairs(total), total.summed("stood_in")


def _repairs(total: Total) -> str:
    found: Counter[str] = Counter()
    for cell in total.cells:
        found.update(cell.repairs)
    return ", ".join(f"{rule} {number:,}" for rule, number in sorted(found.items())) or NOT_KNOWN


def _cells(caption: str, cells: Sequence[Cell]) -> str:
    rows = (
        (named(cell), cell.setup.label, cell.setup.limit, cell.outcome.value, cell.why)
        for cell in cells[:ROWS]
    )
    shown = table(caption, ("session", "policy", "limit", "outcome", "why"), rows)
    return shown + _more(len(cells))


def _remarks(cells: Sequence[Cell]) -> str:
    """By setup, how many sessions have one, and what it is of the first."""
    by_setup: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        by_setup.setdefault((cell.setup.label, cell.setup.limit), []).append(cell)
    rows = (
        (label, limit, len(found), named(found[0]), found[0].why)
        for (label, limit), found in by_setup.items()
    )
    return table("Remarks", ("policy", "limit", "sessions", "as", "remark"), rows)


def _left_out(skipped: Mapping[str, str]) -> str:
    rows = islice(skipped.items(), ROWS)
    return table("Sessions left out", ("session", "why"), rows) + _more(len(skipped))


def _more(number: int) -> str:
    if number <= ROWS:
        return ""
    return paragraph(f"And {number - ROWS:,} more, which the tables beside this page have.")
