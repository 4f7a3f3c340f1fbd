"""One cell of a backtest: one session under one policy with one set of settings."""

from enum import StrEnum

from pydantic import JsonValue

from ..fidelity.scores import Scores
from ..record import Record


class CellOutcome(StrEnum):
    """How a cell ended."""

    DONE = "done"
    FAILED = "failed"
    """The policy raised, or answered what is no plan."""
    TIMED_OUT = "timed-out"
    DIED = "died"
    """Its process ended without an answer, as where memory ran out."""


class Setup(Record):
    """What a session is run under; two equal setups over one log are one cell."""

    policy: str
    """A policy's name, with its preset as `pi@as_shipped`; or `none` and `recorded`."""
    settings: dict[str, JsonValue] = {}
    """Those that were set besides, and no others."""
    limit: int
    """Tokens that a prompt may have."""
    summariser: str = "extractive"
    budget: int | None = None
    """Tokens that each summary may take; None leaves it to the policy."""
    model: str | None = None
    """Whose prices are reckoned with; None takes the recorded model's."""

    @property
    def label(self) -> str:
        """As people read it: `pi@as_shipped keep_tokens=8000`."""
        settings = " ".join(f"{name}={value}" for name, value in sorted(self.settings.items()))
        budget = f"budget={self.budget}" if self.budget is not None else ""
        summariser = f"by {self.summariser}" if self.summariser != "extractive" else ""
        return " ".join(filter(None, (self.policy, settings, budget, summariser)))


class Bill(Record):
    """What a cell's prompts come to, in tokens and in US dollars."""

    prompt_tokens: int = 0
    """Of all calls."""
    hit_tokens: int = 0
    """Of these, what the provider's cache holds: the beginning that stayed as it was."""
    written_tokens: int = 0
    """The rest: read and cached anew."""
    rewritten_tokens: int = 0
    """Of the written, what a boundary or a rewind made to be written again."""
    output_tokens: int = 0
    summary_input_tokens: int = 0
    summary_output_tokens: int = 0
    """Of the calls that would have written summaries; 0 where rules wrote them."""
    prompt_usd: float | None = None
    """With prompt caching; None where the model or its prices are not known."""
    uncached_usd: float | None = None
    """The same prompts without any cache."""
    summaries_usd: float | None = None
    output_usd: float | None = None

    @property
    def usd(self) -> float | None:
        parts = (self.prompt_usd, self.summaries_usd, self.output_usd)
        return None if any(part is None for part in parts) else sum(filter(None, parts))


class MissedFact(Record):
    """A fact that was at stake and that the view did not carry."""

    key: str
    kind: str
    call: int
    """The call that went on to use it."""
    position: int
    """Where history last said it: its handle."""


class Cell(Record):
    """What one session under one setup came to."""

    session: str
    namespace: str
    source: str | None
    setup: Setup
    outcome: CellOutcome = CellOutcome.DONE
    why: str = ""
    """What went wrong, in one line."""
    blocks: int = 0
    calls: int = 0
    reports: int = 0
    """Calls whose size was reported, by which the session's tokens are calibrated; 0: all tokens
    are estimates, four characters each."""
    overhead: int | None = None
    """Tokens that its prompts have besides blocks and summary; None where nothing was reported."""
    chars_per_token: float | None = None
    """Of its blocks; None where nothing was reported."""
    compactions: int = 0
    by_trigger: dict[str, int] = {}
    futile: int = 0
    """Compactions that were asked for and came to nothing."""
    refused: int = 0
    """Calls whose prompt did not fit the model, whatever was compacted: giant blocks, pins."""
    broken: int = 0
    """Boundaries whose raw plan would have parted calls from results."""
    orphaned: int = 0
    """Calls and results that the raw plans would have left alone."""
    repairs: dict[str, int] = {}
    """By rule, how often a raw plan was repaired."""
    stood_in: int = 0
    """Summaries that somebody else than the named summariser wrote."""
    peak_tokens: int = 0
    bill: Bill = Bill()
    canonical: Scores = Scores()
    """On the boundaries that all policies share."""
    own: Scores = Scores()
    """On the policy's own boundaries."""
    own_bound: float = 0.0
    """The most stakes of its own boundaries that any text of its summaries' sizes could carry."""
    lost: tuple[MissedFact, ...] = ()
    """Of the canonical stakes."""
    context: tuple[int, ...] = ()
    """Tokens of the prompt of each call."""
    boundaries: tuple[int, ...] = ()
    """Numbers of the calls in front of which there was a boundary."""
    seconds: float = 0.0
    """Of one processor; no part of what makes two cells equal."""
