"""Finds how far the log is settled: up to there, no new id will ever appear.

Appends do not lock each other out, so they may commit in another order than that of their ids: a
reader may see 7 while 6 is uncommitted, and would then miss 6. So a reader gets the log only up to
the first missing id, until no transaction is left that could fill it.

A transaction holds a ROW EXCLUSIVE lock on the table from before it draws an id until after its
end, and `pg_locks` lists the holders. So:

1. One statement sees id H. Any id below H was drawn before H, since the sequence only grows; and H
was drawn before it was committed and seen.
2. Then the lock's holders are read. A transaction with an id below H took its lock earlier, so it
is one of these holders or has ended.
3. Once none of these holders has the lock any more, all of them have ended, and later statements
see all that they committed. Ids up to H that such a statement does not see belong to transactions
that were rolled back.

Long transactions of other programs do not delay this, as they would if it waited for the oldest
running transaction (`xmin`). The newest transaction in a snapshot (`xmax`) is no bound: it is one
past the newest that has *ended*, and a running one with a higher number may hold a lower id.

A rollback costs one query of the locks; without missing ids there is none.
"""

from threading import Lock

from eventsourcing.persistence import NotSupportedError

from .postgres_datastore import PostgresLogDatastore

_MAX_IDS_AHEAD = 1_000
"""How many ids are checked singly; beyond that, querying the holders is cheaper."""

_NEWEST_QUERY = (
    "SELECT coalesce(max(notification_id) FILTER (WHERE notification_id = ? + number), 0),"
    " (SELECT coalesce(max(notification_id), 0) FROM stored_events)"
    " FROM (SELECT notification_id, row_number() OVER (ORDER BY notification_id) AS number"
    " FROM stored_events WHERE notification_id > ? ORDER BY notification_id LIMIT ?) AS new"
)
HOLDERS_QUERY = (
    "SELECT pg_is_in_recovery(), virtualtransaction, pid IS NULL FROM pg_locks"
    " RIGHT JOIN (VALUES (1)) AS always ON locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = 'stored_events'::regclass"
)


class LogTail:
    """One process's knowledge of the log's end, shared by all its readers."""

    def __init__(self, datastore: PostgresLogDatastore) -> None:
        self.datastore = datastore
        self.known = 0
        """The log is settled up to this id, so reading up to it needs no query."""
        self._asking = Lock()
        self._seen = 0
        self._waiting_for: frozenset[str] = frozenset()

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting_for)

    def find_settled(self) -> int:
        """Return the id up to which the log is settled now; it never decreases."""
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
        """Return the running transactions that may have drawn an id."""
        found = self.datastore.read(HOLDERS_QUERY)
        if found[0][0]:
            raise NotSupportedError(
                "a standby does not know who is writing: follow the log on the primary"
            )
        # A prepared transaction has no process, and another name than while it ran.
        return frozenset(
            "prepared" if prepared else holder for _, holder, prepared in found if holder
        )
