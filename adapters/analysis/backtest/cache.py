"""What was measured, kept by its fingerprint, so that a backtest goes on where it stopped."""

from pathlib import Path

from pydantic import TypeAdapter

from ....domain.backtest.cell import Cell
from ....domain.backtest.result import ControlResult
from ...storage.sqlite.checked_cache import CheckedCache, find_cache_file
from .worker_messages import ItemResult

Cache = CheckedCache[ItemResult]
_REMEDY = "name another file with --cache, or do without by --no-cache"
_RESULT: TypeAdapter[ItemResult] = TypeAdapter(Cell | tuple[ControlResult, ...])


def open_result_cache(path: Path) -> Cache:
    """The cache in that file, which is made where there is none; raises CacheFileError."""
    return CheckedCache(path, _RESULT, _REMEDY)


def find_default_cache() -> Path:
    """Where a cache is that nobody named."""
    return find_cache_file("backtests.db")
