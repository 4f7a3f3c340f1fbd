"""Implements `costs`: the cost of recorded calls."""

from dataclasses import asdict
from typing import Annotated

import typer

from ...storage.read_models.costs import CallCosts, CostReport
from .database import open_call_store
from .invocation import Invocation
from .printing import (
    format_count,
    format_short_cost,
    format_short_tokens,
    format_usd,
    print_json,
    print_table,
    print_text,
    print_wrapped,
    shorten_home,
)
from .time_parsing import parse_since

COST_HEADINGS = ("calls", "input", "cache write", "cache read", "output", "cost")
_COLUMN_GAP = " " * 10
_NAME_CELLS = 16
"""The minimum width of a name in a table."""


def costs(
    call: Invocation,
    *,
    by: Annotated[
        str,
        typer.Option("--by", metavar="GROUP", help="day, project, model or session."),
    ] = "day",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="Only calls from then on: 2026-01-31, or 7d."),
    ] = None,
) -> None:
    """Show what calls of models cost."""
    start = parse_since(since) if since is not None else None
    with open_call_store(call) as store:
        found = store.costs(by, since=start, namespace=call.named)
    if call.as_json:
        print_json(asdict(found))
    elif not found.total.calls:
        print_text("No call of a model is recorded" + (" since then." if since else "."))
    else:
        _print_costs(found)


def _print_costs(found: CostReport) -> None:
    rows = [[_group_name(one, found.by), *_cost_cells(one)] for one in found.rows]
    print_table(
        [found.by, *COST_HEADINGS],
        [*rows, ["total", *_cost_cells(found.total)]],
        {found.by: _NAME_CELLS},
    )
    print_text()
    total = found.total
    parts = {
        "input": total.input_usd,
        "cache writes": total.cache_write_usd,
        "cache reads": total.cache_read_usd,
        "output": total.output_usd,
        "reported by the agent": total.reported_usd,
    }
    said = ", ".join(f"{name} {format_usd(part)}" for name, part in parts.items() if part)
    print_wrapped(
        f"cost      {format_usd(total.cost_usd)}{f': {said}' if said else ''}", _COLUMN_GAP
    )
    if found.unpriced:
        tokens = format_short_tokens(total.unpriced_tokens)
        print_text(
            f"no price  {format_count(total.unpriced_calls, 'call')} with {tokens} tokens are "
            "in no sum:"
        )
        for one in found.unpriced:
            tokens = format_short_tokens(one.unpriced_tokens)
            print_text(
                f"{_COLUMN_GAP}{one.model}, {format_count(one.unpriced_calls, 'call')}, "
                f"{tokens} tokens"
            )
        print_text(f'{_COLUMN_GAP}Give prices in the settings, under [models."NAME"].')
    if total.unreported_calls:
        calls = format_count(total.unreported_calls, "call")
        print_text(f"no usage  {calls} without a report of tokens are in no sum")


def _group_name(one: CallCosts, by: str) -> str:
    match by:
        case "day":
            return one.day or ""
        case "project":
            return shorten_home(one.project) if one.project else "(unknown)"
        case "model":
            return one.model or "(unknown)"
        case _:
            return one.session or ""


def _cost_cells(one: CallCosts) -> list[str | int]:
    tokens = (
        one.input_tokens,
        one.cache_write_tokens,
        one.cache_read_tokens,
        one.output_tokens,
    )
    unknown = one.unpriced_calls + one.unreported_calls
    cost = format_short_cost(one.cost_usd, is_part=unknown > 0)
    return [one.calls, *map(format_short_tokens, tokens), cost]
