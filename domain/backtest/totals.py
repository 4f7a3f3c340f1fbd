"""Sums up each setup over all sessions: counts and tokens are added before ratios are computed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

from ..fidelity.scores import Scores, divide
from .cell import BacktestResult, Bill, Cell, CellOutcome, ControlResult, Setup

_SessionName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class SetupTotal:
    """One setup over the sessions that were measured under it."""

    setup: Setup
    cells: tuple[Cell, ...]
    """The completed cells."""
    failed: tuple[Cell, ...] = ()

    @cached_property
    def bill(self) -> Bill:
        """Tokens of all sessions; dollars only if all sessions have them."""
        return add_bills(cell.bill for cell in self.cells)

    @cached_property
    def canonical(self) -> Scores:
        return add_scores(cell.canonical for cell in self.cells)

    def sum_field(self, name: str) -> int:
        """Return the sum of a count that every cell has: `calls`, `compactions`, `refused`, ..."""
        return sum(getattr(cell, name) for cell in self.cells)

    @property
    def sessions(self) -> int:
        return len(self.cells) + len(self.failed)

    @property
    def tokens_per_call(self) -> float | None:
        return divide(self.bill.prompt_tokens, self.sum_field("calls"))

    @property
    def priced_cells(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.bill.usd is not None)

    @property
    def usd(self) -> float | None:
        """The cost of the sessions with known prices; None if there are none."""
        priced = self.priced_cells
        return sum(cell.bill.usd or 0.0 for cell in priced) if priced else None

    @property
    def seconds(self) -> float:
        return sum(cell.seconds for cell in self.cells)


@dataclass(frozen=True)
class ControlTotal:
    """The scores of one control over all sessions, at one budget."""

    name: str
    limit: int
    budget: int | None
    scores: Scores
    bound: float | None = None
    """For the control `bound` only: the share of the stakes that some text could carry."""

    @property
    def recall(self) -> float | None:
        return self.scores.recall if self.bound is None else self.bound


def compute_totals(measured: BacktestResult) -> tuple[SetupTotal, ...]:
    done: dict[str, list[Cell]] = {make_setup_key(setup): [] for setup in measured.setups}
    failed: dict[str, list[Cell]] = {key: [] for key in done}
    for cell in measured.cells:
        cells = done if cell.outcome is CellOutcome.DONE else failed
        cells[make_setup_key(cell.setup)].append(cell)
    return tuple(
        SetupTotal(setup, tuple(done[key]), tuple(failed[key]))
        for setup in measured.setups
        for key in (make_setup_key(setup),)
    )


def restrict_to_shared_sessions(totals: Sequence[SetupTotal]) -> list[SetupTotal]:
    """Return totals over the sessions that no setup failed in.

    Otherwise a setup that failed in the expensive sessions would look cheap. A setup without any
    completed session is ignored and stays as it is.
    """
    measured = [{get_session_name(cell) for cell in one.cells} for one in totals if one.cells]
    shared = set[_SessionName].intersection(*measured) if measured else set[_SessionName]()
    return [
        replace(one, cells=tuple(cell for cell in one.cells if get_session_name(cell) in shared))
        for one in totals
    ]


def compute_control_totals(measured: BacktestResult) -> tuple[ControlTotal, ...]:
    """Return a total for each control, limit and budget, in the order of first occurrence."""
    found: dict[tuple[int, str, int | None], list[ControlResult]] = {}
    stakes: dict[tuple[_SessionName, int], int] = {}
    for control in measured.controls:
        found.setdefault((control.limit, control.name, control.budget), []).append(control)
        place = (control.namespace, control.session), control.limit
        stakes[place] = max(stakes.get(place, 0), control.scores.stakes)
    return tuple(
        ControlTotal(
            name=name,
            limit=limit,
            budget=budget,
            scores=add_scores(control.scores for control in controls),
            bound=_compute_bound(controls, stakes),
        )
        for (limit, name, budget), controls in found.items()
    )


def get_session_name(cell: Cell) -> _SessionName:
    return cell.namespace, cell.session


def make_setup_key(setup: Setup) -> str:
    """Return a dictionary key that is equal for equal setups."""
    return setup.model_dump_json()


def list_limits(measured: BacktestResult) -> tuple[int, ...]:
    return tuple(dict.fromkeys(setup.limit for setup in measured.setups))


def add_scores(scores: Iterable[Scores]) -> Scores:
    return reduce(add, scores, Scores())


def add_bills(bills: Iterable[Bill]) -> Bill:
    """Return the sum of all bills, with dollars only if every bill has them."""
    bills = list(bills)
    return Bill.model_validate(
        {name: _add_optional([getattr(bill, name) for bill in bills]) for name in Bill.model_fields}
    )


def _add_optional(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _compute_bound(
    controls: list[ControlResult], stakes: dict[tuple[_SessionName, int], int]
) -> float | None:
    if any(control.bound is None for control in controls):
        return None
    whole = sum(stakes[(one.namespace, one.session), one.limit] for one in controls)
    return divide(sum(control.bound or 0.0 for control in controls), whole)
