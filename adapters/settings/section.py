"""Defines sections, frozen tables of settings, and how each setting is described to users."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationInfo, field_validator
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from ...domain.policies.policy import NO_VALUE, PolicySetting
from .toml_lines import SettingPath

CONTRADICTION_TYPE = "contradiction"
"""The type of errors that name the place in the section and the fault."""
VALUE_PLACEHOLDER = "is <value>"
"""The placeholder for the value in such an error, since a value may be too long or secret."""

TextTuple = Annotated[tuple[str, ...], Strict(strict=False)]
"""A list of strings, as in TOML and JSON."""


class Section(BaseModel):
    """A table of settings, each with a unit and a line of help."""

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
    """The setting; for a list, any of its elements."""
    default: Any
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
    inner, may_be_none = _strip_none(field.annotation)
    shape, element = _find_shape(inner)
    is_table = shape in {SettingShape.TABLE, SettingShape.TABLES}
    known = _read_metadata(field)
    scalar = PolicySetting(
        name=name,
        type=str if is_table or get_origin(element) is Literal else element,
        default=_read_default(field),
        unit=known.get("unit", ""),
        help=field.description or "",
        least=known.get("least"),
        most=known.get("most"),
        among=() if is_table else _find_choices(element),
        may_be_none=may_be_none,
    )
    return SettingInfo(
        shape=shape,
        scalar=scalar,
        default=_read_default(field),
        section=element if is_table and _is_section(element) else None,
        is_by_name=shape is SettingShape.TABLE and inner is not element and _is_section(element),
    )


def _read_metadata(field: FieldInfo) -> Mapping[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _read_default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _strip_none(annotation: Any) -> tuple[Any, bool]:
    others = [one for one in get_args(annotation) if one is not NoneType]
    if NoneType in get_args(annotation):
        return others[0], True
    return annotation, False


def _find_shape(annotation: Any) -> tuple[SettingShape, Any]:
    """Return the shape, and the type of its elements."""
    origin = get_origin(annotation)
    if origin is tuple:
        element = _strip_annotation(get_args(annotation)[0])
        return (SettingShape.TABLES if _is_section(element) else SettingShape.LIST), element
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return SettingShape.TABLE, _strip_annotation(get_args(annotation)[1])
    return (SettingShape.TABLE if _is_section(annotation) else SettingShape.SCALAR), annotation


def _strip_annotation(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _find_choices(element: Any) -> tuple[str, ...]:
    if get_origin(element) is Literal:
        return get_args(element)
    if isinstance(element, type) and issubclass(element, Enum):
        return tuple(str(one.value) for one in element)
    return ()
