"""Notifies systemd that the worker is ready, alive or stopping."""

import os
import socket
from contextlib import suppress


def notify_service_manager(*said: str) -> None:
    """Send `READY=1`, `WATCHDOG=1`, `STOPPING=1` or `STATUS=...`: see sd_notify(3).

    Does nothing if no service manager listens; errors are ignored.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # `@` marks an abstract socket, whose name begins with a null byte.
    name = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto("\n".join(said).encode(), name)
