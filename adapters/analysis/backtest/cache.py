"""What was measured, kept by its fingerprint, so that a backtest goes on where it stopped."""

from pathlib import Path

from pydantic import TypeAdapter

from ....domain.backtest.cell import Cell
from ....domain.backtest.result import Control
from ...storage.sqlite.proven_rows import ProvenRows, usual_file
from .errands import Result

Cache = ProvenRows[Result]
_REMEDY = "name another file with --cache, or do without by --no-cache"
_RESULT: TypeAdapter[Result] = TypeAdapter(Cell | tuple[Control, ...])


def cache_in(path: Path) -> Cache:
    """The cache in that file, which is made where there is none; raises CacheFileError."""
    return ProvenRows(path, _RESULT, _REMEDY)


def usual_cache() -> Path:
    """Where a cache is that nobody named."""
    return usual_file("backtests.db")
