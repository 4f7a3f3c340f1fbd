"""Defines sections, frozen tables of settings, and how each setting is described to users."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
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
    default: Any,
    about: str,
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Return a field of a section, with its description for users; `...` makes it required."""
    extra: JsonDict = {"unit": unit, "least": least, "most": most}
    return Field(default, description=about, ge=least, le=most, json_schema_extra=extra)


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


def walk_values(value: Any, path: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Yield everything in a document's tables and lists, each with its path."""
    if isinstance(value, Mapping | list):
        for key, below in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield (*path, key), below
            yield from walk_values(below, (*path, key))


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """The description of a setting for users."""

    scalar: PolicySetting
    """The setting with its default; for a list, any of its elements."""
    is_list: bool = False
    is_table: bool = False
    """Whether the value, or each element of a list, is a table."""
    is_by_name: bool = False
    """Whether the table contains tables under names chosen by the user."""
    section: type[Section] | None = None
    """The fields of these tables, if they are known."""

    @property
    def accepted_values(self) -> str:
        if self.is_table:
            by_name = "a table of tables by name" if self.is_by_name else "a table"
            return "a list of tables" if self.is_list else by_name
        if self.is_list:
            return f"a list of {', '.join(self.scalar.among) or 'texts'}"
        return self.scalar.accepted_values

    def parse(self, text: str) -> Any:
        """Parse a variable's text; return the text itself if it cannot be parsed."""
        if not (self.is_list or self.is_table):
            return self.scalar.parse(text)
        if text.lstrip()[:1] in {"[", "{"}:
            try:
                return json.loads(text)
            except ValueError:
                return text
        if self.is_table:
            return text
        return [word.strip() for word in text.split(",") if word.strip()]


def describe_setting(section: type[Section], name: str) -> SettingInfo:
    """Describe one of a section's fields."""
    field = section.model_fields[name]
    kinds: tuple[Any, ...] = get_args(field.annotation)
    may_be_none = NoneType in kinds
    kind = next(one for one in kinds if one is not NoneType) if may_be_none else field.annotation
    holder = get_origin(kind)
    element: Any = kind
    if holder in {tuple, Mapping}:
        element = get_args(kind)[holder is Mapping]
        element = get_args(element)[0] if get_origin(element) is Annotated else element
    section_type: type[Section] | None = None
    if isinstance(element, type) and issubclass(element, Section):
        section_type = element
    is_table = section_type is not None or holder is Mapping
    choices: tuple[str, ...] = ()
    if get_origin(element) is Literal:
        choices, element = get_args(element), str
    elif isinstance(element, type) and issubclass(element, Enum):
        choices = tuple(str(one.value) for one in element)
    known: Any = field.json_schema_extra or {}
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
    return SettingInfo(
        scalar,
        is_list=holder is tuple,
        is_table=is_table,
        is_by_name=section_type is not None and holder is Mapping,
        section=section_type,
    )


def find_setting_info(root: type[Section], path: SettingPath) -> SettingInfo | None:
    """Return the description of the setting, table or element at a path; None if there is none."""
    section: type[Section] | None = root
    about: SettingInfo | None = None
    for step in path:
        if about and section is None and (about.is_by_name or isinstance(step, int)):
            # One of the tables or elements.
            section = about.section
            continue
        if section is None or step not in section.model_fields:
            return None
        about = describe_setting(section, str(step))
        section = None if about.is_by_name or about.is_list else about.section
    return about
