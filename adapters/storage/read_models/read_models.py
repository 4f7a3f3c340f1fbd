"""Keeps a log's read models up to date, searches and rebuilds them."""

from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Self

from ....domain.context_limit import ContextLimit, LoggedContext
from ....domain.errors import InvalidSettingError
from ....domain.hooks import Progress
from ....projections.search_texts import SearchQuery
from ...models.context_limits import resolve_limit
from ...settings.settings import Settings as UserSettings
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow
from ..event_log.recorder import LogSubscription
from .deleted_sessions import ErasedTextError
from .index_feed import IndexFeed
from .read_model_file import (
    ReadModelDatabase,
    read_new_events,
    translate_read_model_errors,
)
from .search import SearchFeed, SearchHit, find_blocks


class ReadModels:
    """Queries about a log beyond single sessions, answered from a disposable file.

    Any number of threads and processes may update one file at the same time.
    """

    def __init__(
        self,
        store: EventStore,
        name: str,
        *,
        log: str = "the log",
        user_settings: Callable[[], UserSettings] = UserSettings,
    ) -> None:
        """`user_settings` supplies a context limit that the log does not report."""
        self.store = store
        self.name = name
        self.log = log
        """The log's name in messages."""
        with translate_read_model_errors(name, log):
            self.file = ReadModelDatabase(name)
        self._user_settings = user_settings
        self._index = IndexFeed(store, self._resolve_limit)
        self._words = SearchFeed(store)

    @property
    def position(self) -> int:
        """The log notification up to which everything is stored."""
        return min(self.positions.values())

    @property
    def positions(self) -> dict[str, int]:
        """The position of each feed: `index` (all tables but `blocks`) and `search`."""
        with translate_read_model_errors(self.name, self.log):
            found = self.file.fetch_rows("SELECT name, position FROM feeds")
        return {"index": 0, "search": 0} | dict(found)

    @property
    def rebuild_reason(self) -> str | None:
        """Why the file was rebuilt since it was opened here, if it was."""
        return self.file.rebuild_reason

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        namespace: str | None = None,
        limit: int = 20,
    ) -> list[SearchHit]:
        """Return the blocks with all words of `query` and `"phrases"`, but none of its `-words`.

        Takes in new events first. The best matches come first; for very frequent words, the newest.
        `session` restricts the search to one session (of `namespace`, or of the default one) and
        the part that it shares with its fork parent. Raises InvalidSettingError if the query is
        malformed.
        """
        wanted = SearchQuery.parse(query)
        self.catch_up()
        streams: list[tuple[str, int | None]] = []
        if session is not None:
            chain = self.store.find_session_chain(namespace or "default", session)
            streams = [(str(part.originator_id), part.last) for part in chain.segments]
        with translate_read_model_errors(self.name, self.log):
            return find_blocks(
                self.store,
                self.file,
                wanted,
                streams=streams,
                namespace=None if session else namespace,
                limit=limit,
            )

    def catch_up(
        self,
        progress: Progress | None = None,
        *,
        search: bool = True,
        until: Callable[[], bool] = lambda: False,
    ) -> int:
        """Take in all new events, the index first; return how many there were.

        `search` says whether full-text search catches up too; `until` is called between batches and
        returns True to stop.
        """
        taken = 0
        with translate_read_model_errors(self.name, self.log):
            self.file.reopen_replaced()
            total = self.store.recorder.max_notification_id() if progress else 0
            feeds: list[IndexFeed | SearchFeed] = [self._index]
            feeds += [self._words] if search else []
            # Text is slow, so the index catches up between its batches.
            while not until() and (more := next(filter(None, map(self._advance, feeds)), 0)):
                taken += more
                if progress:
                    done = sum(self.file.read_position(feed.name).position for feed in feeds)
                    progress(done, max(done, len(feeds) * total))
        return taken

    def rebuild(self, progress: Progress | None = None) -> int:
        """Empty the file and read the whole log again; return the number of events."""
        with translate_read_model_errors(self.name, self.log), self.file.transaction() as db:
            self.file.clear(db, None)
        return self.catch_up(progress)

    def forget_erased(self) -> None:
        """Take in which sessions were deleted, and remove what is left of them in the file."""
        self.catch_up(search=False)
        with translate_read_model_errors(self.name, self.log):
            self.file.purge()

    def close(self) -> None:
        self.file.close()

    def _resolve_limit(self, logged: LoggedContext) -> ContextLimit:
        try:
            known = self._user_settings()
        except InvalidSettingError:
            known = UserSettings()  # a compaction reports the mistake; the index must go on
        return resolve_limit(known, logged=logged)

    def _advance(self, feed: IndexFeed | SearchFeed) -> int:
        """Take in one batch; return how many events it had, 0 if there were none."""
        if self._read_batch(feed, 1) == []:  # without a lock
            return 0
        with self.file.transaction() as db:
            # Read again under the lock: another process may have taken the same events.
            events = self._read_batch(feed, feed.page)
            if events is None:
                self.file.clear(db, f"{self.name} was made of another state of the log")
                feed = self._index  # which goes ahead of the words
                events = self._read_batch(feed, feed.page)
            if not events:
                return 0
            try:
                taken = feed.apply(db, events)
            except ErasedTextError:
                self.file.clear(db, f"{self.name} held words of an erased session")
                return len(events)
            self.file.save_position(feed.name, events[taken - 1])
        return taken

    def _read_batch(self, feed: IndexFeed | SearchFeed, limit: int) -> Sequence[StoredRow] | None:
        place = self.file.read_position(feed.name)
        # Read second: the words of another process never pass the index, but both may go on.
        stop = self.file.read_position(self._index.name).position if feed is self._words else None
        return read_new_events(self.store, place, limit, stop)


class ReadModelFollower:
    """Takes in all present and future events until it is stopped.

    An error in the thread ends it, and `stop()` raises the error.
    """

    def __init__(self, models: ReadModels) -> None:
        self.models = models
        self.error: BaseException | None = None
        self._subscription: LogSubscription | None = None
        self._ending = Event()
        self._thread = Thread(target=self._follow, name="cutbank read models", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following; committed rows stay. Raises the thread's error, if any."""
        self._ending.set()
        if self._subscription is not None:
            self._subscription.stop()
        self._thread.join()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _follow(self) -> None:
        try:
            self.models.catch_up(until=self._ending.is_set)
            with self.models.store.recorder.subscribe(gt=self.models.position) as subscription:
                self._subscription = subscription
                if self._ending.is_set():
                    return
                for event in subscription:
                    if event.id > self.models.position:
                        self.models.catch_up(until=self._ending.is_set)
        except BaseException as error:  # noqa: BLE001 - `stop` raises it
            self.error = error
