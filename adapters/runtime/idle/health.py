"""Reports that a worker is alive, to its health file and to systemd, unless it is stuck."""

import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from ....domain.errors import StorageError
from ...storage.private_files import make_file, open_new

BEAT_INTERVAL_S = 2.0
"""How often the worker's health is checked, on the monotonic clock."""
STUCK_AFTER_S = 120.0
"""How long without progress before a worker counts as stuck."""


class Health:
    """Reports the state of a worker as long as it makes progress, which may be slow.

    The health file exists while its worker runs, and is replaced atomically.
    """

    def __init__(
        self, path: Path | None, database: str, clock: Callable[[], float] = monotonic
    ) -> None:
        """Raises StorageError if the file cannot be written."""
        self.path = path
        self._known = {"pid": os.getpid(), "database": database, "started_at": _format_now()}
        self._clock = clock
        self._seen: object = None
        self._since = clock()
        if path is not None:
            self._next = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                make_file(self._next)
            except OSError as error:
                raise StorageError(
                    f"{path} cannot be written ({error.strerror}): name another health file"
                ) from None

    def beat(self, progress: object, state: dict[str, Any]) -> bool:
        """Report the state unless the worker is stuck; return whether it is well.

        `progress` is another value after each progress.
        """
        now = self._clock()
        if progress != self._seen:
            self._seen, self._since = progress, now
        still = now - self._since
        if still > STUCK_AFTER_S:
            return False
        if self.path is not None:
            document = {**self._known, "at": _format_now(), "still_s": round(still, 1), **state}
            with suppress(OSError):  # on a full disk the old file stays
                self._next.unlink(missing_ok=True)
                with open_new(self._next) as file:
                    file.write(json.dumps(document).encode() + b"\n")
                self._next.replace(self.path)
        notify_service_manager("WATCHDOG=1")
        return True

    def end(self) -> None:
        """Remove the file, as a worker does on a normal end."""
        for path in (self._next, self.path) if self.path else ():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def notify_service_manager(message: str) -> None:
    """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1` to systemd, if it listens: see sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # `@` marks an abstract socket, whose name begins with a null byte.
    name = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto(message.encode(), name)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
