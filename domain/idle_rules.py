"""Decides when idle work may run, and how much: pure rules of time, concurrency and money."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from .errors import InvalidSettingError

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A part of each day, in the local time of one zone, in which no work begins."""

    begins: time
    ends: time
    """If it is before `begins`, it belongs to the next day."""
    zone: tzinfo

    def __post_init__(self) -> None:
        # A local time is not an instant: an hour that occurs twice is meant both times.
        object.__setattr__(self, "begins", self.begins.replace(fold=0))
        object.__setattr__(self, "ends", self.ends.replace(fold=0))
        day = datetime.min  # noqa: DTZ901 - only times of one day are compared
        awake = (datetime.combine(day, self.begins) - datetime.combine(day, self.ends)) % _DAY
        if timedelta() < awake < _MINUTE:
            raise InvalidSettingError(
                f"quiet hours from {self.begins} to {self.ends} leave less than a minute of the "
                "day: end them earlier, or begin them later"
            )

    def is_quiet(self, at: datetime) -> bool:
        wall = at.astimezone(self.zone).time()
        if self.begins <= self.ends:
            return self.begins <= wall < self.ends
        return wall >= self.begins or wall < self.ends

    def find_end(self, at: datetime) -> datetime:
        """Return when the quiet hours that include `at` end, in UTC.

        On a day with a clock change, an hour that occurs twice is quiet twice, and a skipped hour
        is not waited for.
        """
        after = at.astimezone(UTC)
        # By the minute, since a clock may be changed in between; then to the exact instant.
        while self.is_quiet(until := after + _MINUTE):
            after = until
        while until - after > datetime.resolution:
            middle = after + (until - after) / 2
            after, until = (middle, until) if self.is_quiet(middle) else (after, middle)
        return until


@dataclass(frozen=True, slots=True)
class IdleRules:
    idle_time_s: float = 300.0
    """How long a session must have no new events to count as idle."""
    least_utilization: float = 0.5
    """Share of the model's context; a view that fills less of it is left alone."""
    concurrency: int = 2
    """Sessions that one worker compacts at the same time."""
    hourly_usd: float | None = 1.0
    """What all workers together may spend on summaries in any 60 minutes; None is no limit."""
    session_usd: float | None = None
    """What idle work may ever spend on one session; after that, rules write its summaries."""
    attempts: int = 3
    """How often in a row a session is tried until it has new blocks."""
    backoff_s: float = 60.0
    """The pause after the first failed attempt; it doubles with each further one."""
    quiet_hours: QuietHours | None = None
    namespaces: tuple[str, ...] = ()
    """The namespaces whose sessions are compacted; empty means all."""
    lease_s: float | None = None
    """How long one worker reserves a session; None is as long as the summary may take."""
    activate: bool = True
    """Whether to serve the compacted view immediately; otherwise it is prepared for the threshold.
    """

    def find_resume_time(self, now: datetime) -> datetime | None:
        """Return when work may begin again; None if it may begin now."""
        quiet = self.quiet_hours
        return quiet.find_end(now) if quiet is not None and quiet.is_quiet(now) else None

    def is_last(self, attempt: int) -> bool:
        """Check whether no attempt follows; then any available summarizer writes the summary."""
        return attempt >= self.attempts

    def may_spend(self, spent_on_session: float) -> bool:
        """Check whether a summary of the session may cost money."""
        return self.session_usd is None or spent_on_session < self.session_usd


SPEND_WINDOW = timedelta(hours=1)
"""The period that counts against `hourly_usd`."""
