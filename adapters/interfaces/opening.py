"""Opens a store together with all the layers that it needs."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.sessions.session_store import SessionStore, open_store
from ..storage.event_log.event_store import get_utc_now

if TYPE_CHECKING:
    from ..settings.settings import Settings


def open(
    path: str | Path,
    *,
    synchronous: str = "FULL",
    compress: bool = False,
    settings: "Settings | str | Path | None" = None,
    clock: Callable[[], datetime] = get_utc_now,
) -> SessionStore:
    """Open the database at `path`, or create it.

    `path` is a file, which stays the same one if the current folder changes; `:memory:` keeps all
    in this process; `postgresql://...` or `host=... dbname=...` is a server's database, in which
    the schema `cutbank`, or the one that `?schema=` names, is created. `synchronous="NORMAL"` is
    faster, but a power cut may lose the last commits; FULL, the default, loses none. `compress`
    stores new data as Zstandard. An older database is migrated, a newer one refused. `settings` are
    a file or a value; by default they are read as `cutbank settings` describes, when the first
    compaction needs them. Raises StorageError, in one line, if the database cannot be opened.
    """
    store = open_store(
        path, synchronous=synchronous, compress=compress, settings=settings, clock=clock
    )
    store.context.start_shadows = _start_shadows
    return store


def _start_shadows(*args: Any) -> Any:
    from ..analysis.replaying.shadows import start_shadows  # noqa: PLC0415 - start-up time

    return start_shadows(*args)
