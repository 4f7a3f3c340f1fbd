"""Caches what was found in a block for as long as the block lives."""

from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple
from weakref import KeyedRef

from ...blocks import AnyBlock

_BlockT = TypeVar("_BlockT", bound=AnyBlock)
_Args = TypeVarTuple("_Args")
_ResultT = TypeVar("_ResultT")


class CachedPerBlock(Generic[_BlockT, *_Args, _ResultT]):
    """A pure function of a block that runs once.

    Trying policies on a session summarizes each block many times. Blocks are matched by identity,
    because comparing their texts would take as long as the function.
    """

    def __init__(self, find: Callable[[_BlockT, *_Args], _ResultT]) -> None:
        self._find = find
        self._known: dict[int, tuple[KeyedRef[int, _BlockT], dict[tuple[*_Args], _ResultT]]] = {}

    def __call__(self, block: _BlockT, *how: *_Args) -> _ResultT:
        key = id(block)
        known = self._known.get(key)
        if known is None:
            # The entry is removed before another block can get the same id.
            known = self._known[key] = (KeyedRef(block, self._forget_block, key), {})
        found = known[1]
        if how not in found:
            found[how] = self._find(block, *how)
        return found[how]

    def _forget_block(self, block: KeyedRef[int, _BlockT]) -> None:
        self._known.pop(block.key, None)

    def cache_clear(self) -> None:
        self._known.clear()
