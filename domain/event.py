"""Defines stored values and events, and the aggregates whose decisions trigger them."""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from .errors import UnknownFieldError

MAX_COUNT = 10**12
"""No real count of tokens, cost or duration is near it, and sums of such values still fit 64 bits.
"""


class StoredValue(BaseModel):
    """A frozen value of the stored format.

    Reading keeps unknown fields and writes them back, because a log outlives the program that wrote
    it. Constructing with an unknown field raises UnknownFieldError.
    """

    # A field may keep a stored name that is not its own, by which it is read and written.
    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, serialize_by_alias=True
    )

    if not TYPE_CHECKING:  # type checkers know the fields of each class

        def __init__(self, **fields: Any) -> None:
            """Validate as pydantic does, and refuse unknown fields."""
            known = self.__pydantic_fields__
            if not fields.keys() <= known.keys():
                unknown = next(name for name in fields if name not in known)
                raise UnknownFieldError(describe_unknown(type(self).__name__, unknown, known))
            self.__pydantic_validator__.validate_python(fields, self_instance=self)

        # Else pydantic would construct by it also what is read from a log.
        __init__.__pydantic_base_init__ = True


def describe_unknown(owner: str, unknown: str, known: Iterable[str]) -> str:
    """Return a message that `owner` has no such field and suggests the closest one."""
    names = sorted(known)
    nearest = get_close_matches(unknown, names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(names)}"
    return f"{owner} has no field {unknown!r}; {hint}"


def find_unknown(record: StoredValue) -> str | None:
    """Describe the first unknown field at any depth; return None if there is none."""
    for unknown in record.model_extra or ():
        return describe_unknown(type(record).__name__, unknown, type(record).model_fields)
    for _, value in record:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, StoredValue) and (found := find_unknown(part)):
                return found
    return None


def _drop_impossible(number: Any) -> Any:
    """Return None for a number that no provider can mean, since it would break every sum."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return None if is_number and not 0 <= number <= MAX_COUNT else number


# What is possible is tried first, and pydantic recognizes it without calling Python.
_IN_ORDER = Field(union_mode="left_to_right")
_PossibleCount = Annotated[int, Field(ge=0, le=MAX_COUNT)] | None
_PossibleAmount = Annotated[float, Field(ge=0, le=MAX_COUNT)] | None
ReportedCount = Annotated[
    _PossibleCount | Annotated[int | None, AfterValidator(_drop_impossible)], _IN_ORDER
]
"""A reported count; an impossible value becomes None, also when read from a log."""
ReportedAmount = Annotated[
    _PossibleAmount | Annotated[float | None, BeforeValidator(_drop_impossible)], _IN_ORDER
]
"""The same for dollars and seconds; an integer of 310 digits does not fit a float."""
BoundedCount = Annotated[int, AfterValidator(lambda count: max(-MAX_COUNT, min(count, MAX_COUNT)))]
"""A required count, clamped to the limit."""


StoredBytes = Annotated[
    bytes, BeforeValidator(lambda data: b64decode(data) if isinstance(data, str) else data)
]
"""Bytes, which JSON holds as Base64."""

EVENT_CLASSES: dict[str, type["Event"]] = {}
"""Every event class by its topic; logs and archives resolve topics here alone."""


class Event(StoredValue):
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


Clock = Callable[[], datetime]
_StateT = TypeVar("_StateT", bound=tuple[Any, ...])
_LoadedStateT = TypeVar("_LoadedStateT", bound=tuple[Any, ...])
_EventT = TypeVar("_EventT", bound=Event)


def dump_state(state: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a state that differ from their defaults, as JSON to store with an event.

    States are named tuples because these are the fastest frozen values, and each append makes one.
    """
    fields: tuple[str, ...] = state._fields  # type: ignore[attr-defined]
    return {name: value for name, value in zip(fields, state, strict=False) if value}


def load_state(state_class: type[_LoadedStateT], carried: Mapping[str, Any]) -> _LoadedStateT:
    """Return the state that `dump_state` wrote; names that a later version added are ignored."""
    fields: tuple[str, ...] = state_class._fields  # type: ignore[attr-defined]
    return state_class(**{name: carried[name] for name in fields if name in carried})


class Aggregate(Generic[_StateT]):
    """The guard of one stream: a version and a frozen state of constant size, never the history.

    Works with eventsourcing's `Application.save()`, which needs `id`, `version` and
    `collect_events()`. Each event carries the state that it leads to (`Event.state_after`).
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
        """Change the state. Never refuse an event, since it has already happened."""
        self.state = self.next_state(event)
        self.version = event.originator_version

    def next_state(self, event: Event) -> _StateT:
        raise NotImplementedError

    @property
    def stored_version(self) -> int:
        """The newest version in the log; events that are still pending come after it."""
        return self.version - len(self._pending)

    def collect_events(self) -> list[Event]:
        pending, self._pending = self._pending, []
        return pending

    def _trigger(self, event_class: type[_EventT], **fields: Any) -> _EventT:
        fields["originator_id"] = self.id
        fields["originator_version"] = self.version + 1
        fields["timestamp"] = self._clock()
        fields["subject"] = self.subject
        # Validate as the constructor does, without its frame, because every append passes here.
        event: _EventT = event_class.__pydantic_validator__.validate_python(fields)
        self.evolve(event)
        # The event is frozen; set its state once, before anything can read it.
        object.__setattr__(event, "_state", self.state)
        self._pending.append(event)
        return event


_MILLISECONDS_FROM = 100_000_000_000
"""Numbers below this are seconds, others milliseconds."""
_DATE_LENGTH = len("20260101")


def parse_source_time(time: str) -> datetime | None:
    """Return the time in UTC from ISO 8601 or a number since 1970; None for anything else."""
    whole, _, part = time.partition(".")
    try:
        # Some numbers also parse as a date and an hour, but in years before computers.
        if len(whole) <= _DATE_LENGTH or not (whole + part).isdecimal():
            moment = datetime.fromisoformat(time)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        pass  # perhaps it is a number all the same
    except OverflowError:
        return None  # near an end of the calendar, in another time zone
    try:
        number = float(time)
        seconds = number / 1000 if number >= _MILLISECONDS_FROM else number
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
