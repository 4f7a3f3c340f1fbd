"""When idle work may be done, and how much of it: pure rules of moments, shares and money."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A part of each day, by the clock on the wall of one place, in which no work is begun."""

    begins: time
    ends: time
    """Before `begins` it is of the next day."""
    zone: tzinfo

    def __post_init__(self) -> None:
        # What the wall says is no moment: an hour that comes twice is meant both times.
        object.__setattr__(self, "begins", self.begins.replace(fold=0))
        object.__setattr__(self, "ends", self.ends.replace(fold=0))

    def is_quiet(self, at: datetime) -> bool:
        """Whether it is quiet then."""
        wall = at.astimezone(self.zone).time()
        if self.begins <= self.ends:
            return self.begins <= wall < self.ends
        return wall >= self.begins or wall < self.ends

    def find_end(self, at: datetime) -> datetime:
        """When those that hold at `at` are over, in UTC.

        The day that the clocks change is as long as it is: an hour that comes twice is quiet
        twice, and one that is left out is not waited for.
        """
        over = self._find_end_after(at)
        change = self._find_clock_change(at, over)
        if change is None:
            return over
        # What is quiet is judged anew by the clock as it goes from there on.
        return self.find_end(change) if self.is_quiet(change) else change

    def _find_end_after(self, at: datetime) -> datetime:
        """When the clock on the wall next says `ends`, if it is not changed before."""
        local = at.astimezone(self.zone)
        day = local.date()
        if self.ends <= local.time():
            day += timedelta(days=1)
        ends = datetime.combine(day, self.ends, self.zone)
        while (over := ends.astimezone(UTC)) <= at:
            # In the second run of an hour that comes twice.
            ends = ends.replace(fold=1) if not ends.fold else ends + timedelta(days=1)
        return over

    def _find_clock_change(self, after: datetime, until: datetime) -> datetime | None:
        """When clocks are put forward or back in between; None where they are not."""
        before = self._get_offset(after)
        if before == self._get_offset(until):
            return None
        while until - after > datetime.resolution:
            middle = after + (until - after) / 2
            if self._get_offset(middle) == before:
                after = middle
            else:
                until = middle
        return until.astimezone(UTC)

    def _get_offset(self, at: datetime) -> timedelta | None:
        return at.astimezone(self.zone).utcoffset()


@dataclass(frozen=True, slots=True)
class IdleRules:
    """What an idle worker goes by."""

    idle_time_s: float = 300.0
    """How long nothing was appended to a session before it counts as idle."""
    least_utilization: float = 0.5
    """Of the model's context; a view that fills less of it is left as it is."""
    concurrency: int = 2
    """Sessions that one worker compacts at once."""
    hourly_usd: float | None = 1.0
    """What all workers together may spend on summaries in any 60 minutes; None is any sum."""
    session_usd: float | None = None
    """What idle work may spend on one session, ever; after it summaries are written by rules."""
    attempts: int = 3
    """How often in a row a session is tried, until something new is said in it."""
    backoff_s: float = 60.0
    """The pause after the first failed attempt; each further one is twice as long."""
    quiet_hours: QuietHours | None = None
    namespaces: tuple[str, ...] = ()
    """Whose sessions are compacted; none named is all."""
    lease_s: float | None = None
    """How long others keep away from a session that was begun; None is as long as the summary may
    take."""
    activate: bool = True
    """Whether what is compacted is served at once; else it is prepared for the threshold."""

    def find_resume_time(self, now: datetime) -> datetime | None:
        """When work may be begun again; None where it may be begun now."""
        quiet = self.quiet_hours
        return quiet.find_end(now) if quiet is not None and quiet.is_quiet(now) else None

    def is_last(self, attempt: int) -> bool:
        """Whether no attempt follows it: then whoever can writes the summary."""
        return attempt >= self.attempts

    def may_spend(self, spent_on_session: float) -> bool:
        """Whether a summary of the session may cost money."""
        return self.session_usd is None or spent_on_session < self.session_usd


SPEND_WINDOW = timedelta(hours=1)
"""What is spent in it is held against `hourly_usd`."""
