"""Keeps results by fingerprint, so that a backtest continues where it stopped."""

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
    """Open or create the cache in that file. Raises CacheFileError."""
    return CheckedCache(path, _RESULT, _REMEDY)


def find_default_cache() -> Path:
    return find_cache_file("backtests.db")
