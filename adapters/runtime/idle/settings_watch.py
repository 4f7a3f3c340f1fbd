"""Sees that the file that settings came from was changed, and reads it again."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from ....domain.errors import InvalidSettingError
from ...settings.listing import list_effective_settings
from ...settings.secret_values import hide_keys
from ...settings.settings import Settings
from ..sessions.session_store import SessionStore

SETTLE_TIME = timedelta(seconds=1)
"""A file that was just changed may be half written: so long it has to stay as it is."""

Stamp = tuple[int, ...]
"""What tells one state of a file from another, without reading it."""


class SettingsWatch:
    """Looks at the file of a store's settings; reads it only where it is another one than before.

    Settings that were given as a value have no file, and stay.
    """

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.settings = store.settings
        """What was taken last."""
        place = store.context.settings_file
        # Whoever runs for weeks may change its folder.
        self.place = place.absolute() if place is not None else None
        # What the settings were read from may have been changed since, so it is read once more.
        self._known: Stamp | None = None
        self._seen: tuple[Stamp, datetime] | None = None
        self._was_refused = False

    def look(self, now: datetime, *, at_once: bool = False) -> Settings | None:
        """What the file says, where it has changed or somebody wants it read `at_once`.

        Raises InvalidSettingError, once for each change, where it cannot be gone by.
        """
        if self.place is None:
            return None
        stamp = _read_stamp(self.place)
        if stamp == _MISSING_STAMP and self._known in {None, UNSEEN_STAMP}:
            self._known = UNSEEN_STAMP
            return self.settings if at_once else None
        if stamp == self._known and not at_once:
            self._seen = None
            return None
        if not at_once and not self._is_settled(stamp, now):
            return None
        self._known, self._seen = stamp, None
        if stamp == _MISSING_STAMP:
            raise InvalidSettingError(f"{self.place} is not there any more")
        found = self.store.context.read_settings(self.place)
        is_news = at_once or self._was_refused or found != self.settings
        return found if is_news else None

    def note_applied(self, settings: Settings) -> str:
        """Note that they are gone by from now on; says what is different."""
        said = "; ".join(list_changes(self.settings, settings))
        self.settings, self._was_refused = settings, False
        return said or "they are what they were"

    def note_refused(self) -> None:
        """Note that what the file says cannot be gone by."""
        self._was_refused = True

    def retry(self) -> None:
        """What was read could not be taken: it is read again the next time."""
        self._known = None

    def find_retry_time(self) -> datetime | None:
        """When a change that was seen may be read; None where there is none."""
        return self._seen[1] + SETTLE_TIME if self._seen is not None else None

    def _is_settled(self, stamp: Stamp, now: datetime) -> bool:
        """Whether the file has been as it is for a while, or was never looked at."""
        if self._known is None:
            return True
        # A clock that was put back begins anew.
        if self._seen is None or self._seen[0] != stamp or now < self._seen[1]:
            self._seen = stamp, now
        return now - self._seen[1] >= SETTLE_TIME


def list_changes(before: Settings, after: Settings) -> list[str]:
    """Each setting that is not what it was: old and new, keys left out."""
    old, new = (
        {one.name: one.value for one in list_effective_settings(settings)}
        for settings in (before, after)
    )
    return [
        hide_keys(f"{name}: {_format_value(old.get(name))} -> {_format_value(new.get(name))}")
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


_MISSING_STAMP: Stamp = ()
UNSEEN_STAMP: Stamp = (0,)


def _read_stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except FileNotFoundError:
        return _MISSING_STAMP
    except OSError as error:
        return (error.errno or 0,)
    # The time of the change as well: programs that copy may set that of the content back.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _format_value(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
