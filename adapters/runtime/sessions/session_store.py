"""What callers hold first: a store of sessions in one database."""

import logging
import os
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from eventsourcing.persistence import IntegrityError

from ....domain.errors import (
    InvalidSettingError,
    NotFoundError,
    StorageError,
)
from ....domain.hooks import Listener
from ....domain.session import Session, session_id
from ....domain.session_events import (
    Parent,
)
from ....projections.tally import Tally
from ...storage.event_log.addresses import is_postgres, located, shown
from ...storage.event_log.databases import environment
from ...storage.event_log.event_store import EventStore, utc_now
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.private_files import is_shared
from ...storage.process_forks import reopen_in_children
from ...storage.sqlite.address import path_of
from .naming import check_name
from .stored_session import StoredSession

if TYPE_CHECKING:
    from ....domain.backtest.result import Measured
    from ....domain.idle import IdleRules
    from ...analysis.replaying.shadow_watch import ShadowWatch
    from ...settings.settings import Settings
    from ...storage.read_models.costs import Costs
    from ...storage.read_models.follower import Follower
    from ...storage.read_models.read_models import ReadModels
    from ...storage.read_models.search import Found
    from ...transcripts.reports import FileReport
    from ..compaction.ahead import Preparations
    from ..idle.notices import Heard
    from ..idle.scheduler import IdleScheduler
    from ..idle.status import IdleStatus

logger = logging.getLogger("cutbank.storage")


def open_store(
    path: str | Path,
    *,
    synchronous: str = "FULL",
    compress: bool = False,
    settings: "Settings | str | Path | None" = None,
    clock: Callable[[], datetime] = utc_now,
) -> "SessionStore":
    """Open the database at `path`, or make it.

    `path` is a file, which stays the same one if the current folder changes; `:memory:` keeps all
    in this process; `postgresql://...` or `host=... dbname=...` is a server's database, in which
    the schema `cutbank`, or the one that `?schema=` names, is made.
    `synchronous="NORMAL"` is faster, and a power cut may lose the last commits; FULL, the default,
    loses none. `compress` stores what is written from now on as Zstandard. An older database is
    migrated, a newer one refused.
    `settings` are a file's or a value's; else they are read as `cutbank settings` says, when the
    first compaction asks for them.
    Raises StorageError, in one line, where it cannot be opened.
    """
    address = located(str(path))
    name = shown(address)
    env = environment(address, synchronous=synchronous, compress=compress)
    with speaking_plainly(name):
        store = SessionStore(EventStore(env, clock), name, settings)
    if clock is utc_now:
        store.opening = Opening(address, synchronous, compress)
    file = None if is_postgres(address) else path_of(address)
    if file is not None and is_shared(file):
        _say_shared(file)
    return store


@cache
def _say_shared(file: Path) -> None:
    """Once in a process."""
    logger.warning("%s can be read by others: if they should not, chmod 600 it", file)


@dataclass(slots=True)
class Opening:
    """How a database was opened, for another process to do the same."""

    address: str = field(repr=False)
    """With its password, if it has one."""
    synchronous: str
    compress: bool
    counter: str | None = None
    """What tokens are counted by, where that was said."""


