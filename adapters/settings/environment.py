"""Reads settings from the environment: `CUTBANK_SUMMARY_RETRIES=5` sets `retries` of `[summary]`.

Two underscores descend into a table: `CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS=4000`. A table or
list can be given as JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .name_suggestions import find_nearest
from .secret_values import REFUSAL, has_key, is_key_name
from .section import Section, SettingInfo, SettingShape, describe_setting
from .toml_lines import SettingPath

VARIABLE_PREFIX = "CUTBANK_"


@dataclass(frozen=True, slots=True)
class VariableValue:
    """The setting and value of one variable."""

    variable: str
    path: SettingPath
    value: Any


def read_variables(
    environ: Mapping[str, str], root: type[Section]
) -> Iterator[VariableValue | str]:
    """Yield what each variable sets; a sentence for one that sets nothing but probably should."""
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(VARIABLE_PREFIX) or not text.strip():
            continue
        first, *deeper = variable.removeprefix(VARIABLE_PREFIX).split("__")
        name, _, field = first.lower().partition("_")
        if name in root.model_fields:
            keys = [key for key in (name, field, *deeper) if key]
            path, about = _follow_path(root, keys)
            if is_key_name(variable) or has_key(text):
                yield f"{variable} {REFUSAL}"
            else:
                yield VariableValue(variable, path, about.parse(text) if about else text)
        elif (near := find_nearest(name, root.model_fields)) and (field or deeper):
            # Variables with this prefix may belong to other programs.
            yield f"{variable} sets nothing; did you mean {near.upper()} for {name.upper()}?"


def _follow_path(root: type[Section], keys: list[str]) -> tuple[SettingPath, SettingInfo | None]:
    """Return the path of a variable's name, and what is known of the setting there."""
    path: SettingPath = ()
    section: type[Section] | None = root
    about: SettingInfo | None = None
    for key in keys:
        if about and about.is_by_name:
            # A name chosen by the user is taken literally; fields follow it.
            path, about = (*path, key), None
            continue
        lowered = key.lower()
        path = (*path, lowered)
        is_known = section is not None and lowered in section.model_fields
        about = describe_setting(section, lowered) if section and is_known else None
        if about and about.shape is SettingShape.TABLE:
            section = about.section
        elif about:
            section = None
    return path, about
