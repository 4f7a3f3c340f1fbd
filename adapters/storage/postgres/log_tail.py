"""How far the log is settled: up to there, no id will ever appear that is not there now.

Appends take no lock that keeps other appends out, so they commit in another order than that in
which they drew their ids: a reader may see 7 while 6 is yet to be committed, and would never look
back. So what a reader is given ends before the first missing id, until nobody is left who could
fill it.

Who could? A transaction that draws an id holds a ROW EXCLUSIVE lock on the table from before it
draws until after its end, and `pg_locks` shows who does. So:

1. In one statement, id H is seen. Whoever holds an id below H drew it before H was drawn, for the
   sequence only grows; H was drawn before H was committed, and committed before it was seen.
2. Then the lock's holders are read. Each transaction that holds an id below H took the lock before
   that, so it is among these holders, or it has ended.
3. When, later, none of these holders has the lock any more, all of them have ended, and what they
   committed is visible to every statement that begins from then on. So the ids up to H that such a
   statement does not see will never be seen: they belong to transactions that were undone.

Other programs' long transactions do not delay this, as they would if the oldest running
transaction (`xmin`) were waited for. And the newest transaction that a snapshot knows (`xmax`)
would not do for a bound: it is one past the newest that has *ended*, and a running one with a
higher number may hold a lower id.

An undone transaction costs one look at the locks; without missing ids there is none.
"""

from threading import Lock

from eventsourcing.persistence import NotSupportedError

from .postgres_datastore import PostgresLogDatastore

_MAX_IDS_AHEAD = 1_000
"""How many ids are checked one by one; where more are new, it is cheaper to ask for the holders."""

_NEWEST_QUERY = (
    "SELECT coalesce(max(notification_id) FILTER (WHERE notification_id = %s + number), 0),"
    " (SELECT coalesce(max(notification_id), 0) FROM stored_events)"
    " FROM (SELECT notification_id, row_number() OVER (ORDER BY notification_id) AS number"
    " FROM stored_events WHERE notification_id > %s ORDER BY notification_id LIMIT %s) AS new"
)
HOLDERS_QUERY = (
    "SELECT pg_is_in_recovery(), virtualtransaction, pid IS NULL FROM pg_locks"
    " RIGHT JOIN (VALUES (1)) AS always ON locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = 'stored_events'::regclass"
)


class LogTail:
    """What one process knows of the log's end; shared by all who follow it."""

    def __init__(self, datastore: PostgresLogDatastore) -> None:
        self.datastore = datastore
        self.known = 0
        """Up to here the log is settled; whoever reads no further need not ask."""
        self._asking = Lock()
        self._seen = 0
        self._waiting_for: frozenset[str] = frozenset()

    @property
    def is_waiting(self) -> bool:
        """Whether transactions have to end before more can be read."""
        return bool(self._waiting_for)

    def find_settled(self) -> int:
        """The id up to which the log is settled now; never less than before."""
        with self._asking:
            if self._waiting_for and not self._waiting_for & self._find_holders():
                self._advance_to(self._seen)
            without_gaps, newest = self.datastore.read(
                _NEWEST_QUERY, (self.known, self.known, _MAX_IDS_AHEAD)
            )[0]
            self.known = max(self.known, without_gaps)
            if newest > self.known and not self._waiting_for:
                self._seen = newest
                self._waiting_for = self._find_holders()
                if not self._waiting_for:
                    self._advance_to(newest)
            return self.known

    def _advance_to(self, upto: int) -> None:
        self._waiting_for = frozenset()
        self.known = max(self.known, upto)

    def _find_holders(self) -> frozenset[str]:
        """The running transactions that may have drawn an id, or may do so."""
        found = self.datastore.read(HOLDERS_QUERY)
        if found[0][0]:
            raise NotSupportedError(
                "a standby does not know who is writing: follow the log on the primary"
            )
        # A prepared transaction has no process, and another name than it had while it ran.
        return frozenset(
            "prepared" if prepared else holder for _, holder, prepared in found if holder
        )
