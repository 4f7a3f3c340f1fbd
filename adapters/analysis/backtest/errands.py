"""What is asked of a process that measures, and what it answers: one session at a time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ....domain.backtest.cell import Cell, Outcome, Setup
from ....domain.backtest.result import Control
from ....domain.models import ModelFacts
from ...settings.settings import Settings


@dataclass(frozen=True, slots=True)
class ControlsAt:
    """The controls of a session at one limit."""

    limit: int
    budgets: tuple[int, ...]


Item = Setup | ControlsAt
"""What is measured by itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """A session in a database that every process of this machine can open."""

    address: str
    namespace: str
    key: str


Source = Place | bytes
"""Where the session is; or all of it, packed."""


@dataclass(frozen=True)
class Errand:
    """One session, and all that is wanted of it."""

    name: str
    """Of the session, as people are told of it."""
    source: Source = field(repr=False)
    items: Mapping[int, Item]
    """By their numbers in the whole backtest."""
    tries: int = 0
    """How often a process ended over it."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The process has started."""


@dataclass(frozen=True, slots=True)
class Read:
    """The session is read; what is known of it before anything is measured."""

    digest: str
    model: str | None
    called: datetime | None
    """When its model was called last; None where the log does not tell."""
    blank: Cell
    """A cell in which nothing is measured."""
    models: tuple[str, ...] = ()
    """All that were called, by name."""


@dataclass(frozen=True, slots=True)
class Unread:
    """The session cannot be read."""

    why: str


@dataclass(frozen=True, slots=True)
class Order:
    """Of the items, those that are to be measured, by number; with what their models cost."""

    items: tuple[tuple[int, ModelFacts | None], ...]
    settings: Settings = field(default_factory=Settings, repr=False)
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """What each model that was called costs, where the setup names none."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The process is at this item."""

    number: int


Result = Cell | tuple[Control, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """One item, measured."""

    number: int
    result: Result


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """One item that came to nothing, and not by the policy's doing."""

    number: int
    why: str
    is_out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left of the errand."""


Said = Ready | Read | Unread | Begun | Done | Unmeasured | Finished


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one item of one session."""

    session: str
    number: int
    result: Result | None = None
    """None where there is nothing, not even a row that says what went wrong."""
    outcome: Outcome = Outcome.DONE
    why: str = ""


Ask = Callable[[Errand, Read], Order]
"""What is to be measured of a session, now that it is read."""


def named(namespace: str, key: str) -> str:
    """A session as people are told of it."""
    return key if namespace == "default" else f"{namespace}/{key}"


def of_all(errand: Errand, outcome: Outcome, why: str) -> Iterator[Answer]:
    """What became of a session as a whole."""
    return (Answer(errand.name, number, None, outcome, why) for number in errand.items)


def said_of(error: BaseException) -> str:
    """An error in one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
