"""Keeps the read models up to date from a thread of this process, as soon as something is said."""

from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from eventsourcing.persistence import Subscription

from .read_models import ReadModels


class ReadModelFollower:
    """Takes in what is there, and then what comes, until it is stopped.

    What goes wrong in the thread ends it, and is raised by `stop()`.
    """

    def __init__(self, models: ReadModels) -> None:
        self.models = models
        self.error: BaseException | None = None
        self._subscription: Subscription[Any] | None = None
        self._ending = Event()
        self._thread = Thread(target=self._follow, name="cutbank read models", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following; what is committed stays. Raises what went wrong since it began."""
        self._ending.set()
        if self._subscription is not None:
            self._subscription.stop()
        self._thread.join()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody hears of it
            self.error = error
