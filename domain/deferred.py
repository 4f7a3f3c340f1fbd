"""A sequence that is made when somebody first looks into it, for those who mostly never do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, overload

T = TypeVar("T")


class Deferred(Sequence[T]):
    """What `make` gives, asked for once.

    It is asked when it may be late, so it has to build on what no longer changes.
    """

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    @property
    def is_made(self) -> bool:
        """Whether anybody has looked."""
        return "_made" in vars(self)

    @cached_property
    def _made(self) -> tuple[T, ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._made[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._made == tuple(other)

    __hash__ = None  # type: ignore[assignment]
