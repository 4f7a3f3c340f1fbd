"""Tells systemd, where it asked to be told, that the worker is ready, lives, or stops."""

import os
import socket
from contextlib import suppress


def notify_service_manager(*said: str) -> None:
    """`READY=1`, `WATCHDOG=1`, `STOPPING=1`, `STATUS=...`: see sd_notify(3).

    Nothing is done where no service manager listens; one that went away is not our trouble.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with `@` is in no folder.
    name = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto("\n".join(said).encode(), name)
