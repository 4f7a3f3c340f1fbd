"""Defines the base of every stored event, and how an event evolves its aggregate."""

from typing import Any, ClassVar
from uuid import UUID

from pydantic import AwareDatetime, Field

from .record import Record

EVENT_CLASSES: dict[str, type["Event"]] = {}
"""Every event class by its topic; logs and archives resolve topics here alone."""


class Event(Record):
    """A fact in the past tense, frozen forever.

    Every later version reads stored events, so fields are added with a default and never renamed. A
    larger change gets a new `class_version` and a static method `upcast_vX_vY(state)`, as in
    eventsourcing.
    """

    TOPIC: ClassVar[str]
    class_version: ClassVar[int] = 1

    originator_id: UUID
    originator_version: int = Field(ge=1)
    timestamp: AwareDatetime
    subject: str
    """The person or thing that the event is about; erasure works by subject."""
    key_id: str | None = None
    """The key that encrypts the stored event, if any."""

    __slots__ = ("_state",)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Store a short name, so that moving a class never breaks a log."""
        cls.TOPIC = f"cutbank:{cls.__name__}"
        EVENT_CLASSES[cls.TOPIC] = cls

    @property
    def state_after(self) -> Any:
        """The aggregate's state after this event, if the event was just triggered.

        A store keeps it with the event, so that a stream opens at any version without a replay.
        """
        return getattr(self, "_state", None)

    def mutate(self, aggregate: Any) -> Any:
        """Evolve the aggregate; eventsourcing's repository and projectors call this."""
        aggregate.evolve(self)
        return aggregate
