"""What is asked of a process that measures, and what it answers: one session at a time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ....domain.backtest.cell import Cell, CellOutcome, Setup
from ....domain.backtest.result import ControlResult
from ....domain.models import ModelFacts
from ...settings.settings import Settings


@dataclass(frozen=True, slots=True)
class ControlItem:
    """The controls of a session at one limit."""

    limit: int
    budgets: tuple[int, ...]


TaskItem = Setup | ControlItem
"""What is measured by itself."""


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """A session in a database that every process of this machine can open."""

    address: str
    namespace: str
    key: str


SessionSource = SessionLocation | bytes
"""Where the session is; or all of it, packed."""


@dataclass(frozen=True)
class SessionTask:
    """One session, and all that is wanted of it."""

    name: str
    """Of the session, as people are told of it."""
    source: SessionSource = field(repr=False)
    items: Mapping[int, TaskItem]
    """By their numbers in the whole backtest."""
    tries: int = 0
    """How often a process ended over it."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The process has started."""


@dataclass(frozen=True, slots=True)
class SessionRead:
    """The session is read; what is known of it before anything is measured."""

    digest: str
    model: str | None
    last_call_time: datetime | None
    """When its model was called last; None where the log does not tell."""
    blank_cell: Cell
    """A cell in which nothing is measured."""
    models: tuple[str, ...] = ()
    """All that were called, by name."""


@dataclass(frozen=True, slots=True)
class SessionUnreadable:
    """The session cannot be read."""

    reason: str


@dataclass(frozen=True, slots=True)
class ItemOrder:
    """Of the items, those that are to be measured, by number; with what their models cost."""

    items: tuple[tuple[int, ModelFacts | None], ...]
    settings: Settings = field(default_factory=Settings, repr=False)
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """What each model that was called costs, where the setup names none."""


@dataclass(frozen=True, slots=True)
class ItemStarted:
    """The process is at this item."""

    number: int


ItemResult = Cell | tuple[ControlResult, ...]


@dataclass(frozen=True, slots=True)
class ItemDone:
    """One item, measured."""

    number: int
    result: ItemResult


@dataclass(frozen=True, slots=True)
class ItemFailed:
    """One item that came to nothing, and not by the policy's doing."""

    number: int
    reason: str
    is_out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """Nothing is left of the errand."""


WorkerMessage = (
    WorkerReady
    | SessionRead
    | SessionUnreadable
    | ItemStarted
    | ItemDone
    | ItemFailed
    | TaskFinished
)


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """What became of one item of one session."""

    session: str
    number: int
    result: ItemResult | None = None
    """None where there is nothing, not even a row that says what went wrong."""
    outcome: CellOutcome = CellOutcome.DONE
    reason: str = ""


ChooseItems = Callable[[SessionTask, SessionRead], ItemOrder]
"""What is to be measured of a session, now that it is read."""


def format_session_name(namespace: str, key: str) -> str:
    """A session as people are told of it."""
    return key if namespace == "default" else f"{namespace}/{key}"


def answer_all(errand: SessionTask, outcome: CellOutcome, why: str) -> Iterator[ItemAnswer]:
    """What became of a session as a whole."""
    return (ItemAnswer(errand.name, number, None, outcome, why) for number in errand.items)


def describe_error(error: BaseException) -> str:
    """An error in one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
