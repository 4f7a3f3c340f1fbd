"""Declares settings of policies and sections, each with a unit and a line of help, and reads them.

A section is a pydantic model. A policy is a frozen dataclass whose fields are declared by
`setting`; `make_section` returns the section that checks them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

NO_VALUE = "none"
"""The text for a setting of None, since TOML has no null and a variable is always text."""
QUIRK = "quirk"
"""The mark of a policy's field that only presets change."""
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TYPE_NAMES: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}


class Section(BaseModel):
    """A table of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def section_setting(
    default: Any,
    about: str,
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Return a field of a section, with its description for users; `...` makes it required."""
    extra: Any = {"unit": unit, "least": least, "most": most}
    return Field(default, description=about, ge=least, le=most, json_schema_extra=extra)


def setting(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002 - the usual word
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    among: Iterable[str] = (),
) -> Any:
    """Declare a setting of a policy, as a field of its dataclass: its unit, bounds and purpose."""
    described = {"unit": unit, "help": help, "least": least, "most": most}
    return field(default=default, metadata={**described, "among": tuple(map(str, among))})


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """The description of a setting for users."""

    name: str
    value_type: Any
    """The type of the value, or of each element of a list or table."""
    default: Any
    """MISSING if the setting is required."""
    may_be_none: bool
    unit: str
    help: str
    least: float | None = None
    most: float | None = None
    among: tuple[str, ...] = ()
    is_list: bool = False
    is_by_name: bool = False
    """Whether it is a table with names that the user or a policy chooses."""

    @property
    def section(self) -> type[Section] | None:
        """The section of the table, or of each element."""
        made = self.value_type
        return made if isinstance(made, type) and issubclass(made, Section) else None

    @property
    def accepted_values(self) -> str:
        """The accepted values in words: `a whole number of tokens from 0, or none`."""
        words = " or ".join(self.among) or _TYPE_NAMES.get(self.value_type, "text")
        if self.is_list:
            return f"a list of {'tables' if self.section else ', '.join(self.among) or 'texts'}"
        if self.section or self.is_by_name:
            return "a table of tables by name" if self.section and self.is_by_name else "a table"
        if self.unit.startswith("of "):  # a unit such as `of the limit`
            words = f"a fraction {self.unit}"
        elif self.unit and self.value_type in {int, float}:
            words += f" of {self.unit}"
        words += f" from {self.least:,}" if self.least is not None else ""
        words += f" up to {self.most:,}" if self.most is not None else ""
        return f"{words}, or {NO_VALUE}" if self.may_be_none else words

    def parse(self, text: str) -> Any:
        """Return the value of a text, or the text itself if it has no valid form."""
        word = text.strip().lower()
        if self.may_be_none and word == NO_VALUE:
            return None
        if self.is_list and not word.startswith("["):
            return text if self.section else [one.strip() for one in text.split(",") if one.strip()]
        try:
            if self.is_list or self.section or self.is_by_name:
                return orjson.loads(text)
            return _TRUTHS.get(word, text) if self.value_type is bool else self.value_type(text)
        except ValueError:
            return text


def describe_field(name: str, info: FieldInfo) -> SettingInfo:
    """Describe one field of a section."""
    kind: Any = info.annotation
    kinds: tuple[Any, ...] = get_args(kind)
    if may_be_none := NoneType in kinds:
        kind = next(one for one in kinds if one is not NoneType)
    holder = get_origin(kind)
    element = get_args(kind)[holder is Mapping] if holder in {tuple, Mapping} else kind
    element = get_args(element)[0] if get_origin(element) is Annotated else element
    among: tuple[str, ...] = ()
    if get_origin(element) is Literal:
        among, element = get_args(element), str
    elif isinstance(element, type) and issubclass(element, Enum):
        among = tuple(str(one.value) for one in element)
    known: Any = info.json_schema_extra or {}
    return SettingInfo(
        name=name,
        value_type=element,
        default=MISSING if info.is_required() else info.get_default(call_default_factory=True),
        may_be_none=may_be_none,
        unit=known.get("unit", ""),
        help=info.description or "",
        least=known.get("least"),
        most=known.get("most"),
        among=among,
        is_list=holder is tuple,
        is_by_name=holder is Mapping,
    )


def list_settings(declared: Any) -> tuple[SettingInfo, ...]:
    """Return all settings of a section or a policy in the order of their declaration."""
    return _list_settings(declared if isinstance(declared, type) else type(declared))


# Cached because a backtest makes a policy for each cell, and reading annotations is slow.
@lru_cache(maxsize=64)
def _list_settings(declared: Any) -> tuple[SettingInfo, ...]:
    section = declared if issubclass(declared, Section) else make_section(declared)
    return tuple(describe_field(name, one) for name, one in section.model_fields.items())


@lru_cache(maxsize=64)
def make_section(policy_class: Any) -> type[Section]:
    """Return the section that checks the settings of a policy."""
    hints, made = get_type_hints(policy_class), dict[str, Any]()
    for one in fields(policy_class):
        if QUIRK in one.metadata:
            continue
        known = dict(one.metadata)
        among, about = known.pop("among"), known.pop("help")
        hint: Any = Literal[among] if among else hints[one.name]
        if among and NoneType in get_args(hints[one.name]):
            hint = hint | None
        default = ... if one.default is MISSING else one.default
        made[one.name] = (hint, section_setting(default, about, **known))
    return create_model(policy_class.__name__, __base__=Section, **made)
