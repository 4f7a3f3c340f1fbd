"""Watches the settings file and reads it again after a change."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from ....domain.errors import InvalidSettingError
from ...settings.listing import list_effective_settings
from ...settings.secret_values import hide_keys
from ...settings.settings import Settings
from ..sessions.session_store import SessionStore

SETTLE_TIME = timedelta(seconds=1)
"""How long a changed file must stay the same, as it may be half written."""

Stamp = tuple[int, ...]
"""A file's state, to detect changes without reading it."""


class SettingsWatch:
    """Watches the file of a store's settings and reads it only after a change.

    Settings that were passed as a value have no file and stay.
    """

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.settings = store.settings
        """The settings in force."""
        place = store.context.settings_file
        # A process that runs for weeks may change its folder.
        self.place = place.absolute() if place is not None else None
        # The file may have changed since the settings were read, so it is read once more.
        self._known: Stamp | None = None
        self._seen: tuple[Stamp, datetime] | None = None
        self._was_refused = False

    def look(self, now: datetime, *, at_once: bool = False) -> Settings | None:
        """Return the new settings if the file has changed, or in any case with `at_once`.

        Raises InvalidSettingError, once for each change, if they are invalid.
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
        """Note that the settings are in force now; return the differences."""
        said = "; ".join(list_changes(self.settings, settings))
        self.settings, self._was_refused = settings, False
        return said or "they are what they were"

    def note_refused(self) -> None:
        """Note that the file's settings were rejected."""
        self._was_refused = True

    def retry(self) -> None:
        """Read the file again next time, because its settings could not be applied."""
        self._known = None

    def find_retry_time(self) -> datetime | None:
        """Return when a change that was seen may be read; None if there is none."""
        return self._seen[1] + SETTLE_TIME if self._seen is not None else None

    def _is_settled(self, stamp: Stamp, now: datetime) -> bool:
        """Return whether the file has settled, or is looked at for the first time."""
        if self._known is None:
            return True
        # After the clock was set back, wait again.
        if self._seen is None or self._seen[0] != stamp or now < self._seen[1]:
            self._seen = stamp, now
        return now - self._seen[1] >= SETTLE_TIME


def list_changes(before: Settings, after: Settings) -> list[str]:
    """Return each changed setting with its old and new value, without secrets."""
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
    # Include the change time, since copying programs may restore the modification time.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _format_value(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
