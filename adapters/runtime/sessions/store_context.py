"""Holds what the sessions of one open database share: log, settings, listeners and clock."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from ....domain.hooks import Listener
from ....projections.view_content import TokenCounts
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.recorder import Recorder
from ...storage.process_forks import reopen_in_children

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from ...storage.read_models.read_models import ReadModels
    from ..compaction.background import BackgroundCompactions


class Stoppable(Protocol):
    """Work that goes on in the background until it is stopped."""

    def stop(self) -> object: ...


@dataclass(slots=True)
class Opening:
    """How a database was opened, for another process to open it the same way."""

    address: str = field(repr=False)
    """With its password, if it has one."""
    synchronous: str
    compress: bool
    counter: str | None = None
    """The tokenizer, if one was set."""


class StoreContext:
    """The log of one open database, and what all its sessions work with."""

    def __init__(
        self, events: EventStore, name: str, settings: "Settings | str | Path | None" = None
    ) -> None:
        self.events = events
        self.name = name
        # A relative path is resolved now, as the database's own is.
        if isinstance(settings, str | Path) and str(settings).strip():
            settings = Path(settings).expanduser().absolute()
        self._given_settings = settings
        self._settings: Settings | None = None
        self.opening: Opening | None = None
        """None where another process could not open it the same way: it has no way to share this
        process's clock."""
        self.added_listeners: list[Listener] = []
        self.background: list[Stoppable] = []
        """Stopped, the newest first, when the store is closed."""
        self._read_models: ReadModels | None = None
        self._preparations: BackgroundCompactions | None = None
        self._opening, self._loading = Lock(), Lock()
        self.starting = Lock()
        """Held while background work starts, so that it starts once."""
        reopen_in_children(self)

    def locks(self) -> Iterator[Any]:
        """Yield the locks that a fork waits for, in the order in which threads take them."""
        yield self._opening
        if self._read_models is not None:
            yield self._read_models.file.lock
        yield self._loading

    def leave_in_child(self, held: Container[Any]) -> None:
        """Forget the threads, which go on in the parent alone, and open the read models again."""
        del held
        self._opening, self._loading, self.starting = Lock(), Lock(), Lock()
        self.background = []
        self._preparations = None
        _inherited.append(self._read_models)
        self._read_models = None
        self.events.leave_in_child()

    @property
    def settings(self) -> "Settings":
        """How sessions are compacted where a call does not say.

        Raises InvalidSettingError, one line for each mistake, with file and line or variable.
        """
        if self._settings is None:
            # Under the lock, so that no process is forked in the middle of the import.
            with self._loading:
                self._settings = self._settings or self._load_settings()
        return self._settings

    def _load_settings(self) -> "Settings":
        given = self._given_settings
        if given is None or isinstance(given, str | Path):
            # A store that never compacts does not wait for the settings and their library.
            from ...settings.load_settings import load_settings  # noqa: PLC0415 - start-up time

            given = load_settings(given)
        self._count_by(given)
        return given

    def apply_settings(self, settings: "Settings") -> None:
        """Use these settings from now on; see `SessionStore.apply_settings`."""
        if settings.tokens != self.settings.tokens and not self._count_by(settings):
            self.events.token_counts = TokenCounts()
        self._settings = settings

    def set_tokenizer(self, name: str) -> None:
        """Count the tokens of new blocks with this tokenizer; see `SessionStore.set_tokenizer`."""
        from ...models.vocabularies import get_counter  # noqa: PLC0415 - start-up time

        self.events.token_counts = TokenCounts(get_counter(name))
        if self.opening is not None:
            self.opening.counter = name

    def _count_by(self, settings: "Settings") -> bool:
        """Set the tokenizer that settings name; returns whether they name one."""
        from ...models.vocabularies import VOCABULARIES  # noqa: PLC0415 - start-up time

        if settings.tokens.counter not in VOCABULARIES:
            return False
        self.set_tokenizer(settings.tokens.counter)
        return True

    @property
    def listeners(self) -> list[Listener]:
        """The programs that the settings name, and then the listeners that were added."""
        hooks = self.settings.hooks
        if not hooks.commands:
            return self.added_listeners[:]
        with self._loading:
            from ..compaction.hook_commands import make_hook_commands  # noqa: PLC0415 - start-up time
        return [*make_hook_commands(hooks), *self.added_listeners]

    @property
    def read_models(self) -> "ReadModels":
        """The disposable file next to the database that answers questions about all sessions."""
        self.events.refuse_batch("what reads the read models")
        # Under the lock, so that no process is forked in the middle of the import.
        with self._opening:
            # A store that never asks does not load them.
            from ...storage.read_models.read_model_file import find_read_models  # noqa: PLC0415 - start-up time
            from ...storage.read_models.read_models import ReadModels  # noqa: PLC0415 - start-up time

            if self._read_models is None:
                self._read_models = ReadModels(
                    self.events,
                    find_read_models(self.name),
                    log=self.name,
                    user_settings=lambda: self.settings,
                )
            return self._read_models

    def find_read_models(self) -> "ReadModels | None":
        """Return the read models, if they were ever made."""
        from ...storage.read_models.read_model_file import find_read_models  # noqa: PLC0415 - start-up time

        if self._read_models is None:
            name = find_read_models(self.name)
            if name.startswith("file:") or not Path(name).exists():
                return None
        return self.read_models

    @property
    def preparations(self) -> "BackgroundCompactions":
        """The summaries that agents' loops have written ahead."""
        from ..compaction.background import BackgroundCompactions  # noqa: PLC0415 - start-up time

        with self._opening:
            if self._preparations is None:
                self._preparations = BackgroundCompactions()
                self.background.insert(0, self._preparations)
            return self._preparations

    def close(self) -> None:
        """Stop all background work, then close the read models and the database."""
        background, self.background = self.background, []
        try:
            for work in reversed(background):
                work.stop()
        finally:
            if self._read_models is not None:
                self._read_models.close()
            self.events.close()


_inherited: list[object] = []
"""The read models of a parent process, whose connection its child must neither use nor close."""

CLOCK_TOLERANCE = timedelta(seconds=1)
"""A difference that the query itself may cause, and that does leases no harm."""


class ServerClock:
    """This machine's clock, corrected by the server's if it is off by more than a second."""

    def __init__(self, recorder: Recorder, machine: Callable[[], datetime]) -> None:
        self.recorder = recorder
        self.machine = machine
        self.off = timedelta()

    def __call__(self) -> datetime:
        return self.machine() + self.off

    def compare(self) -> timedelta:
        """Ask the server for its time; return the correction of the machine's clock."""
        said = self.recorder.read_server_time()
        if said is not None:
            off = said - self.machine()
            self.off = off if abs(off) > CLOCK_TOLERANCE else timedelta()
        return self.off


def read_store_time(events: EventStore) -> datetime:
    """Return the time by the workers' common clock."""
    clock = ServerClock(events.recorder, events.clock)
    clock.compare()
    return clock()
