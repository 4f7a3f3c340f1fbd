"""Computes a property once, without the lock that `functools` holds before Python 3.12."""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251 - the same to a type checker
else:

    class cached_property(functools.cached_property):  # noqa: N801, TID251 - the same but for its lock
        """A property that is computed when it is first read, and kept.

        Before Python 3.12 the one of `functools` holds a lock for all instances of the class while
        it computes. That lock stays locked in a child that another thread forks meanwhile, so the
        child would wait for it without end. Here two threads may compute the same value twice.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
