"""Reads the current status of idle work from the read models and the maintenance records."""

from dataclasses import replace

from ...storage.event_log.storage_errors import translate_storage_errors
from ..sessions.session_store import SessionStore
from .idle_status import IdleStatus, read_idle_status
from .maintenance_runner import make_maintenance
from .server_clock import read_store_time


def get_idle_status(store: SessionStore, *, last: int = 10) -> IdleStatus:
    """Return what is due, running, prepared, done and failed, over all processes.

    Reads new events first. `last` limits how many of each kind are listed. The rules are those of
    the settings, section `idle`.
    """
    with translate_storage_errors(store.name):
        now = read_store_time(store.events)
    store.read_models.catch_up(search=False)
    found = read_idle_status(store.read_models, store.settings.idle.make_rules(), now, last)
    return replace(found, chores=tuple(make_maintenance(store).read_status()))
