"""Reads the current status of idle work, from the read models and the maintenance records."""

from dataclasses import replace

from ...storage.event_log.plain_errors import speaking_plainly
from ..sessions.session_store import SessionStore
from .server_clock import time_of
from .status import IdleStatus, status_of
from .upkeep import upkeep_of


def get_idle_status(store: SessionStore, *, last: int = 10) -> IdleStatus:
    """Return what is due, running, prepared, done and failed, whichever process does it.

    Reads what is new first; `last` is how many of each kind are listed. The rules are those of the
    settings, section `idle`.
    """
    with speaking_plainly(store.name):
        now = time_of(store.events)
    store.read_models.catch_up(search=False)
    found = status_of(store.read_models, store.settings.idle.rules(), now, last)
    return replace(found, chores=tuple(upkeep_of(store).status()))
