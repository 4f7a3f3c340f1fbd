"""Keeps the read models up to date from a thread of this process."""

from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from eventsourcing.persistence import Subscription

from .read_models import ReadModels


class ReadModelFollower:
    """Takes in all present and future events until it is stopped.

    An error in the thread ends it, and `stop()` raises the error.
    """

    def __init__(self, models: ReadModels) -> None:
        self.models = models
        self.error: BaseException | None = None
        self._subscription: Subscription[Any] | None = None
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
        except BaseException as error:  # noqa: BLE001 - `stop` raises it
            self.error = error
