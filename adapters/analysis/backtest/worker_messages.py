"""Defines the messages between a backtest and its worker processes, one session at a time.

A worker gets a SessionTask and answers with a SessionRead, or with an ItemAnswer for all items if
the session cannot be read. After a SessionRead it gets an ItemOrder, and sends the ItemAnswer of
each item, in their order. Answers are sent as lists.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ....domain.backtest.cell import Cell, CellOutcome, ControlResult, Setup
from ....domain.models import ModelFacts
from ...settings.settings import Settings


@dataclass(frozen=True, slots=True)
class ControlItem:
    """The controls of a session at one limit."""

    limit: int
    budgets: tuple[int, ...]


TaskItem = Setup | ControlItem
"""A unit of measurement: one setup, or the controls at one limit."""
ItemResult = Cell | tuple[ControlResult, ...]


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """A session in a database that every process of this machine can open."""

    address: str
    namespace: str
    key: str


@dataclass(frozen=True)
class SessionTask:
    """One session, and the items to measure."""

    name: str
    """The displayed name of the session."""
    source: SessionLocation | bytes = field(repr=False)
    """Where the session is, or the packed session itself."""
    items: Mapping[int, TaskItem]
    """Items by number in the whole backtest."""


@dataclass(frozen=True, slots=True)
class SessionRead:
    """The session has been read; its properties before any measurement."""

    digest: str
    model: str | None
    last_call_time: datetime | None
    blank_cell: Cell
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemOrder:
    """The numbers of the items to measure, with the prices of their models."""

    items: tuple[tuple[int, ModelFacts | None], ...]
    settings: Settings = field(default_factory=Settings, repr=False)
    facts: Mapping[str, ModelFacts | None] = field(default_factory=dict)
    """Prices and limits of each recorded model, for setups that name no model."""


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """The outcome of one item of one session."""

    session: str
    number: int
    result: ItemResult | None = None
    """None if the measurement failed."""
    outcome: CellOutcome = CellOutcome.DONE
    reason: str = ""


ChooseItems = Callable[[SessionTask, SessionRead], ItemOrder]
"""Chooses what to measure of a session, now that it is read."""


def answer_all(
    task: SessionTask, why: str, outcome: CellOutcome = CellOutcome.FAILED
) -> Iterator[ItemAnswer]:
    """Yield the same outcome for every item of a session."""
    return (ItemAnswer(task.name, number, None, outcome, why) for number in task.items)


def describe_error(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
