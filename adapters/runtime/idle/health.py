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


class HealthFile:
    """The health file, which exists while its worker runs and is replaced atomically."""

    def __init__(self, path: Path) -> None:
        """Raises StorageError if the file cannot be written."""
        self.path = path
        self._next = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            make_file(self._next)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error.strerror}): name another health file"
            ) from None

    def write(self, document: dict[str, Any]) -> None:
        """Replace the content; on a full disk the old file stays."""
        with suppress(OSError):
            self._next.unlink(missing_ok=True)
            with open_new(self._next) as file:
                file.write(json.dumps(document).encode() + b"\n")
            self._next.replace(self.path)

    def remove(self) -> None:
        """Remove the file, as a worker does on a normal end."""
        for path in (self._next, self.path):
            with suppress(OSError):
                path.unlink(missing_ok=True)


class Health:
    """Reports the state of a worker as long as it makes progress, which may be slow."""

    def __init__(
        self,
        file: HealthFile | None,
        known: dict[str, Any],
        progress: Callable[[], object],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`progress` returns another value after each progress."""
        self.file = file
        self.known = {"pid": os.getpid(), **known, "started_at": _format_now()}
        self._progress = progress
        self._clock = clock
        self._seen: object = None
        self._since = clock()

    def beat(self, state: dict[str, Any]) -> bool:
        """Report the state unless the worker is stuck; return whether it is well."""
        still = self._measure_stall()
        if still > STUCK_AFTER_S:
            return False
        if self.file is not None:
            document = {**self.known, "at": _format_now(), "still_s": round(still, 1), **state}
            self.file.write(document)
        notify_service_manager("WATCHDOG=1")
        return True

    def end(self) -> None:
        if self.file is not None:
            self.file.remove()

    def _measure_stall(self) -> float:
        """Return the seconds since progress was last seen."""
        with suppress(StorageError):  # no answer means no progress
            seen = self._progress()
            if seen != self._seen:
                self._seen, self._since = seen, self._clock()
        return self._clock() - self._since


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
