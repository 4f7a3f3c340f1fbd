"""Lists sessions from the index, which includes idle work, or else from the log."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ....domain.errors import StorageError
from ...runtime.idle.server_clock import read_store_time
from ...runtime.sessions.session_store import SessionStore
from . import session_json
from .printing import print_error
from .progress_bar import show_progress

if TYPE_CHECKING:
    from ...storage.read_models.costs import CallCosts

_EXCERPT_CHARACTERS = 2_000
"""Events that are read too fast for a progress bar."""

SessionJson = Mapping[str, Any]
"""A session as `sessions --json` prints it."""

INDEX_FIELDS = dict.fromkeys(
    (
        *("first_prompt", "model", "said_at", "compactions"),
        *("in_use", "utilisation", "limit", "limit_source", "idle", "idle_until"),
    )
)
"""The values that only the index has."""


def list_all(store: SessionStore, namespace: str | None) -> list[dict[str, Any]]:
    """Return the sessions of all namespaces, or of one, as `sessions --json` prints them.

    Without an index, sessions are read from the log one by one, and have no idle work or costs.
    """
    # Read the log first, so that its errors are not taken for errors of the index.
    newest = store.events.recorder.max_notification_id() or 0
    now = read_store_time(store.events)
    try:
        models = store.read_models
        behind = newest - models.positions["index"]
        if behind > _EXCERPT_CHARACTERS:
            with show_progress("reading what is new") as progress:
                models.catch_up(progress, search=False)
        else:
            models.catch_up(search=False)
    except StorageError as error:
        print_error(f"{error}; so nothing is known of idle work")
        return [
            session_json.session_to_json(one) | INDEX_FIELDS for one in store.sessions(namespace)
        ]
    # A slow import that other verbs do not need.
    from ...storage.read_models.session_list import list_sessions  # noqa: PLC0415

    return [
        asdict(one)
        | {
            "incomplete": store.events.recorder.select_incomplete_import(
                one.namespace, one.session
            ),
            "idle": one.idle.value,
            "idle_until": one.idle_until.isoformat() if one.idle_until else None,
        }
        for one in list_sessions(models, namespace, now)
    ]


def add_costs(
    store: SessionStore, listed: Iterable[SessionJson], namespace: str | None
) -> list[dict[str, Any]]:
    """Return the sessions with the cost of their calls; null if unknown."""
    listed = list(listed)
    if all(one["idle"] is None for one in listed):
        return [{**one, **_cost_to_json(None)} for one in listed]  # there is no index
    found = {
        (cost.namespace, cost.session): cost
        for cost in store.costs("session", namespace=namespace).rows
    }
    return [
        {**one, **_cost_to_json(found.get((one["namespace"], one["session"])))} for one in listed
    ]


def _cost_to_json(cost: "CallCosts | None") -> dict[str, Any]:
    if cost is None:
        return {"calls": 0, "cost_usd": None, "unpriced_calls": 0, "unreported_calls": 0}
    unknown = cost.unpriced_calls + cost.unreported_calls
    return {
        "calls": cost.calls,
        "cost_usd": None if unknown == cost.calls else cost.cost_usd,
        "unpriced_calls": cost.unpriced_calls,
        "unreported_calls": cost.unreported_calls,
    }


def sort_newest_first(listed: Iterable[SessionJson]) -> list[SessionJson]:
    """Sort by the time of the last event, newest first."""
    return sorted(listed, key=lambda one: one["said_at"] or "", reverse=True)


def get_listed_title(one: SessionJson) -> str:
    """Return a session's title, or else its first prompt."""
    return one["title"] or one["first_prompt"] or ""
