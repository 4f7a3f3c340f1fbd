"""Keeps open databases usable in a forked child, which inherits everything but the other threads.

A lock that another thread held would stay locked there forever, and SQLite would believe that it
holds the parent's file locks. So a fork waits until no work is in progress, and the child abandons
what it inherited and reopens it on demand.
"""

import os
from collections.abc import Container, Iterable
from threading import local
from time import monotonic
from typing import Any, Protocol
from weakref import ref

LOCK_TIMEOUT_S = 5.0
"""How long a fork waits for other threads; what they still hold is not closed in the child."""


class ForkAware(Protocol):
    """An object with locks or connections that a child cannot share."""

    def locks(self) -> Iterable[Any]:
        """Return the locks that together exclude all work."""
        ...

    def leave_in_child(self, held: Container[Any]) -> None:
        """Abandon what was inherited; locks not in `held` were in use by other threads."""
        ...


def reopen_in_children(owner: ForkAware) -> None:
    """Let `owner` start over in every process that is forked from this one.

    The newest owner is locked first: threads lock what uses a database before the database.
    """
    _owners.append(ref(owner, _owners.remove))


class _Held(local):
    def __init__(self) -> None:
        self.locks: list[Any] = []


_owners: list[ref[ForkAware]] = []
_held = _Held()


def _before() -> None:
    deadline = monotonic() + LOCK_TIMEOUT_S
    for owner in _list_owners():
        for lock in owner.locks():
            # Owners share some locks, and an acquired one would keep this thread waiting.
            if lock not in _held.locks and lock.acquire(timeout=max(0.0, deadline - monotonic())):
                _held.locks.append(lock)


def _release() -> list[Any]:
    held, _held.locks = _held.locks, []
    for lock in reversed(held):
        lock.release()
    return held


def _after_in_child() -> None:
    held = _release()
    for owner in _list_owners():
        owner.leave_in_child(held)


def _list_owners() -> list[ForkAware]:
    return [owner for known in reversed(_owners) if (owner := known()) is not None]


def count_cores() -> int:
    """Return how many processes may run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
