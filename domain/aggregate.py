"""What Session and Compaction share: decisions trigger events, and events evolve a small state."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from .event import Event

Clock = Callable[[], datetime]
_StateT = TypeVar("_StateT", bound=tuple[Any, ...])
_LoadedStateT = TypeVar("_LoadedStateT", bound=tuple[Any, ...])
_EventT = TypeVar("_EventT", bound=Event)


def dump_state(state: tuple[Any, ...]) -> dict[str, Any]:
    """What is kept of a state beside each event, as JSON: its fields that are not at their default.

    States are named tuples, the fastest frozen values there are: an append makes one.
    """
    fields: tuple[str, ...] = state._fields  # type: ignore[attr-defined]
    return {name: value for name, value in zip(fields, state, strict=False) if value}


def load_state(state_class: type[_LoadedStateT], carried: Mapping[str, Any]) -> _LoadedStateT:
    """The state that `carried` was made of; names that are not known are from the future."""
    fields: tuple[str, ...] = state_class._fields  # type: ignore[attr-defined]
    return state_class(**{name: carried[name] for name in fields if name in carried})


class Aggregate(Generic[_StateT]):
    """One stream's guard, held in O(1): a version and a frozen state, never the history.

    Works with eventsourcing's `Application.save()`, which asks for `id`, `version` and
    `collect_events()`. Each event takes the state after it along (`Event.state_after`).
    """

    def __init__(
        self, id: UUID, *, version: int, state: _StateT, subject: str, clock: Clock
    ) -> None:
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

    def next_state(self, event: Event) -> _StateT:
        raise NotImplementedError

    @property
    def stored_version(self) -> int:
        """The version that was stored last: what is triggered comes after it."""
        return self.version - len(self._pending)

    def collect_events(self) -> list[Event]:
        """The events triggered since the last call."""
        pending, self._pending = self._pending, []
        return pending

    def _trigger(self, event_class: type[_EventT], **fields: Any) -> _EventT:
        fields["originator_id"] = self.id
        fields["originator_version"] = self.version + 1
        fields["timestamp"] = self._clock()
        fields["subject"] = self.subject
        # What the constructor does, without its frame: an append waits for it.
        event: _EventT = event_class.__pydantic_validator__.validate_python(fields)
        self.evolve(event)
        # The event is frozen; this is set once, here, before anybody has seen it.
        object.__setattr__(event, "_state", self.state)
        self._pending.append(event)
        return event
