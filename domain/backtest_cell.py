"""Defines the results of a backtest, a cell for each session and setup, and sums them up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from operator import add

from pydantic import Field, JsonValue

from .cached_property import cached_property
from .event import StoredValue
from .fidelity.rows import Scores, divide


class CellOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    """The policy raised or returned something other than a plan."""
    TIMED_OUT = "timed-out"
    DIED = "died"
    """Its process ended without an answer, for example out of memory."""


class Setup(StoredValue):
    """The policy and settings of a run; equal setups over one log are one cell."""

    policy: str
    """A policy's name, with its preset, such as `pi@as_shipped`; or `none` and `recorded`."""
    settings: dict[str, JsonValue] = {}
    """The explicit settings only."""
    limit: int
    """Tokens that a prompt may have."""
    summarizer: str = Field(
        default="extractive", validation_alias="summariser", serialization_alias="summariser"
    )
    budget: int | None = None
    """The most tokens of each summary; None leaves it to the policy."""
    model: str | None = None
    """The model whose prices apply; None is the recorded model."""

    @property
    def label(self) -> str:
        """The name shown to users: `pi@as_shipped keep_tokens=8000`."""
        settings = " ".join(f"{name}={value}" for name, value in sorted(self.settings.items()))
        budget = f"budget={self.budget}" if self.budget is not None else ""
        summarizer = f"by {self.summarizer}" if self.summarizer != "extractive" else ""
        return " ".join(filter(None, (self.policy, settings, budget, summarizer)))


class Bill(StoredValue):
    """The cost of a cell's prompts, in tokens and in US dollars."""

    prompt_tokens: int = 0
    hit_tokens: int = 0
    """Tokens that the provider's cache holds: the unchanged beginnings."""
    written_tokens: int = 0
    """The other tokens, which are read and cached again."""
    rewritten_tokens: int = 0
    """The written tokens that a boundary or a rewind caused."""
    output_tokens: int = 0
    summary_input_tokens: int = 0
    summary_output_tokens: int = 0
    """Tokens of the calls that write summaries; 0 if rules wrote them."""
    prompt_usd: float | None = None
    """With prompt caching; None if the model or its prices are unknown."""
    uncached_usd: float | None = None
    """The same prompts without a cache."""
    summaries_usd: float | None = None
    output_usd: float | None = None

    @property
    def usd(self) -> float | None:
        parts = (self.prompt_usd, self.summaries_usd, self.output_usd)
        return None if any(part is None for part in parts) else sum(filter(None, parts))


class MissedFact(StoredValue):
    """A fact at stake that the view did not carry."""

    key: str
    kind: str
    call: int
    position: int
    """The newest position that contains it, which is its handle."""


class Cell(StoredValue):
    """The results of one session under one setup."""

    session: str
    namespace: str
    source: str | None
    setup: Setup
    outcome: CellOutcome = CellOutcome.DONE
    why: str = ""
    blocks: int = 0
    calls: int = 0
    reports: int = 0
    """Calls with a reported size, which calibrate all token counts; if 0, these are estimates."""
    overhead: int | None = None
    """Tokens of its prompts apart from blocks and summary; None if nothing was reported."""
    chars_per_token: float | None = None
    """Characters per token of its blocks; None if nothing was reported."""
    compactions: int = 0
    by_trigger: dict[str, int] = {}
    futile: int = 0
    """Requested compactions that removed nothing."""
    refused: int = 0
    """Calls whose prompt did not fit the model after all compaction: giant blocks, pins."""
    broken: int = 0
    """Boundaries whose unrepaired plan would have separated calls from results."""
    orphaned: int = 0
    """Calls and results that the unrepaired plans would have separated."""
    repairs: dict[str, int] = {}
    """How often a plan was repaired, by rule."""
    stood_in: int = 0
    """Summaries that the named summarizer did not write itself."""
    peak_tokens: int = 0
    bill: Bill = Bill()
    canonical: Scores = Scores()
    """On the boundaries that all policies share."""
    lost: tuple[MissedFact, ...] = ()
    """The canonical stakes that were lost."""
    context: tuple[int, ...] = ()
    """Tokens of the prompt of each call."""
    boundaries: tuple[int, ...] = ()
    """Numbers of the calls that follow a boundary."""
    seconds: float = 0.0
    """Processor time; ignored when cells are compared."""


class ControlResult(StoredValue):
    """The score of a control text on the canonical boundaries of one session.

    For the control `bound` there is no text: `bound` is the most stakes that any text of that size
    could carry.
    """

    session: str
    namespace: str
    source: str | None
    limit: int
    name: str
    budget: int | None = None
    """Tokens of each text; None if there is no budget."""
    scores: Scores = Scores()
    bound: float | None = None


class BacktestResult(StoredValue):
    """The result of a backtest; equal sessions and setups give equal results, except seconds."""

    setups: tuple[Setup, ...]
    cells: tuple[Cell, ...]
    """By session, then in the order of the setups."""
    controls: tuple[ControlResult, ...] = ()
    skipped: dict[str, str] = {}
    """The sessions that were left out, by name, with the reason."""


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
