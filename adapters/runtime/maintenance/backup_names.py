"""How backups of a rotation are called, and which of them are too many."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

UNFINISHED = ".unfinished"
"""The ending of a backup that is being made."""
_FILE_SUFFIXES = ("", "-journal", "-wal", "-shm")
"""What SQLite keeps beside a file that is written."""
_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class BackupNames:
    """The names of one log's backups: `sessions-1f2e3d4c-20260101T000000Z.db`.

    The letters in the middle stand for this very log, so that logs may share a folder.
    """

    log: str
    mark: str

    def make_name(self, moment: datetime) -> str:
        return f"{self.log}-{self.mark}-{moment.astimezone(UTC).strftime(_MOMENT)}.db"

    def parse_moment(self, name: str) -> datetime | None:
        """When a backup of that name was made; None of any other name."""
        found = self._make_pattern(r"\.db").fullmatch(name)
        if not found:
            return None
        try:
            moment = datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC)
        except ValueError:
            return None
        return moment if self.make_name(moment) == name else None

    def is_unfinished(self, name: str) -> bool:
        """Whether a backup was begun under that name that nobody finished."""
        endings = "|".join(_FILE_SUFFIXES)
        return bool(
            self._make_pattern(rf"\.db{re.escape(UNFINISHED)}(?:{endings})").fullmatch(name)
        )

    def list_superfluous(self, names: Iterable[str], newest: str, keep: int) -> list[str]:
        """What may go so that `keep` are left: never `newest`, nor what has another name.

        `newest` is the one that was just made; a clock that was set back may say otherwise.
        """
        found = {name: moment for name in names if (moment := self.parse_moment(name))}
        found.pop(newest, None)
        by_age = sorted(found, key=lambda name: found[name], reverse=True)
        return by_age[max(0, keep - 1) :]

    def _make_pattern(self, ending: str) -> re.Pattern[str]:
        return re.compile(
            rf"{re.escape(self.log)}-{self.mark}-(\d{{8}}T\d{{6}}Z){ending}", re.ASCII
        )
