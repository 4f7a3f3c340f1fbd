"""Describes mistakes in settings, one sentence each: what, where, and what is accepted."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .secret_values import REFUSAL, has_key, is_key_name, show_value
from .section import (
    CONTRADICTION_TYPE,
    VALUE_PLACEHOLDER,
    Section,
    SettingInfo,
    SettingPath,
    SettingShape,
    describe_setting,
    describe_unknown_name,
    find_nearest,
)


def format_path(path: SettingPath) -> str:
    """Format a path as in TOML: `models."gpt-4o".context`, `hooks.commands[0].on`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        else:
            is_bare = step.replace("_", "").replace("-", "").isalnum() and step.isascii()
            words += ("." if words else "") + (step if is_bare else f'"{step}"')
    return words


def find_keys(value: Any, path: SettingPath = ()) -> Iterator[SettingPath]:
    """Yield the paths of values that look like API keys."""
    if isinstance(value, Mapping | list):
        below = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, one in below:
            yield from find_keys(one, (*path, key))
    elif has_key(value):
        yield path


def find_mistakes(error: ValidationError, root: type[Section]) -> Iterator[tuple[SettingPath, str]]:
    """Yield each mistake: its path, and the text that follows the setting's name."""
    for one in error.errors(include_url=False):
        path: SettingPath = one["loc"]
        if one["type"] == CONTRADICTION_TYPE:
            faults = one.get("ctx", {})["found"]
        elif one["type"] == "value_error":
            faults = [((), str(one.get("ctx", {})["error"]))]
        else:
            faults = [((), _describe_mistake(one, root))]
        for below, fault in faults:
            value = _get_at_path(one["input"], below)
            yield (*path, *below), fault.replace(VALUE_PLACEHOLDER, f"is {show_value(value)}")


def _describe_mistake(one: ErrorDetails, root: type[Section]) -> str:
    path: SettingPath = one["loc"]
    if one["type"] == "extra_forbidden":
        if is_key_name(str(path[-1])):
            return REFUSAL
        holder = find_setting_info(root, path[:-1])
        section = holder.section if holder and holder.section else root
        return describe_unknown_name(str(path[-1]), section.model_fields, "setting")
    about = find_setting_info(root, path)
    if one["type"] == "missing":
        return f"is missing; it takes {about.accepted_values}" if about else "is missing"
    value = show_value(one["input"])
    if one["type"] == "model_type":
        return f"is {value}; it takes a table"
    if about is None:
        return f"is {value}: {one['msg']}"
    is_element = about.shape is SettingShape.LIST and isinstance(path[-1], int)
    takes = about.scalar.accepted_values if is_element else about.accepted_values
    near = find_nearest(str(one["input"]), about.scalar.among)
    meant = f"did you mean {near}? It" if near else "it"
    return f"is {value}; {meant} takes {takes}"


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
        is_one_table = about.shape is SettingShape.TABLE and not about.is_by_name
        section = about.section if is_one_table else None
    return about


def _get_at_path(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
        else:
            value = getattr(value, str(step), None)
    return value
