"""Sees every address that this process speaks to, whichever library does it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

_watchers: list[list[str]] = []
_CALLS = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getaddrinfo": 0}
"""What is told before it happens, and which argument says to where."""


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _watchers and event in _CALLS:
        to = arguments[_CALLS[event]]
        host = to[0] if isinstance(to, tuple) else to
        if host is not None and not _is_here(host):
            _watchers[-1].append(f"{event} {host}")


def _is_here(host: str | bytes) -> bool:
    """Whether an address is this very machine; a path is a socket in its file system."""
    name = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
    if name == "localhost" or name.startswith(("/", "\0")):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


sys.addaudithook(_heard)


@contextmanager
def elsewhere() -> Iterator[list[str]]:
    """The addresses beyond the loopback interface that were tried meanwhile.

    Where one of these is within another, the inner one alone is told.
    """
    seen: list[str] = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)
