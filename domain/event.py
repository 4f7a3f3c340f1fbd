"""The envelope of every stored event, and how one evolves the aggregate that it belongs to."""

from typing import Any, ClassVar
from uuid import UUID

from pydantic import AwareDatetime, Field

from .record import Record

EVENT_CLASSES: dict[str, type["Event"]] = {}
"""Every class of event by its topic: what a log or an archive names is looked for here alone."""


class Event(Record):
    """A fact in the past tense, frozen for ever.

    A stored event is read by every later version: fields are added with a default and never
    renamed; a change that is more than that gets a new `class_version` and an
    `upcast_vX_vY(state)` static method, as eventsourcing's own events do.
    """

    TOPIC: ClassVar[str]
    class_version: ClassVar[int] = 1

    originator_id: UUID
    originator_version: int = Field(ge=1)
    timestamp: AwareDatetime
    subject: str
    """Whom the event is about; what is forgotten is forgotten by subject."""
    key_id: str | None = None
    """The key that the stored event is encrypted under, if any."""

    __slots__ = ("_state",)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Store a short name, so that moving a class never breaks a log."""
        cls.TOPIC = f"cutbank:{cls.__name__}"
        EVENT_CLASSES[cls.TOPIC] = cls

    @property
    def state_after(self) -> Any:
        """The aggregate's state after this event, where the event was just triggered.

        A store keeps it beside the event, so that a stream opens at any version without a replay.
        """
        return getattr(self, "_state", None)

    def mutate(self, aggregate: Any) -> Any:
        """Evolve the aggregate; eventsourcing's repository and projectors call this."""
        aggregate.evolve(self)
        return aggregate
