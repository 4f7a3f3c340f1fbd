"""How backups of a rotation are called, and which of them are too many."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

UNFINISHED = ".unfinished"
"""The ending of a backup that is being made."""
_BESIDE = ("", "-journal", "-wal", "-shm")
"""What SQLite keeps beside a file that is written."""
_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class BackupNames:
    """The names of one log's backups: `sessions-1f2e3d4c-20260101T000000Z.db`.

    The letters in the middle stand for this very log, so that logs may share a folder.
    """

    log: str
    mark: str

    def at(self, moment: datetime) -> str:
        return f"{self.log}-{self.mark}-{moment.astimezone(UTC).strftime(_MOMENT)}.db"

    def moment(self, name: str) -> datetime | None:
        """When a backup of that name was made; None of any other name."""
        found = self._pattern(r"\.db").fullmatch(name)
        if not found:
            return None
        try:
            moment = datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC)
        except ValueError:
            return None
        return moment if self.at(moment) == name else None

    def is_unfinished(self, name: str) -> bool:
        """Whether a backup was begun under that name that nobody finished."""
        endings = "|".join(_BESIDE)
        return bool(self._pattern(rf"\.db{re.escape(UNFINISHED)}(?:{endings})").fullmatch(name))

    def superfluous(self, names: Iterable[str], newest: str, keep: int) -> list[str]:
        """What may go so that `keep` are left: never `newest`, nor what has another name.

        `newest` is the one that was just made; a clock that was set back may say otherwise.
        """
        found = {name: moment for name in names if (moment := self.moment(name))}
        found.pop(newest, None)
        by_age = sorted(found, key=lambda name: found[name], reverse=True)
        return by_age[max(0, keep - 1) :]

    def _pattern(self, ending: str) -> re.Pattern[str]:
        return re.compile(
            rf"{re.escape(self.log)}-{self.mark}-(\d{{8}}T\d{{6}}Z){ending}", re.ASCII
        )
