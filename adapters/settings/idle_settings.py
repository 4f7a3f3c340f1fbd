"""Defines what workers do: compact sessions at rest, keep the storage in order, make backups."""

import re
from datetime import time as time_of_day
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import field_validator

from ...domain.idle_rules import IdleRules, QuietHours
from .section import VALUE_PLACEHOLDER, Section, TextTuple, find_nearest, section_setting

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: +(\S+))?")


class IdleSettings(Section):
    """When sessions at rest are compacted, and what it may cost."""

    time: float = section_setting(
        300.0, "after the last append, before a session is idle", unit="seconds", least=0
    )
    least_utilization: float = section_setting(
        0.5, "views that fill less are left as they are", unit="of the limit", least=0, most=1
    )
    serve: Literal["now", "at-threshold"] = section_setting(
        "now", "serve a compaction at once, or prepare it until the policy fires"
    )
    concurrency: int = section_setting(
        2, "compacted at once by one worker", unit="sessions", least=1, most=64
    )
    spend_per_hour: float | None = section_setting(
        1.0, "by all workers together, in any 60 minutes", unit="dollars", least=0
    )
    spend_per_session: float | None = section_setting(
        None, "then its summaries are written by extractive", unit="dollars", least=0
    )
    attempts: int = section_setting(
        3, "in a row, until the session has new activity", unit="attempts", least=1, most=100
    )
    backoff: float = section_setting(
        60.0, "the wait after a failed attempt; twice as long each time", unit="seconds", least=0
    )
    quiet_hours: str | None = section_setting(
        None, "when no work is begun: 08:00-20:00, or 08:00-20:00 Europe/Berlin; else in UTC"
    )
    namespaces: TextTuple = section_setting((), "the namespaces to compact; an empty list is all")
    lease: float | None = section_setting(
        None,
        "others keep off a session that was begun; none is as long as summaries may take",
        unit="seconds",
        least=0.1,
    )

    @field_validator("quiet_hours")
    @classmethod
    def _check_quiet_hours(cls, hours: str | None) -> str | None:
        if hours is None:
            return None
        if not (found := _HOURS.fullmatch(hours.strip())):
            raise ValueError(f"{VALUE_PLACEHOLDER}; it takes hours as 22:00-06:30 Europe/Berlin")
        if found[1] + found[2] == found[3] + found[4]:
            raise ValueError(
                f"{VALUE_PLACEHOLDER}, which never ends: no work would be begun at all"
            )
        if found[5] and found[5] not in available_timezones():
            near = find_nearest(found[5], available_timezones())
            meant = f"; did you mean {near}?" if near else ", as Europe/Berlin is one"
            raise ValueError(f"{VALUE_PLACEHOLDER}, whose zone is not a time zone{meant}")
        return hours

    def parse_quiet_hours(self) -> QuietHours | None:
        found = _HOURS.fullmatch((self.quiet_hours or "").strip())
        if found is None:
            return None
        begins = time_of_day(int(found[1]), int(found[2]))
        ends = time_of_day(int(found[3]), int(found[4]))
        return QuietHours(begins, ends, ZoneInfo(found[5] or "UTC"))

    def make_rules(self) -> IdleRules:
        return IdleRules(
            idle_time_s=self.time,
            least_utilization=self.least_utilization,
            concurrency=self.concurrency,
            hourly_usd=self.spend_per_hour,
            session_usd=self.spend_per_session,
            attempts=self.attempts,
            backoff_s=self.backoff,
            quiet_hours=self.parse_quiet_hours(),
            namespaces=self.namespaces,
            lease_s=self.lease,
            activate=self.serve == "now",
        )


class MaintenanceSettings(Section):
    """What a worker does for the storage in idle hours."""

    enabled: bool = section_setting(True, "keep the storage in order where a worker runs")
    every: float = section_setting(
        24.0, "how often bodies and tables are looked after", unit="hours", least=0.1
    )
    rest: float = section_setting(
        60.0,
        "how long the log must be unchanged before a maintenance job runs",
        unit="seconds",
        least=0,
    )
    cold_after: float | None = section_setting(
        7.0, "when content is recompressed; none is never", unit="days", least=0
    )
    level: int = section_setting(
        9, "how hard content is recompressed", unit="levels of Zstandard", least=1, most=19
    )
    checkpoint_every: float = section_setting(
        1.0, "how often a write-ahead log is cut off", unit="hours", least=0.1
    )
    backup_folder: str | None = section_setting(
        None, "the folder for backups, which must exist; none makes no backups"
    )
    backup_every: float = section_setting(24.0, "how often one is made", unit="hours", least=0.1)
    backup_keep: int = section_setting(7, "how many are kept, the newest", unit="backups", least=1)
