"""Implements `sessions` and `costs`: what is stored, and the cost of recorded calls."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Any

from ....domain.errors import InvalidSettingError
from ....projections.read_models.timestamps import format_timestamp
from ...runtime.sessions.session_store import SessionStore
from ...storage.read_models.costs import CallCosts, CostReport
from ..command_line.options import parse_since
from ..command_line.printing import (
    format_count,
    format_short_cost,
    format_short_tokens,
    format_usd,
    pick,
    print_answer,
    print_fields,
    print_json,
    print_rows,
    print_table,
    print_text,
    shorten_home,
)
from ..command_line.sessions import (
    SessionJson,
    get_listed_title,
    list_all,
    open_call_store,
    shorten_names,
    sort_newest_first,
)
from ..command_line.verbs import Invocation, option

_SORT_KEYS: dict[str, Callable[[SessionJson], Any]] = {
    "when": lambda one: one["said_at"] or "",
    "name": itemgetter("namespace", "session"),
    "tokens": lambda one: one["tokens"] or 0,
    "cost": lambda one: one["cost_usd"] or 0,
}
"""The sortable columns. Numbers and times are descending, names ascending."""
COST_HEADINGS = ("calls", "input", "cache write", "cache read", "output", "cost")


def sessions(
    call: Invocation,
    since: str | None = option(
        "--since WHEN", "Only sessions with activity since: 2026-01-31, or 7d."
    ),
    project: str | None = option(
        "--project TEXT", "Only sessions whose project contains this text."
    ),
    sort: str | None = option("--sort COLUMN", f"By {', '.join(_SORT_KEYS)}."),
    limit: int | None = option("--limit N", "Only the first so many.", min=1),
) -> None:
    """List the sessions: what they are about and what they cost."""
    start = format_timestamp(parse_since(since)) if since is not None else None
    with open_call_store(call) as store:
        found = _add_costs(store, list_all(store, call.named), call.named)
        name = store.name
    names = shorten_names(one["session"] for one in found)
    # JSON is sorted by name unless another order is requested.
    order = sort or ("name" if call.as_json and limit is None else "when")
    chosen = _choose_sessions(found, start, project, order)[:limit]
    if call.as_json:
        print_json(chosen)
    elif not found:
        print_text(f"No sessions yet in {name}.")
        print_text(
            "Try `cutbank demo`, or `cutbank import PATH` with a transcript or a folder of them."
        )
    elif not chosen:
        print_text(f"None of {format_count(len(found), 'session')} fits.")
    else:
        _print_sessions(chosen, names)


def costs(
    call: Invocation,
    by: str = option("--by GROUP", "day, project, model or session.", "day"),
    since: str | None = option("--since WHEN", "Only calls from then on: 2026-01-31, or 7d."),
) -> None:
    """Show what calls of models cost."""
    start = parse_since(since) if since is not None else None
    with open_call_store(call) as store:
        found = store.costs(by, since=start, namespace=call.named)
    if call.as_json or not found.total.calls:
        nothing = "No call of a model is recorded" + (" since then." if since else ".")
        print_answer(call.as_json, asdict(found), nothing)
    else:
        _print_costs(found)


def _add_costs(
    store: SessionStore, listed: Sequence[SessionJson], namespace: str | None
) -> list[dict[str, Any]]:
    found = {}
    if any(one["idle"] is not None for one in listed):  # else there is no index
        rows = store.costs("session", namespace=namespace).rows
        found = {(cost.namespace, cost.session): cost for cost in rows}
    return [
        {**one, **_cost_to_json(found.get((one["namespace"], one["session"])))} for one in listed
    ]


def _cost_to_json(cost: CallCosts | None) -> dict[str, Any]:
    if cost is None:
        return {"calls": 0, "cost_usd": None, "unpriced_calls": 0, "unreported_calls": 0}
    unknown = cost.unpriced_calls + cost.unreported_calls
    counts = pick(cost, "calls cost_usd unpriced_calls unreported_calls")
    return counts | ({"cost_usd": None} if unknown == cost.calls else {})


def _choose_sessions(
    listed: Sequence[SessionJson], since: str | None, project: str | None, sort: str
) -> list[SessionJson]:
    """Return the sessions that match, in the requested order.

    Raises InvalidSettingError if the order does not exist.
    """
    if sort not in _SORT_KEYS:
        raise InvalidSettingError(f"no order {sort!r}: sort by {', '.join(_SORT_KEYS)}")
    found = [
        one
        for one in sort_newest_first(listed)
        if (since is None or (one["said_at"] or "") >= since)
        and (project is None or project.casefold() in (one["project"] or "").casefold())
    ]
    return sorted(found, key=_SORT_KEYS[sort], reverse=sort != "name")


def _print_sessions(listed: Sequence[SessionJson], names: Mapping[str, str]) -> None:
    is_shown = sys.stdout.isatty()
    columns: dict[str, Callable[[SessionJson], str | int]] = {
        "when": lambda one: _format_when(one["said_at"]),
        "id": lambda one: names[one["session"]],
        "namespace": itemgetter("namespace"),
        "project": lambda one: (one["project"] or "").rstrip("/").rpartition("/")[2],
        "title": get_listed_title,
        "model": lambda one: _shorten_model(one["model"] or ""),
        "full": lambda one: "" if one["utilisation"] is None else f"{one['utilisation']:.0%}",
        "cuts": lambda one: one["compactions"] or "",
        "cost": _format_cost,
    }
    if not is_shown:
        columns |= {
            "when": lambda one: one["said_at"] or "",
            "id": itemgetter("session"),
            "project": lambda one: shorten_home(one["project"] or ""),
            "model": lambda one: one["model"] or "",
        }
    if len({one["namespace"] for one in listed}) == 1:
        del columns["namespace"]
    print_rows([{name: of(one) for name, of in columns.items()} for one in listed])
    broken = sum(bool(one["incomplete"]) for one in listed)
    if is_shown and broken:
        print_text(
            f"The import of {format_count(broken, 'session')} was interrupted: import it again."
        )


def _format_when(written: str | None) -> str:
    if written is None:
        return ""
    time = datetime.fromisoformat(written).astimezone()
    is_today = time.date() == datetime.now().astimezone().date()
    return f"{time:%H:%M}" if is_today else f"{time:%Y-%m-%d}"


def _format_cost(one: SessionJson) -> str:
    unknown = one["unpriced_calls"] + one["unreported_calls"]
    return format_short_cost(one["cost_usd"] or 0.0, is_part=unknown > 0) if one["calls"] else ""


def _shorten_model(name: str) -> str:
    """Return a model's name without its provider and date."""
    bare = name.rpartition("/")[2].removeprefix("claude-")
    head, _, date = bare.rpartition("-")
    return head if head and len(date) == 8 and date.isdecimal() else bare


