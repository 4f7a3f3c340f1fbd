"""The verb that says what recorded calls of models cost."""

from dataclasses import asdict
from typing import Annotated

import typer

from ...storage.read_models.costs import Cost, Costs
from .database import opened_store
from .invocation import Invocation
from .printing import (
    cost_in_short,
    counted,
    home_shortened,
    say,
    say_folded,
    say_json,
    say_table,
    tokens_in_short,
    usd,
)
from .times import read_since

HEADINGS = ("calls", "input", "cache write", "cache read", "output", "cost")
BESIDE = " " * 10
NAME = 16
"""Characters that a name has at least in a table."""


def costs(
    call: Invocation,
    *,
    by: Annotated[
        str, typer.Option("--by", metavar="GROUP", help="day, project, model or session.")
    ] = "day",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="Only calls from then on: 2026-01-31, or 7d."),
    ] = None,
) -> None:
    """Show what calls of models cost."""
    start = read_since(since) if since is not None else None
    with opened_store(call) as store:
        found = store.costs(by, since=start, namespace=call.named)
    if call.as_json:
        say_json(asdict(found))
    elif not found.total.calls:
        say("No call of a model is recorded" + (" since then." if since else "."))
    else:
        _say_costs(found)


def _say_costs(found: Costs) -> None:
    rows = [[_name(one, found.by), *_cells(one)] for one in found.rows]
    say_table([found.by, *HEADINGS], [*rows, ["total", *_cells(found.total)]], {found.by: NAME})
    say()
    total = found.total
    parts = {
        "input": total.input_usd,
        "cache writes": total.cache_write_usd,
        "cache reads": total.cache_read_usd,
        "output": total.output_usd,
        "reported by the agent": total.reported_usd,
    }
    said = ", ".join(f"{name} {usd(part)}" for name, part in parts.items() if part)
    say_folded(f"cost      {usd(total.cost_usd)}{f': {said}' if said else ''}", BESIDE)
    if found.unpriced:
        tokens = tokens_in_short(total.unpriced_tokens)
        say(
            f"no price  {counted(total.unpriced_calls, 'call')} with {tokens} tokens are in no sum:"
        )
        for one in found.unpriced:
            tokens = tokens_in_short(one.unpriced_tokens)
            say(f"{BESIDE}{one.model}, {counted(one.unpriced_calls, 'call')}, {tokens} tokens")
        say(f'{BESIDE}Give prices in the settings, under [models."NAME"].')
    if total.unreported_calls:
        calls = counted(total.unreported_calls, "call")
        say(f"no usage  {calls} without a report of tokens are in no sum")


def _name(one: Cost, by: str) -> str:
    match by:
        case "day":
            return one.day or ""
        case "project":
            return home_shortened(one.project) if one.project else "(unknown)"
        case "model":
            return one.model or "(unknown)"
        case _:
            return one.session or ""


def _cells(one: Cost) -> list[str | int]:
    tokens = (
        one.input_tokens,
        one.cache_write_tokens,
        one.cache_read_tokens,
        one.output_tokens,
    )
    unknown = one.unpriced_calls + one.unreported_calls
    cost = cost_in_short(one.cost_usd, is_part=unknown > 0)
    return [one.calls, *map(tokens_in_short, tokens), cost]
