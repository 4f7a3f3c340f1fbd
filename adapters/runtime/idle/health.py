"""A file that says how a worker does, and that is left to grow old where the worker is stuck."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from ....domain.errors import StorageError
from ...storage.private_files import make_file, open_new
from .service_manager import notify_service_manager

BEAT_INTERVAL_S = 2.0
"""Between two looks at how the worker does, by a clock that nobody sets."""
STUCK_AFTER_S = 120.0
"""A worker that has neither looked nor read anything of the log for so long is stuck."""


class HealthFile:
    """The file itself: there while somebody works, and always whole."""

    def __init__(self, path: Path) -> None:
        """Raises StorageError, in one line, where it cannot be written."""
        self.path = path
        self._next = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            make_file(self._next)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error.strerror}): name another health file"
            ) from None

    def write(self, document: dict[str, Any]) -> None:
        """Replace what it said before; a disk that is full makes it grow old."""
        with suppress(OSError):
            self._next.unlink(missing_ok=True)
            with open_new(self._next) as file:
                file.write(json.dumps(document).encode() + b"\n")
            self._next.replace(self.path)

    def remove(self) -> None:
        """Whoever ends in good order leaves none."""
        for path in (self._next, self.path):
            with suppress(OSError):
                path.unlink(missing_ok=True)


class StallTimer:
    """Tells work that goes on, however slowly, from work that is stuck."""

    def __init__(
        self, progress: Callable[[], object], clock: Callable[[], float] = monotonic
    ) -> None:
        self._progress = progress
        self._clock = clock
        self._seen: object = None
        self._since = clock()

    def measure_stall(self) -> float:
        """Seconds since it was last seen to move."""
        try:
            seen = self._progress()
        except StorageError:
            seen = self._seen  # what cannot be asked has not moved
        if seen != self._seen:
            self._seen, self._since = seen, self._clock()
        return self._clock() - self._since


class Health:
    """Says that a worker lives, to the file and to the service manager, as long as it does."""

    def __init__(
        self, file: HealthFile | None, known: dict[str, Any], stillness: StallTimer
    ) -> None:
        self.file = file
        self.known = {"pid": os.getpid(), **known, "started_at": _now()}
        self.stillness = stillness

    def beat(self, told: dict[str, Any]) -> bool:
        """Say how it is; whether the worker is well. One that is stuck says nothing."""
        still = self.stillness.measure_stall()
        if still > STUCK_AFTER_S:
            return False
        if self.file is not None:
            self.file.write({**self.known, "at": _now(), "still_s": round(still, 1), **told})
        notify_service_manager("WATCHDOG=1")
        return True

    def end(self) -> None:
        if self.file is not None:
            self.file.remove()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