def _print_costs(found: CostReport) -> None:
    rows = [[_group_name(one, found.by), *_cost_cells(one)] for one in found.rows]
    print_table([found.by, *COST_HEADINGS], [*rows, ["total", *_cost_cells(found.total)]])
    print_text()
    print_fields(_cost_fields(found))


def _cost_fields(found: CostReport) -> Iterator[tuple[str, str]]:
    total = found.total
    parts = {
        "input": total.input_usd,
        "cache writes": total.cache_write_usd,
        "cache reads": total.cache_read_usd,
        "output": total.output_usd,
        "reported by the agent": total.reported_usd,
    }
    known = ", ".join(f"{name} {format_usd(part)}" for name, part in parts.items() if part)
    yield "cost", f"{format_usd(total.cost_usd)}{f': {known}' if known else ''}"
    for one in [total, *found.unpriced] if found.unpriced else ():
        about = "in no sum" if one is total else f"of {one.model}"
        tokens = format_short_tokens(one.unpriced_tokens)
        calls = format_count(one.unpriced_calls, "call")
        yield "no price", f"{calls} with {tokens} tokens {about}"
    if found.unpriced:
        yield "", 'Give prices in the settings, under [models."NAME"].'
    if total.unreported_calls:
        calls = format_count(total.unreported_calls, "call")
        yield "no usage", f"{calls} without a report of tokens are in no sum"


def _group_name(one: CallCosts, by: str) -> str:
    project = one.project and shorten_home(one.project)
    name = {"day": one.day, "project": project, "model": one.model}.get(by, one.session)
    return name or ("(unknown)" if by in {"project", "model"} else "")


def _cost_cells(one: CallCosts) -> list[str | int]:
    tokens = (one.input_tokens, one.cache_write_tokens, one.cache_read_tokens, one.output_tokens)
    unknown = one.unpriced_calls + one.unreported_calls
    cost = format_short_cost(one.cost_usd, is_part=unknown > 0)
    return [one.calls, *map(format_short_tokens, tokens), cost]
