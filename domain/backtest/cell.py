"""Defines the results of a backtest: a cell for each session and setup, and its controls."""

from enum import StrEnum

from pydantic import Field, JsonValue

from ..event import StoredValue
from ..fidelity.scores import Scores


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