class SessionStore:
    """All sessions of one database."""

    def __init__(
        self, events: EventStore, name: str, settings: "Settings | str | Path | None" = None
    ) -> None:
        self.events = events
        self.name = name
        # A relative path is resolved now, as the database's own is.
        if isinstance(settings, str | Path) and str(settings).strip():
            settings = Path(settings).expanduser().absolute()
        self._given_settings = settings
        self.opening: Opening | None = None
        """None where no other process could do the same: a clock of one's own goes nowhere."""
        self.listeners: list[Listener] = []
        """Are told what becomes of each compaction in this store: see `happenings.py`."""
        self._read_models: ReadModels | None = None
        self._followers: list[Follower] = []
        self._scheduler: IdleScheduler | None = None
        self._preparations: Preparations | None = None
        self._shadows: ShadowWatch | None = None
        self._opening = Lock()
        self._starting = Lock()
        reopen_in_children(self)

    FORK_RANK = 0

    def locks(self) -> list[Any]:
        """As `process_forks` asks: nobody opens the read models."""
        return [self._opening]

    def leave_in_child(self, held: Container[Any]) -> None:
        """Have no threads in a forked child: they went on in the parent alone."""
        del held
        self._opening, self._starting = Lock(), Lock()
        self._followers = []
        self._scheduler = self._preparations = self._shadows = None

    @cached_property
    def settings(self) -> "Settings":
        """How sessions are compacted where a call does not say.

        Raises InvalidSettingError, one line for each mistake, with file and line or variable.
        """
        from ...models.vocabularies import VOCABULARIES  # noqa: PLC0415 - as above
        from ...settings.settings import Settings  # noqa: PLC0415 - as above

        given = self._given_settings
        settings = given if isinstance(given, Settings) else self.read_settings()
        if settings.tokens.counter in VOCABULARIES:
            self.count_by(settings.tokens.counter)
        return settings

    @property
    def settings_file(self) -> Path | None:
        """Where the settings are read from, be it there or not; None where they were given."""
        from ...settings.settings import Settings  # noqa: PLC0415 - as below
        from ...settings.toml_file import place_of  # noqa: PLC0415 - as below

        given = self._given_settings
        return None if isinstance(given, Settings) else place_of(given, os.environ)[0]

    def read_settings(self, file: Path | None = None) -> "Settings":
        """What the file of the settings, or the one that is named, says now; changes nothing.

        Raises InvalidSettingError, as `settings` does.
        """
        from ...settings.load import load  # noqa: PLC0415 - whoever never compacts pays nothing
        from ...settings.settings import Settings  # noqa: PLC0415 - as above

        given = None if isinstance(self._given_settings, Settings) else self._given_settings
        return load(file or given)

    def go_by(self, settings: "Settings") -> None:
        """Compact by these settings from now on; what was begun is done by those before.

        Loops that are there keep what they were made with; those that are made next are made by
        these. Raises NotFoundError, and changes nothing, where the vocabulary that they count by
        is not on this machine.
        """
        from ...models.vocabularies import VOCABULARIES  # noqa: PLC0415 - as above
        from ..compaction.hook_commands import hook_commands  # noqa: PLC0415 - as above

        if settings.tokens != self.settings.tokens:
            if settings.tokens.counter in VOCABULARIES:
                self.count_by(settings.tokens.counter)
            else:
                self.events.tally = Tally()
        self.settings, self._hooks = settings, hook_commands(settings.hooks)

    @property
    def all_listeners(self) -> "list[Listener]":
        """The programs that the settings name, and then the listeners of this store."""
        return [*self._hooks, *self.listeners]

    @cached_property
    def _hooks(self) -> "list[Listener]":
        from ..compaction.hook_commands import hook_commands  # noqa: PLC0415 - as above

        return hook_commands(self.settings.hooks)

    def session(
        self,
        key: str,
        *,
        namespace: str = "default",
        create: bool = True,
        subject: str | None = None,
        parent: Parent | None = None,
        source: str | None = None,
        title: str | None = None,
        project: str | None = None,
    ) -> "StoredSession":
        """The session of that key; opened if there is none, unless `create` is False.

        `subject` is whom it is about, for erasure; `parent` the session and call that a
        sub-agent works for; `project` the folder that the agent works in, or a name, by which
        costs are summed. Raises NotFoundError, saying what exists.
        """
        check_name("session key", key)
        check_name("namespace", namespace)
        if subject is not None:
            check_name("subject", subject)
        with (
            speaking_plainly(self.name),
            self.events.deciding_on(session_id(namespace, key)),
        ):
            if self.events.session(namespace, key) is None:
                if not create:
                    raise NotFoundError(self._no_session(namespace, key))
                opened = Session.open(
                    namespace,
                    key,
                    clock=self.events.clock,
                    subject=subject,
                    parent=parent,
                    source=source,
                    title=title,
                    project=project,
                )
                with suppress(IntegrityError):  # another process opened it: that is as good
                    self.events.save(opened)
            return StoredSession(self, namespace, key)

    def sessions(self, namespace: str | None = None) -> list["StoredSession"]:
        """All sessions, by namespace and key."""
        with speaking_plainly(self.name):
            streams = self.events.recorder.select_streams(namespace)
        return [
            StoredSession(self, stream.namespace, stream.session)
            for stream in streams
            if stream.lineage is None
        ]

    def count_by(self, counter: str) -> None:
        """Count by this from the sessions on that are asked for next: `chars/4`, `o200k_base`, ...

        What stands beside the blocks stays what it is. Raises NotFoundError where the vocabulary
        is not on this machine, and InvalidSettingError for a name that does not exist.
        """
        from ...models.counters import counter_named  # noqa: PLC0415 - as below

        self.events.tally = Tally(counter_named(counter))
        if self.opening is not None:
            self.opening.counter = counter

    def import_(self, path: str | Path, *, namespace: str = "default") -> "list[FileReport]":
        """Read a transcript of another agent, or all below a folder; of those known, what is new.

        What is wrong in a file is in its report, and the rest is imported. Raises ImportFileError
        where there is nothing at `path` to import.
        """
        from ..importing.importer import import_path  # noqa: PLC0415 - as above

        return list(import_path(self, Path(path), namespace=namespace))

    def backup(self, target: str | Path) -> None:
        """Copy the whole database, as it is now, into a new file; others may go on writing."""
        path = Path(target)
        if path.exists():
            raise StorageError(f"{path} exists already: give a new path")
        with speaking_plainly(str(path)):
            self.events.recorder.backup(path)

    def backtest(
        self,
        policies: Sequence[str],
        *,
        sessions: "Sequence[StoredSession] | None" = None,
        limits: Sequence[int] = (32_000,),
        settings: "Mapping[str, Sequence[Any]] | None" = None,
        budgets: Sequence[int | None] = (None,),
        summariser: str = "extractive",
        model: str | None = None,
        jobs: int | None = None,
        timeout_s: float = 300.0,
        cluster: str | None = None,
        cache: str | Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        remark: Callable[[str], None] | None = None,
    ) -> "Measured":
        """What each session, of all or of `sessions`, would have come to under each setup.

        Setups are all of `policies` (`NAME[@PRESET]`, `none`, `recorded`) with all values of
        `settings` (`{"keep_tokens": [8000, 16000], "pi.keep_tokens": [...]}`), all `limits`
        (tokens of a prompt) and all `budgets` (tokens of a summary; None leaves it to the policy).
        `model` is whose prices count, else the one that was recorded. Nothing is written to this
        database. `jobs` processes measure, or the workers of the Dask `cluster` at that address;
        a cell that takes more than `timeout_s` seconds, or whose process ends, is a row that says
        so. `cache` is a file that keeps what was measured. `progress` is told how many cells and
        controls are done, and of how many; `remark`, a line each, what is worth knowing besides.
        The same sessions and setups give the same answer, but for its seconds, however it is run.
        Raises InvalidSettingError for a policy, setting or number that cannot be, BacktestError
        for a cache or cluster that cannot be used.
        """
        from ...analysis.backtest.backtest import Backtest, Running  # noqa: PLC0415 - as above
        from ...analysis.backtest.grid import Grid  # noqa: PLC0415 - as above

        grid = Grid(
            policies=tuple(policies),
            limits=tuple(limits),
            settings=settings or {},
            budgets=tuple(budgets),
            summariser=summariser,
            model=model,
        )
        running = Running(
            jobs=jobs,
            timeout_s=timeout_s,
            cluster=cluster,
            cache=Path(cache) if cache is not None else None,
            progress=progress,
            remark=remark,
        )
        found = self.sessions() if sessions is None else sessions
        with speaking_plainly(self.name):
            return Backtest(self, found, grid, running).measured()

    # Read models

    @property
    def read_models(self) -> "ReadModels":
        """What can be asked of all sessions at once, in a disposable file beside the database."""
        # Under the lock, so that no process is forked in the middle of the import.
        with self._opening:
            # Whoever never asks pays nothing: sqlite-utils takes its time.
            from ...storage.read_models.location import read_models_of  # noqa: PLC0415
            from ...storage.read_models.read_models import ReadModels  # noqa: PLC0415

            if self._read_models is None:
                self._read_models = ReadModels(
                    self.events,
                    read_models_of(self.name),
                    log=self.name,
                    user_settings=lambda: self.settings,
                )
            return self._read_models

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        namespace: str | None = None,
        limit: int = 20,
    ) -> "list[Found]":
        """Full text over everything ever said, hidden, retracted or compacted away or not.

        `query` is words, `"phrases"`, `-words` that must not be there, and `beginnings*`. Takes
        in first what is new; the best matches come first, or the newest of very many. `session`
        searches one of `namespace`, or else of the default one. Raises InvalidSettingError for a
        query that cannot be understood, NotFoundError for a session that does not exist.
        """
        if session is not None:
            self.session(session, namespace=namespace or "default", create=False)
        return self.read_models.search(query, session=session, namespace=namespace, limit=limit)

    def costs(
        self,
        by: str = "day",
        *,
        since: datetime | None = None,
        namespace: str | None = None,
    ) -> "Costs":
        """What the recorded calls of models cost, summed by `day`, `project`, `model` or `session`.

        A call costs what the log says, or else its tokens at the prices of its day: those of the
        settings, or list prices. Calls that an agent copied into another file count once. Models
        without a known price are named in `unpriced`, and no sum holds them. Takes in what is new
        first. Raises InvalidSettingError for any other `by`.
        """
        from ...models.context_limits import overrides_by  # noqa: PLC0415 - as above
        from ...storage.read_models.costs import costs_of  # noqa: PLC0415 - as above

        self.read_models.catch_up(search=False)
        overrides = overrides_by(self.settings)
        with speaking_plainly(self.read_models.name):
            return costs_of(self.read_models, overrides, by=by, since=since, namespace=namespace)

    def follow(self) -> "Follower":
        """Keep the read models up to date, from a thread, until `stop()` or the store is closed."""
        from ...storage.read_models.follower import Follower  # noqa: PLC0415 - as above

        follower = Follower(self.read_models)
        self._followers.append(follower)
        return follower

    @property
    def preparations(self) -> "Preparations":
        """The summaries that agents' loops have written ahead."""
        from ..compaction.ahead import Preparations  # noqa: PLC0415 - as above

        with self._opening:
            if self._preparations is None:
                self._preparations = Preparations()
            return self._preparations

    @property
    def shadows(self) -> "ShadowWatch":
        """The policies that decide beside live sessions, in a thread that no agent waits for."""
        from ...analysis.replaying.shadow_watch import ShadowWatch  # noqa: PLC0415 - as above

        with self._opening:
            if self._shadows is None:
                self._shadows = ShadowWatch()
            return self._shadows

    # Idle hours

    def start_scheduler(
        self,
        rules: "IdleRules | None" = None,
        *,
        kind: Literal["background", "asyncio"] = "background",
        name: str | None = None,
        heard: "Sequence[Heard]" = (),
    ) -> "IdleScheduler":
        """Compact sessions at rest, in this process, until `stop()` or the store is closed.

        `kind` is where it looks: in a thread of its own, or in the running event loop; summaries
        are written in threads either way. Without `rules` it goes by the settings, section `idle`.
        `heard` are told what it does: see `idle/notices.py`. Raises InvalidSettingError where this
        store's scheduler is running already; other processes may run theirs.
        """
        from ..idle.scheduler import IdleScheduler  # noqa: PLC0415 - as above

        with self._starting:
            if self._scheduler is not None:
                if self._scheduler.is_running:
                    raise InvalidSettingError(
                        f"the scheduler of {self.name} is running already in this process:"
                        " stop it first, or use that one"
                    )
                # Its event loop may have been closed over what it was at.
                self._scheduler.stop()
            self._scheduler = IdleScheduler(self, rules, kind=kind, name=name, heard=heard)
            self._scheduler.start()
            return self._scheduler

    def idle_status(self, *, last: int = 10) -> "IdleStatus":
        """How idle work stands, whoever does it: what is due, running, prepared, done and failed.

        From the read models, which take in first what is new; `last` is how many of each kind are
        named. By the rules of the settings, section `idle`.
        """
        from ..idle.server_clock import time_of  # noqa: PLC0415 - as above
        from ..idle.status import status_of  # noqa: PLC0415
        from ..idle.upkeep import upkeep_of  # noqa: PLC0415

        with speaking_plainly(self.name):
            now = time_of(self.events)
        self.read_models.catch_up(search=False)
        found = status_of(self.read_models, self.settings.idle.rules(), now, last)
        return replace(found, chores=tuple(upkeep_of(self).status()))

    def close(self) -> None:
        """Close the database; sessions of this store cannot be used any more.

        Summaries that are written ahead are cancelled, followers and shadows stopped.
        """
        followers, self._followers = self._followers, []
        scheduler, self._scheduler = self._scheduler, None
        try:
            if scheduler is not None:
                scheduler.stop()
            if self._preparations is not None:
                self._preparations.stop()
            if self._shadows is not None:
                self._shadows.stop()
            for follower in followers:
                follower.stop()
        finally:
            if self._read_models is not None:
                self._read_models.close()
            self.events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _no_session(self, namespace: str, key: str) -> str:
        streams = self.events.recorder.select_streams(namespace)
        keys = [stream.session for stream in streams if stream.lineage is None]
        known = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
        return f"no session {key!r} in {self.name} (there is: {known or 'none yet'})"
