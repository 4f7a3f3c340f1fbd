"""Prints the table of `sessions`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from ....domain.errors import InvalidSettingError
from .printing import format_count, format_short_cost, print_table, print_text, shorten_home
from .session_list import SessionJson, get_listed_title, sort_newest_first

SORT_BY_TIME, SORT_BY_NAME = "when", "name"
SORT_FIELDS = {
    SORT_BY_TIME: "said_at",
    SORT_BY_NAME: "session",
    "title": "title",
    "project": "project",
    "context": "utilisation",
    "tokens": "tokens",
    "cost": "cost_usd",
}
"""The sortable columns with their keys. Numbers and times are descending, text ascending."""
_MIN_CELLS = {"id": 8, "project": 7, "title": 16, "model": 8}
"""The minimum widths of columns that can be shortened, in characters."""


def choose_sessions(
    listed: Sequence[SessionJson], since: str | None, project: str | None, sort: str
) -> list[SessionJson]:
    """Return the sessions that match, in the requested order.

    Raises InvalidSettingError if the order does not exist.
    """
    if sort not in SORT_FIELDS:
        raise InvalidSettingError(f"no order {sort!r}: sort by {', '.join(SORT_FIELDS)}")
    found = [
        one
        for one in sort_newest_first(listed)
        if (since is None or (one["said_at"] or "") >= since)
        and (project is None or project.casefold() in (one["project"] or "").casefold())
    ]
    if sort == SORT_BY_NAME:
        found.sort(key=itemgetter("namespace", "session"))
    elif sort in {"title", "project"}:
        found.sort(
            key=lambda one: (
                get_listed_title(one) if sort == "title" else one[sort] or ""
            ).casefold()
        )
    elif sort != SORT_BY_TIME:
        found.sort(key=lambda one: one[SORT_FIELDS[sort]] or 0, reverse=True)
    return found


def print_sessions(listed: Sequence[SessionJson], names: Mapping[str, str]) -> None:
    """Print a row for each session; in a pipe with full names."""
    is_shown = sys.stdout.isatty()
    columns: dict[str, Callable[[SessionJson], str | int]] = {
        "when": lambda one: _format_when(one["said_at"]),
        "id": lambda one: names[one["session"]],
        "namespace": itemgetter("namespace"),
        "project": lambda one: (one["project"] or "").rstrip("/").rpartition("/")[2],
        "title": get_listed_title,
        "model": lambda one: _shorten_model(one["model"] or ""),
        "full": lambda one: _format_share(one["utilisation"]),
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
    rows = [{name: of(one) for name, of in columns.items()} for one in listed]
    # On a terminal, leave out empty columns.
    shown = [name for name in columns if not is_shown or any(row[name] for row in rows)]
    print_table(shown, [[str(row[name]) for name in shown] for row in rows], _MIN_CELLS)
    broken = sum(bool(one["incomplete"]) for one in listed)
    if is_shown and broken:
        print_text(
            f"The import of {format_count(broken, 'session')} was interrupted: import it again."
        )


def _format_when(written: str | None) -> str:
    """Format the local day; for today, the time."""
    if written is None:
        return ""
    time = datetime.fromisoformat(written).astimezone()
    is_today = time.date() == datetime.now().astimezone().date()
    return f"{time:%H:%M}" if is_today else f"{time:%Y-%m-%d}"


def _format_cost(one: SessionJson) -> str:
    unknown = one["unpriced_calls"] + one["unreported_calls"]
    return format_short_cost(one["cost_usd"] or 0.0, is_part=unknown > 0) if one["calls"] else ""


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _shorten_model(name: str) -> str:
    """Return a model's name without its provider and date."""
    bare = name.rpartition("/")[2].removeprefix("claude-")
    head, _, date = bare.rpartition("-")
    return head if head and len(date) == 8 and date.isdecimal() else bare
