"""The shape of a section: a frozen table of settings, and how people are told of each."""

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

from ...domain.policies.policy import NONE, Setting
from .toml_lines import Path

CONTRADICTION = "contradiction"
"""The type of the errors that say themselves what is wrong, and where in the section."""
VALUE = "is <value>"
"""Stands in what such an error says for the value, which may be too long or too secret to say."""

Texts = Annotated[tuple[str, ...], Strict(strict=False)]
"""A list of texts, as TOML and JSON have it."""


class Section(BaseModel):
    """A table of settings; each of them has a unit and a line of help."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _none_in_words(cls, value: Any, info: ValidationInfo) -> Any:
        """TOML has no null, and a variable has only text."""
        if not (isinstance(value, str) and value.strip().lower() == NONE and info.field_name):
            return value
        return None if told(cls, info.field_name).scalar.may_be_none else value


def setting(
    default: Any = ...,
    *,
    help: str,  # noqa: A002 - what it is called wherever settings are listed
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A field of a section, with what people are told of it."""
    extra: JsonDict = {"unit": unit, "least": least, "most": most}
    return Field(default, description=help, ge=least, le=most, json_schema_extra=extra)


def contradiction(*found: tuple[Path, str]) -> PydanticCustomError:
    """What a validator raises: places below what it validates, and what is wrong there."""
    return PydanticCustomError(CONTRADICTION, "contradiction", {"found": found})


class Shape(StrEnum):
    """What may stand behind the equals sign."""

    SCALAR = "scalar"
    LIST = "list"
    TABLE = "table"
    TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Told:
    """A setting as people are told of it."""

    shape: Shape
    scalar: Setting
    """The setting; of a list, any of its elements."""
    default: Any
    section: type[Section] | None = None
    """Of a table or of each of a list of tables, where its fields are known."""
    is_by_name: bool = False
    """The tables of that section stand in a table, by names that the user gives."""

    @property
    def takes(self) -> str:
        match self.shape:
            case Shape.LIST:
                return f"a list of {', '.join(self.scalar.among) or 'texts'}"
            case Shape.TABLE:
                return "a table of tables by name" if self.is_by_name else "a table"
            case Shape.TABLES:
                return "a list of tables"
            case _:
                return self.scalar.takes

    def read(self, text: str) -> Any:
        """The value that a variable's text stands for; the text itself where it stands for none."""
        if self.shape is Shape.SCALAR:
            return self.scalar.read(text)
        if text.lstrip()[:1] in {"[", "{"}:
            try:
                return json.loads(text)
            except ValueError:
                return text
        if self.shape is Shape.LIST:
            return [word.strip() for word in text.split(",") if word.strip()]
        return text


def told(section: type[Section], name: str) -> Told:
    """What a section says of one of its fields."""
    field = section.model_fields[name]
    inner, may_be_none = _without_none(field.annotation)
    shape, element = _shape(inner)
    is_table = shape in {Shape.TABLE, Shape.TABLES}
    known = _known(field)
    scalar = Setting(
        name=name,
        type=str if is_table or get_origin(element) is Literal else element,
        default=_default(field),
        unit=known.get("unit", ""),
        help=field.description or "",
        least=known.get("least"),
        most=known.get("most"),
        among=() if is_table else _among(element),
        may_be_none=may_be_none,
    )
    return Told(
        shape=shape,
        scalar=scalar,
        default=_default(field),
        section=element if is_table and _is_section(element) else None,
        is_by_name=shape is Shape.TABLE and inner is not element and _is_section(element),
    )


def _known(field: FieldInfo) -> Mapping[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    others = [one for one in get_args(annotation) if one is not NoneType]
    if NoneType in get_args(annotation):
        return others[0], True
    return annotation, False


def _shape(annotation: Any) -> tuple[Shape, Any]:
    """What stands there, and of what it is made."""
    origin = get_origin(annotation)
    if origin is tuple:
        element = _bare(get_args(annotation)[0])
        return (Shape.TABLES if _is_section(element) else Shape.LIST), element
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return Shape.TABLE, _bare(get_args(annotation)[1])
    return (Shape.TABLE if _is_section(annotation) else Shape.SCALAR), annotation


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _among(element: Any) -> tuple[str, ...]:
    if get_origin(element) is Literal:
        return get_args(element)
    if isinstance(element, type) and issubclass(element, Enum):
        return tuple(str(one.value) for one in element)
    return ()
