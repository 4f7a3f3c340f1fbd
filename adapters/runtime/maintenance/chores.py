"""Does what is due for the storage, while nobody writes, one process of all at a time."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic

from ....domain.errors import CutbankError
from ...settings.chore_settings import ChoreSettings
from ...storage.event_log.plain_errors import speaking_plainly
from ..sessions.session_store import SessionStore
from .catalog import chores_of
from .chore import Chore, GoOn, Work
from .chore_record import ChoreOutcome, ChoreRecord, ChoreReport, ChoreStatus
from .writers import Writers

AT_ONCE = datetime.min.replace(tzinfo=UTC)
"""When a chore is due that was never done: whoever asks, that is past."""
SOMEBODY_ELSE = timedelta(minutes=1)
"""When to look again for a chore that another process is at, or that was stopped."""
FIRST_BACKOFF = timedelta(minutes=15)
LONGEST_BACKOFF = timedelta(hours=6)


class Chores:
    """The chores of one store; any number of processes may have them.

    When each was done is written down where all of them see it. What is lost of that is done again,
    and does no harm.
    """

    def __init__(
        self, store: SessionStore, settings: ChoreSettings, clock: Callable[[], datetime]
    ) -> None:
        self.store = store
        self.clock = clock
        self.go_by(settings)
        self._not_before: dict[str, datetime] = {}
        """What was put off here; another process decides for itself."""
        self._waiting_since: dict[str, datetime] = {}

    def go_by(self, settings: ChoreSettings) -> None:
        """Go by these settings from the next run on."""
        self.settings = settings
        self._writers = Writers(self.store.events, timedelta(seconds=settings.rest))
        self._patience = timedelta(hours=settings.patience)

    def next_at(self) -> datetime | None:
        """When the earliest is due, which may be past; None where there are none.

        Raises StorageError where the database cannot be asked.
        """
        now = self.clock()
        due = (self._due_at(chore, self._record(chore), now) for chore in self._chores())
        return min(due, default=None)

    def run_due(self, now: datetime, go_on: GoOn = lambda: True) -> list[ChoreReport]:
        """Do what is due; what failed is reported, and tried again later.

        `go_on` is asked between any two steps whether there is nothing better to do. What somebody
        else is at, or has done meanwhile, is not reported. Raises StorageError where the database
        cannot be asked what is due.
        """
        reports = []
        for chore in self._chores():
            if not go_on():
                break
            record = self._record(chore)
            if self._usually_due(chore, record, now) > now:
                self._waiting_since.pop(chore.name, None)  # somebody else has done it
            elif self._due_at(chore, record, now) > now:
                pass  # it was put off
            elif report := self._run(chore, now, go_on):
                reports.append(report)
        return reports

    def status(self) -> list[ChoreStatus]:
        """Each chore, when it was last done, and when it is due."""
        now = self.clock()
        return [self._status(chore, self._record(chore), now) for chore in self._chores()]

    def _status(self, chore: Chore, record: ChoreRecord, now: datetime) -> ChoreStatus:
        due = self._due_at(chore, record, now)
        return ChoreStatus(
            chore=chore.name,
            last_run=record.began_at,
            outcome=record.outcome,
            reason=record.reason,
            saved=record.saved,
            saved_in_all=record.saved_in_all,
            failures=record.failures,
            next_at=None if due == AT_ONCE else due,
        )

    def _chores(self) -> list[Chore]:
        with speaking_plainly(self.store.name):
            return chores_of(self.store, self.settings)

    def _record(self, chore: Chore) -> ChoreRecord:
        with speaking_plainly(self.store.name):
            return ChoreRecord.of(chore.place.records().get(chore.name))

    # When

    def _due_at(self, chore: Chore, record: ChoreRecord, now: datetime) -> datetime:
        due = self._usually_due(chore, record, now)
        return max(due, self._not_before.get(chore.name, due))

    def _usually_due(self, chore: Chore, record: ChoreRecord, now: datetime) -> datetime:
        if record.began_at is None or record.ended_at is None:
            return AT_ONCE
        match record.outcome:
            case ChoreOutcome.FAILED:
                wait = min(FIRST_BACKOFF * 2 ** min(record.failures - 1, 10), LONGEST_BACKOFF)
                due = record.ended_at + min(wait, chore.every)
            case ChoreOutcome.STOPPED:
                due = record.ended_at
            case _:
                due = record.began_at + chore.every
        # Another machine's clock may be ahead; one that is ahead by more than that was wrong.
        return due if due <= now + 2 * chore.every else AT_ONCE

    # What

    def _run(self, chore: Chore, now: datetime, go_on: GoOn) -> ChoreReport | None:
        """None where it is put off, or somebody else's."""
        since = self._waiting_since.setdefault(chore.name, now)
        waits = now - since < self._patience
        if waits and (rested := self._writers.resting_at(now)) > now:
            self._not_before[chore.name] = rested
            return None
        began = monotonic()
        try:
            with speaking_plainly(self.store.name), chore.place.alone() as is_alone:
                record = self._record(chore)  # somebody may have done it just now
                if not is_alone or self._usually_due(chore, record, now) > now:
                    self._not_before[chore.name] = now + SOMEBODY_ELSE
                    return None
                work = chore.run(record, self._while_nobody_writes(go_on) if waits else go_on)
                done = self._after(record, work, now)
                chore.place.keep(chore.name, done.text())
        except Exception as error:  # noqa: BLE001 - whatever it was, the other chores are to be done
            done = self._failed(chore, error, now)
        self._not_before.pop(chore.name, None)
        if done.outcome is not ChoreOutcome.STOPPED:
            self._waiting_since.pop(chore.name)
        match done.outcome:
            case ChoreOutcome.STOPPED:
                self._not_before[chore.name] = now + SOMEBODY_ELSE
            case ChoreOutcome.FAILED:
                # It may not have been possible to write that down.
                self._not_before[chore.name] = self._usually_due(chore, done, now)
        return ChoreReport(
            chore=chore.name,
            outcome=done.outcome or ChoreOutcome.DONE,
            began_at=now,
            took_s=monotonic() - began,
            saved=done.saved,
            reason=done.reason,
            next_at=self._due_at(chore, done, now),
        )

    def _while_nobody_writes(self, go_on: GoOn) -> GoOn:
        newest = self._writers.newest()
        return lambda: go_on() and self._writers.newest() == newest

    def _after(self, record: ChoreRecord, work: Work, now: datetime) -> ChoreRecord:
        return ChoreRecord(
            began_at=now,
            ended_at=self.clock(),
            outcome=ChoreOutcome.DONE if work.is_whole else ChoreOutcome.STOPPED,
            reason=work.note if work.is_whole else "stopped for something better; it goes on later",
            saved=work.saved,
            saved_in_all=record.saved_in_all + work.saved,
            position=work.position or record.position,
        )

    def _failed(self, chore: Chore, error: Exception, now: datetime) -> ChoreRecord:
        """What is written down of a failure, if anything can be."""
        reason = str(error) if isinstance(error, CutbankError) else repr(error)
        failed = ChoreRecord(began_at=now, ended_at=self.clock(), failures=1)
        # Where the database itself is what failed, this process remembers it alone.
        with suppress(CutbankError):
            known = self._record(chore)
            failed = replace(known, began_at=now, ended_at=self.clock())
            failed = replace(failed, failures=known.failures + 1)
        failed = replace(
            failed, outcome=ChoreOutcome.FAILED, reason=" ".join(reason.split()), saved=0
        )
        with suppress(CutbankError), speaking_plainly(self.store.name):
            chore.place.keep(chore.name, failed.text())
        return failed
