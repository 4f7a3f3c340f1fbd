"""The list of sessions: from the index, which knows of idle work as well; else from the log."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ...domain.errors import StorageError
from ...projections.read_models.idle_state import IdleState
from ..idle.server_clock import time_of
from ..session_store import SessionStore
from . import session_json
from .idle_lines import span_in_words
from .printing import complain
from .progress_bar import progress_bar

SHORT = 2_000
"""Events that are read before anybody would look for a progress bar."""

IN_WORDS = {
    IdleState.SUB_AGENT: "works for another",
    IdleState.WAITING: "waits for a call",
    IdleState.DUE: "due now",
    IdleState.GIVEN_UP: "given up",
    IdleState.NO_GAIN: "nothing to gain",
}
"""What does not say by itself what it means."""
SOON = {IdleState.RUNNING: "running, at most", IdleState.ASLEEP: "asleep for"}


def all_of(store: SessionStore, namespace: str | None) -> list[dict[str, Any]]:
    """The sessions of all namespaces, or of one, as `sessions --json` says them.

    Where no index can be kept, they are read from the log one by one, and of idle work nothing is
    said.
    """
    # The log is asked first: what is wrong with it is not to be taken for trouble with the index.
    newest = store.events.recorder.max_notification_id() or 0
    now = time_of(store.events)
    try:
        models = store.read_models
        behind = newest - models.positions["index"]
        if behind > SHORT:
            with progress_bar("reading what is new") as progress:
                models.catch_up(progress, search=False)
        else:
            models.catch_up(search=False)
    except StorageError as error:
        complain(f"{error}; so nothing is known of idle work")
        unknown = {"idle": None, "idle_until": None}
        return [session_json.described(one) | unknown for one in store.sessions(namespace)]
    # Whoever loads this module need not load what keeps read models.
    from ..read_models.session_list import listed  # noqa: PLC0415

    return [
        asdict(one)
        | {
            "incomplete": store.events.recorder.select_incomplete_import(
                one.namespace, one.session
            ),
            "idle": one.idle.value,
            "idle_until": one.idle_until.isoformat() if one.idle_until else None,
        }
        for one in listed(models, namespace, now)
    ]


def idle_in_words(session: Mapping[str, Any]) -> str:
    """`due now`, `due in 4 min`, `asleep for 2 h`, `compacted`."""
    if session["idle"] is None:
        return ""
    state, until = IdleState(session["idle"]), session["idle_until"]
    if until is None:
        return IN_WORDS.get(state, state.value)
    wait = span_in_words((datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds())
    return f"{SOON.get(state, 'due in')} {wait}"
