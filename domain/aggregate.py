"""What Session and Compaction share: decisions trigger events, and events evolve a small state."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

from .event import Event

Clock = Callable[[], datetime]
State = TypeVar("State")
E = TypeVar("E", bound=Event)


class CarriedState:
    """A frozen state that is kept beside each event, as JSON.

    Fields at their defaults are left out; names that are not known are from the future and
    pass by.
    """

    __slots__: tuple[str, ...] = ()

    def carried(self) -> dict[str, Any]:
        """What `from_carried` makes this state of again."""
        return {
            name: dict(value) if isinstance(value, Mapping) else value
            for name in self.__slots__
            if (value := getattr(self, name))
        }

    @classmethod
    def from_carried(cls, carried: Mapping[str, Any]) -> Self:
        return cls(**{name: carried[name] for name in cls.__slots__ if name in carried})


class Aggregate(Generic[State]):
    """One stream's guard, held in O(1): a version and a frozen state, never the history.

    Works with eventsourcing's `Application.save()`, which asks for `id`, `version` and
    `collect_events()`. Each event takes the state after it along (`Event.state_after`).
    """

    def __init__(self, id: UUID, *, version: int, state: State, subject: str, clock: Clock) -> None:
        self.id = id
        self.version = version
        self.state = state
        self.subject = subject
        self._clock = clock
        self._pending: list[Event] = []

    def evolve(self, event: Event) -> None:
        """Change the state; refuse nothing, since history has happened."""
        self.state = self.next_state(event)
        self.version = event.originator_version

    def next_state(self, event: Event) -> State:
        raise NotImplementedError

    def collect_events(self) -> list[Event]:
        """The events triggered since the last call."""
        pending, self._pending = self._pending, []
        return pending

    def _trigger(self, event_class: type[E], **fields: Any) -> E:
        event = event_class(
            originator_id=self.id,
            originator_version=self.version + 1,
            timestamp=self._clock(),
            subject=self.subject,
            **fields,
        )
        self.evolve(event)
        # The event is frozen; this is set once, here, before anybody has seen it.
        object.__setattr__(event, "_state", self.state)
        self._pending.append(event)
        return event
