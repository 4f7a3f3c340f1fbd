"""The table that `sessions` shows."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from ....domain.errors import InvalidSettingError
from .printing import cost_in_short, counted, home_shortened, say, say_table
from .session_list import Listed, newest_first, title_of

WHEN, NAME = "when", "name"
SORTS = {
    WHEN: "said_at",
    NAME: "session",
    "title": "title",
    "project": "project",
    "context": "utilisation",
    "tokens": "tokens",
    "cost": "cost_usd",
}
"""What a list can be sorted by, and the key that it is by. Numbers and times fall, text rises."""
LEAST = {"id": 8, "project": 7, "title": 16, "model": 8}
"""How narrow the columns may become that are cut short, in characters."""


def chosen(
    listed: Sequence[Listed], since: str | None, project: str | None, sort: str
) -> list[Listed]:
    """The sessions that were asked for, in the order that was asked for.

    Raises InvalidSettingError for an order that there is not.
    """
    if sort not in SORTS:
        raise InvalidSettingError(f"no order {sort!r}: sort by {', '.join(SORTS)}")
    found = [
        one
        for one in newest_first(listed)
        if (since is None or (one["said_at"] or "") >= since)
        and (project is None or project.casefold() in (one["project"] or "").casefold())
    ]
    if sort == NAME:
        found.sort(key=itemgetter("namespace", "session"))
    elif sort in {"title", "project"}:
        found.sort(
            key=lambda one: (title_of(one) if sort == "title" else one[sort] or "").casefold()
        )
    elif sort != WHEN:
        found.sort(key=lambda one: one[SORTS[sort]] or 0, reverse=True)
    return found


def say_sessions(listed: Sequence[Listed], names: Mapping[str, str]) -> None:
    """A row for each session; in a pipe with whole names."""
    is_shown = sys.stdout.isatty()
    columns: dict[str, Callable[[Listed], str | int]] = {
        "when": lambda one: _when(one["said_at"]),
        "id": lambda one: names[one["session"]],
        "namespace": itemgetter("namespace"),
        "project": lambda one: (one["project"] or "").rstrip("/").rpartition("/")[2],
        "title": title_of,
        "model": lambda one: _short_model(one["model"] or ""),
        "full": lambda one: _share(one["utilisation"]),
        "cuts": lambda one: one["compactions"] or "",
        "cost": _cost,
    }
    if not is_shown:
        columns |= {
            "when": lambda one: one["said_at"] or "",
            "id": itemgetter("session"),
            "project": lambda one: home_shortened(one["project"] or ""),
            "model": lambda one: one["model"] or "",
        }
    if len({one["namespace"] for one in listed}) == 1:
        del columns["namespace"]
    rows = [{name: of(one) for name, of in columns.items()} for one in listed]
    # On a screen, what no session has needs no column.
    shown = [name for name in columns if not is_shown or any(row[name] for row in rows)]
    say_table(shown, [[str(row[name]) for name in shown] for row in rows], LEAST)
    broken = sum(bool(one["incomplete"]) for one in listed)
    if is_shown and broken:
        say(f"The import of {counted(broken, 'session')} was interrupted: import it again.")


def _when(written: str | None) -> str:
    """The day by the clock of this machine; of today, the time."""
    if written is None:
        return ""
    time = datetime.fromisoformat(written).astimezone()
    is_today = time.date() == datetime.now().astimezone().date()
    return f"{time:%H:%M}" if is_today else f"{time:%Y-%m-%d}"


def _cost(one: Listed) -> str:
    unknown = one["unpriced_calls"] + one["unreported_calls"]
    return cost_in_short(one["cost_usd"] or 0.0, is_part=unknown > 0) if one["calls"] else ""


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _short_model(name: str) -> str:
    """A model without who serves it, and without its date."""
    bare = name.rpartition("/")[2].removeprefix("claude-")
    head, _, date = bare.rpartition("-")
    return head if head and len(date) == 8 and date.isdecimal() else bare
