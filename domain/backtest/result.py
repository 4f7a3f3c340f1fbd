"""All that a backtest measured: its cells, and the controls that tell what their scores mean."""

from ..fidelity.scores import Scores
from ..record import Record
from .cell import Cell, Setup


class ControlResult(Record):
    """What a text that no policy would write scores on the canonical boundaries of one session.

    The bound is no text: `bound` is the most stakes that any text of that size could carry.
    """

    session: str
    namespace: str
    source: str | None
    limit: int
    name: str
    """`full history`, `drop`, `masking`, `file list`, `random lines`, `random ledger`,
    `frequency ledger`, `bound`."""
    budget: int | None = None
    """Tokens of each text; None where it has none."""
    scores: Scores = Scores()
    bound: float | None = None


class BacktestResult(Record):
    """The answer of a backtest; the same sessions and setups give the same, but for seconds."""

    setups: tuple[Setup, ...]
    cells: tuple[Cell, ...]
    """By session, then in the order of the setups."""
    controls: tuple[ControlResult, ...] = ()
    skipped: dict[str, str] = {}
    """Sessions that were left out, by name: why."""
