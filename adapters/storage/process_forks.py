"""Lets what is open go on in a forked child, which is handed everything but the other threads.

A lock that another thread held stays locked there for ever, and SQLite believes that it holds its
parent's locks on files. So nothing is under way at the moment of the fork, and the child leaves
all that it was handed and opens it again when it is asked for.
"""

import os
from collections.abc import Container, Iterable
from threading import local
from time import monotonic
from typing import Any, Protocol
from weakref import WeakSet

RANKS = 3
_LOCK_TIMEOUT_S = 5.0
"""How long a fork waits for other threads. What they still hold then is not closed in the child."""


class ForkAware(Protocol):
    """Something with locks or connections that a child cannot share."""

    @property
    def FORK_RANK(self) -> int:  # noqa: N802 - a constant of each class
        """Whose locks are taken first: in the order in which threads take them."""
        ...

    def locks(self) -> Iterable[Any]:
        """What has to be held for nothing to be under way."""
        ...

    def leave_in_child(self, held: Container[Any]) -> None:
        """Let go of what was inherited; what is not in `held` another thread was using."""
        ...


def reopen_in_children(owner: ForkAware) -> None:
    """Have `owner` begin again in every process that is forked from this one."""
    _owners.add(owner)


class _Held(local):
    def __init__(self) -> None:
        self.locks: list[Any] = []


_owners: WeakSet[ForkAware] = WeakSet()
_held = _Held()


def _before() -> None:
    deadline = monotonic() + _LOCK_TIMEOUT_S
    for rank in range(RANKS):
        # Asked anew for each: a thread that was waited for may have opened more.
        for owner in [owner for owner in list(_owners) if rank == owner.FORK_RANK]:
            for lock in owner.locks():
                if lock.acquire(timeout=max(0.0, deadline - monotonic())):
                    _held.locks.append(lock)


def _release() -> list[Any]:
    held, _held.locks = _held.locks, []
    for lock in reversed(held):
        lock.release()
    return held


def _after_in_parent() -> None:
    _release()


def _after_in_child() -> None:
    held = _release()
    for owner in list(_owners):
        owner.leave_in_child(held)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
