"""Defines the result of a backtest: its cells, and the controls to compare them with."""

from ..fidelity.scores import Scores
from ..record import Record
from .cell import Cell, Setup


class ControlResult(Record):
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


class BacktestResult(Record):
    """The result of a backtest; equal sessions and setups give equal results, except seconds."""

    setups: tuple[Setup, ...]
    cells: tuple[Cell, ...]
    """By session, then in the order of the setups."""
    controls: tuple[ControlResult, ...] = ()
    skipped: dict[str, str] = {}
    """The sessions that were left out, by name, with the reason."""
