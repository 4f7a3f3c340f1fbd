"""Defines a sequence that is made on first use, because most callers never read it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, overload

_T = TypeVar("_T")


class LazySequence(Sequence[_T]):
    """The result of `make`, which is called once.

    `make` may run late, so it must read only data that no longer changes.
    """

    def __init__(self, make: Callable[[], Iterable[_T]]) -> None:
        self._make = make

    @property
    def is_loaded(self) -> bool:
        """Whether anybody has looked."""
        return "_items" in vars(self)

    @cached_property
    def _items(self) -> tuple[_T, ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, index: int) -> _T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[_T, ...]: ...

    def __getitem__(self, index: int | slice) -> _T | tuple[_T, ...]:
        return self._items[index]

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    __hash__ = None  # type: ignore[assignment]
