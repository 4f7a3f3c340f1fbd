"""The shape shared by everything that is stored: frozen, and tolerant of fields from the future."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from .errors import UnknownFieldError

MAX_COUNT = 10**12
"""No count of tokens, no cost and no duration comes near it; sums of such still fit 64 bits."""


class Record(BaseModel):
    """A frozen value of the stored format.

    Reading a log keeps and writes back a field that this version does not know: a log outlives the
    program that wrote it. A caller who gives such a field made a mistake: UnknownFieldError.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    if not TYPE_CHECKING:  # type checkers know the fields of each class by themselves

        def __new__(cls, *_: Any, **fields: Any) -> Self:
            """Refuse fields that do not exist; pydantic reads a log without coming here."""
            known = cls.__pydantic_fields__
            if not fields.keys() <= known.keys():
                unknown = next(name for name in fields if name not in known)
                raise UnknownFieldError(describe_unknown(cls.__name__, unknown, known))
            return super().__new__(cls)


def describe_unknown(owner: str, unknown: str, known: Iterable[str]) -> str:
    """Say that `owner` has no such field, and which one was probably meant."""
    names = sorted(known)
    nearest = get_close_matches(unknown, names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(names)}"
    return f"{owner} has no field {unknown!r}; {hint}"


def find_unknown(record: Record) -> str | None:
    """Describe the first field, here or further in, that this version does not know."""
    for unknown in record.model_extra or ():
        return describe_unknown(type(record).__name__, unknown, type(record).model_fields)
    for _, value in record:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Record) and (found := find_unknown(part)):
                return found
    return None


def _drop_impossible(number: Any) -> Any:
    """None in the place of a number that no provider can mean: it would break every sum."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return None if is_number and not 0 <= number <= MAX_COUNT else number


ReportedCount = Annotated[int | None, AfterValidator(_drop_impossible)]
"""A count that somebody else reported; an impossible one is none, also in logs that hold one."""
ReportedAmount = Annotated[float | None, BeforeValidator(_drop_impossible)]
"""The same of dollars and seconds; an integer of 310 digits is no float."""
BoundedCount = Annotated[int, AfterValidator(lambda count: max(-MAX_COUNT, min(count, MAX_COUNT)))]
"""A count that has to be there, as near as it can be kept."""
