"""Remembers what a summarizer read in blocks, since policies have it read the same ones again."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, TypeVarTuple

from ..blocks import AnyBlock

_BlockT = TypeVar("_BlockT", bound=AnyBlock)
_Args = TypeVarTuple("_Args")
_ResultT = TypeVar("_ResultT")

_MAX_WORDS = 32_768


class Memo:
    """The results of pure functions, for as long as the summarizer that has it.

    Blocks are matched by identity, because comparing their texts would take as long as reading
    them. Too many results are all dropped.
    """

    def __init__(self, max_results: int = 32_768) -> None:
        self._max_results = max_results
        self._results: dict[Any, tuple[AnyBlock, Any]] = {}
        self._words: dict[Any, Any] = {}

    def read(
        self, function: Callable[[_BlockT, *_Args], _ResultT], block: _BlockT, *args: *_Args
    ) -> _ResultT:
        """Return `function(block, *args)`."""
        key = (function, id(block), args)
        known = self._results.get(key)
        if known is None:
            if len(self._results) >= self._max_results:
                self._results.clear()
            # The entry keeps its block alive, so that no other one gets the same id.
            known = self._results[key] = block, function(block, *args)
        result: _ResultT = known[1]
        return result

    def cache_words(self, function: Callable[[*_Args], _ResultT]) -> Callable[[*_Args], _ResultT]:
        """Return a function of words that remembers what it returned."""
        cached: Callable[[*_Args], _ResultT] = self._words.setdefault(
            function, lru_cache(_MAX_WORDS)(function)
        )
        return cached

    def __reduce__(self) -> tuple[type["Memo"], tuple[int]]:
        return Memo, (self._max_results,)  # ids mean nothing in another process
