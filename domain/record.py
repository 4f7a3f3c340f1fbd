"""Defines the base of everything that is stored: frozen, and tolerant of unknown fields."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from .errors import UnknownFieldError

MAX_COUNT = 10**12
"""No real count of tokens, cost or duration is near it, and sums of such values still fit 64 bits.
"""


class Record(BaseModel):
    """A frozen value of the stored format.

    Reading keeps unknown fields and writes them back, because a log outlives the program that wrote
    it. Constructing with an unknown field raises UnknownFieldError.
    """

    # A field may keep a stored name that is not its own, by which it is read and written.
    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, serialize_by_alias=True
    )

    if not TYPE_CHECKING:  # type checkers know the fields of each class

        def __new__(cls, *_: Any, **fields: Any) -> Self:
            """Refuse unknown fields; pydantic does not pass here when it reads a log."""
            known = cls.__pydantic_fields__
            if not fields.keys() <= known.keys():
                unknown = next(name for name in fields if name not in known)
                raise UnknownFieldError(describe_unknown(cls.__name__, unknown, known))
            return super().__new__(cls)


def describe_unknown(owner: str, unknown: str, known: Iterable[str]) -> str:
    """Return a message that `owner` has no such field and suggests the closest one."""
    names = sorted(known)
    nearest = get_close_matches(unknown, names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(names)}"
    return f"{owner} has no field {unknown!r}; {hint}"


def find_unknown(record: Record) -> str | None:
    """Describe the first unknown field at any depth; return None if there is none."""
    for unknown in record.model_extra or ():
        return describe_unknown(type(record).__name__, unknown, type(record).model_fields)
    for _, value in record:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Record) and (found := find_unknown(part)):
                return found
    return None


def _drop_impossible(number: Any) -> Any:
    """Return None for a number that no provider can mean, since it would break every sum."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return None if is_number and not 0 <= number <= MAX_COUNT else number


ReportedCount = Annotated[int | None, AfterValidator(_drop_impossible)]
"""A reported count; an impossible value becomes None, also when read from a log."""
ReportedAmount = Annotated[float | None, BeforeValidator(_drop_impossible)]
"""The same for dollars and seconds; an integer of 310 digits does not fit a float."""
BoundedCount = Annotated[int, AfterValidator(lambda count: max(-MAX_COUNT, min(count, MAX_COUNT)))]
"""A required count, clamped to the limit."""
