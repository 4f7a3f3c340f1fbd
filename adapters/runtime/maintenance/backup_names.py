"""Names the backups of a rotation, and picks those that are too many."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

UNFINISHED = ".unfinished"
"""The ending of an unfinished backup."""
_FILE_SUFFIXES = ("", "-journal", "-wal", "-shm")
"""The endings of the files that SQLite writes next to a database."""
_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class BackupNames:
    """The names of one log's backups, such as `sessions-1f2e3d4c-20260101T000000Z.db`.

    The letters in the middle identify the log, so that logs may share a folder.
    """

    log: str
    mark: str

    def make_name(self, moment: datetime) -> str:
        return f"{self.log}-{self.mark}-{moment.astimezone(UTC).strftime(_MOMENT)}.db"

    def parse_moment(self, name: str) -> datetime | None:
        found = self._make_pattern(r"\.db").fullmatch(name)
        if not found:
            return None
        try:
            moment = datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC)
        except ValueError:
            return None
        return moment if self.make_name(moment) == name else None

    def is_unfinished(self, name: str) -> bool:
        endings = "|".join(_FILE_SUFFIXES)
        return bool(
            self._make_pattern(rf"\.db{re.escape(UNFINISHED)}(?:{endings})").fullmatch(name)
        )

    def list_superfluous(self, names: Iterable[str], newest: str, keep: int) -> list[str]:
        """Return the oldest backups beyond `keep`; never `newest`, nor files with other names.

        `newest` was just made, even if a clock that was set back says otherwise.
        """
        found = {name: moment for name in names if (moment := self.parse_moment(name))}
        found.pop(newest, None)
        by_age = sorted(found, key=lambda name: found[name], reverse=True)
        return by_age[max(0, keep - 1) :]

    def _make_pattern(self, ending: str) -> re.Pattern[str]:
        return re.compile(
            rf"{re.escape(self.log)}-{self.mark}-(\d{{8}}T\d{{6}}Z){ending}", re.ASCII
        )
