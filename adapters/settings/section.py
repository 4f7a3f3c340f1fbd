"""Defines sections, frozen tables of settings, and how each setting is described to users."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationInfo, field_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from ...domain.policies.policy import NO_VALUE, PolicySetting

SettingPath = tuple[str | int, ...]
"""Keys and list indices, outermost first."""

CONTRADICTION_TYPE = "contradiction"
"""The type of errors that name the place in the section and the fault."""
VALUE_PLACEHOLDER = "is <value>"
"""The placeholder for the value in an error, since a value may be too long or secret."""

TextTuple = Annotated[tuple[str, ...], Strict(strict=False)]
"""A list of strings, as in TOML and JSON."""


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A line of a file, or an environment variable; neither for a default."""

    file: str | None = None
    line: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.line}"
        return self.variable or "default"


UNSET = SettingOrigin()


class Section(BaseModel):
    """A table of settings, each with a unit and a line of help.

    A validator raises ValueError with the text that follows the setting's name, or
    `make_contradiction`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _parse_none(cls, value: Any, info: ValidationInfo) -> Any:
        """Read `none` as None, since TOML has no null and a variable is always text."""
        if not (isinstance(value, str) and value.strip().lower() == NO_VALUE and info.field_name):
            return value
        return None if describe_setting(cls, info.field_name).scalar.may_be_none else value


def section_setting(
    default: Any = ...,
    *,
    help: str,  # noqa: A002 - the word used wherever settings are listed
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Return a field of a section, with its description for users."""
    extra: JsonDict = {"unit": unit, "least": least, "most": most}
    return Field(default, description=help, ge=least, le=most, json_schema_extra=extra)


def make_contradiction(*found: tuple[SettingPath, str]) -> PydanticCustomError:
    """Return the error for a validator to raise, with paths below its value and their faults."""
    return PydanticCustomError(CONTRADICTION_TYPE, "contradiction", {"found": found})


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return by_folded[near[0]] if near else None


def describe_unknown_name(name: str, known: Iterable[str], thing: str) -> str:
    """Return e.g. `is no policy; did you mean reserve-headroom?`, without repeating the name."""
    known = list(known)
    near = find_nearest(name, known)
    meant = f"did you mean {near}?" if near else f"there is {', '.join(known) or 'none'}"
    return f"is no {thing}; {meant}"


class SettingShape(StrEnum):
    """The kinds of values that a setting can have."""

    SCALAR = "scalar"
    LIST = "list"
    TABLE = "table"
    TABLES = "tables"


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """The description of a setting for users."""

    shape: SettingShape
    scalar: PolicySetting
    """The setting with its default; for a list, any of its elements."""
    section: type[Section] | None = None
    """For a table or a list of tables, the section with their fields, if known."""
    is_by_name: bool = False
    """Whether tables of that section are in a table, under names chosen by the user."""

    @property
    def accepted_values(self) -> str:
        match self.shape:
            case SettingShape.LIST:
                return f"a list of {', '.join(self.scalar.among) or 'texts'}"
            case SettingShape.TABLE:
                return "a table of tables by name" if self.is_by_name else "a table"
            case SettingShape.TABLES:
                return "a list of tables"
            case _:
                return self.scalar.accepted_values

    def parse(self, text: str) -> Any:
        """Parse a variable's text; return the text itself if it cannot be parsed."""
        if self.shape is SettingShape.SCALAR:
            return self.scalar.parse(text)
        if text.lstrip()[:1] in {"[", "{"}:
            try:
                return json.loads(text)
            except ValueError:
                return text
        if self.shape is SettingShape.LIST:
            return [word.strip() for word in text.split(",") if word.strip()]
        return text


def describe_setting(section: type[Section], name: str) -> SettingInfo:
    """Describe one of a section's fields."""
    field = section.model_fields[name]
    types = [one for one in get_args(field.annotation) if one is not NoneType]
    may_be_none = NoneType in get_args(field.annotation)
    shape, element, is_by_name = _find_shape(types[0] if may_be_none else field.annotation)
    subsection: type[Section] | None = (
        element if isinstance(element, type) and issubclass(element, Section) else None
    )
    is_table = shape in {SettingShape.TABLE, SettingShape.TABLES}
    choices: tuple[Any, ...] = ()
    if get_origin(element) is Literal:
        choices, element = get_args(element), str
    elif isinstance(element, type) and issubclass(element, Enum):
        choices = tuple(str(one.value) for one in element)
    extra = field.json_schema_extra
    known: dict[str, Any] = {**extra} if isinstance(extra, dict) else {}
    scalar = PolicySetting(
        name=name,
        type=str if is_table else element,
        default=None if field.is_required() else field.get_default(call_default_factory=True),
        unit=known.get("unit", ""),
        help=field.description or "",
        least=known.get("least"),
        most=known.get("most"),
        among=choices,
        may_be_none=may_be_none,
    )
    return SettingInfo(shape, scalar, subsection, is_by_name)


def _find_shape(annotation: Any) -> tuple[SettingShape, Any, bool]:
    """Return the shape, the type of its elements, and whether these are tables by name."""
    if get_origin(annotation) not in {tuple, Mapping}:
        is_table = isinstance(annotation, type) and issubclass(annotation, Section)
        return (SettingShape.TABLE if is_table else SettingShape.SCALAR), annotation, False
    is_list = get_origin(annotation) is tuple
    element = get_args(annotation)[0 if is_list else 1]
    element = get_args(element)[0] if get_origin(element) is Annotated else element
    is_section = isinstance(element, type) and issubclass(element, Section)
    if is_list:
        return (SettingShape.TABLES if is_section else SettingShape.LIST), element, False
    return SettingShape.TABLE, element, is_section
