"""Implements `sessions` and `costs`: what is stored, and the cost of recorded calls."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any

from ....domain.errors import InvalidSettingError
from ....projections.timestamps import format_timestamp
from ...runtime.sessions.session_store import SessionStore
from ...storage.read_models.index_queries import CallCosts, CostReport
from ..command_line.options import parse_since
from ..command_line.printing import (
    format_count,
    format_short_cost,
    format_short_tokens,
    list_fields,
    pick,
    print_fields,
    print_rows,
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
from ..command_line.verbs import Answer, Invocation, option

_SORT_KEYS: dict[str, Callable[[SessionJson], Any]] = {
    "when": lambda one: one["said_at"] or "",
    "name": itemgetter("namespace", "session"),
    "tokens": lambda one: one["tokens"] or 0,
    "cost": lambda one: one["cost_usd"] or 0,
}
"""The sortable columns. Numbers and times are descending, names ascending."""


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
) -> Answer:
    start = format_timestamp(parse_since(since)) if since is not None else None
    with open_call_store(call) as store:
        found = _add_costs(store, list_all(store, call.named), call.named)
        name = store.name
    # JSON is sorted by name unless another order is requested.
    order = sort or ("name" if call.as_json and limit is None else "when")
    chosen = _choose_sessions(found, start, project, order)[:limit]
    if chosen:
        names = shorten_names(one["session"] for one in found)
        return Answer(chosen, partial(_print_sessions, chosen, names))
    if found:
        return Answer([], f"None of {format_count(len(found), 'session')} fits.")
    hint = "Try `cutbank demo`, or `cutbank import PATH` with a transcript or a folder of them."
    return Answer([], f"No sessions yet in {name}.", hint)


def costs(
    call: Invocation,
    by: str = option("--by GROUP", "day, project, model or session.", "day"),
    since: str | None = option("--since WHEN", "Only calls from then on: 2026-01-31, or 7d."),
) -> Answer:
    start = parse_since(since) if since is not None else None
    with open_call_store(call) as store:
        found = store.costs(by, since=start, namespace=call.named)
    nothing = "No call of a model is recorded" + (" since then." if since else ".")
    return Answer(asdict(found), partial(_print_costs, found) if found.total.calls else nothing)


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
    broken = format_count(sum(bool(one["incomplete"]) for one in listed), "session")
    if is_shown and broken != "0 sessions":
        print_text(f"The import of {broken} was interrupted: import it again.")


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
    rows = [_cost_row(found.by, _group_name(one, found.by), one) for one in found.rows]
    print_rows([*rows, _cost_row(found.by, "total", found.total)])
    print_text()
    total = asdict(found.total)
    print_fields(list_fields({name: total[name] for name in total if name.endswith("_usd")}))
    for one in found.unpriced:
        calls = format_count(one.unpriced_calls, "call")
        print_text(
            f"in no sum: {calls} of {one.model} with {format_short_tokens(one.unpriced_tokens)} "
            'tokens; give prices in the settings, under [models."NAME"]'
        )
    if count := found.total.unreported_calls:
        print_text(f"in no sum: {format_count(count, 'call')} without a report of tokens")


def _group_name(one: CallCosts, by: str) -> str:
    project = one.project and shorten_home(one.project)
    name = {"day": one.day, "project": project, "model": one.model}.get(by, one.session)
    return name or ("(unknown)" if by in {"project", "model"} else "")


def _cost_row(by: str, name: str, one: CallCosts) -> dict[str, object]:
    unknown = one.unpriced_calls + one.unreported_calls
    return {
        by: name,
        "calls": one.calls,
        "input": format_short_tokens(one.input_tokens),
        "cache write": format_short_tokens(one.cache_write_tokens),
        "cache read": format_short_tokens(one.cache_read_tokens),
        "output": format_short_tokens(one.output_tokens),
        "cost": format_short_cost(one.cost_usd, is_part=unknown > 0),
    }
