"""Describes mistakes in settings, one sentence each: what, where, and what is accepted."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .name_suggestions import describe_unknown_name, find_nearest
from .secret_values import REFUSAL, has_key, is_key_name, show_value
from .section import (
    CONTRADICTION_TYPE,
    VALUE_PLACEHOLDER,
    Section,
    SettingInfo,
    SettingShape,
    describe_setting,
)
from .toml_lines import SettingPath


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
    match value:
        case Mapping():
            for key, below in value.items():
                yield from find_keys(below, (*path, key))
        case list():
            for index, below in enumerate(value):
                yield from find_keys(below, (*path, index))
        case _ if has_key(value):
            yield path
        case _:
            pass


def find_mistakes(error: ValidationError, root: type[Section]) -> Iterator[tuple[SettingPath, str]]:
    """Yield each mistake: its path, and the text that follows the setting's name."""
    for one in error.errors(include_url=False):
        path: SettingPath = one["loc"]
        if one["type"] == CONTRADICTION_TYPE:
            for below, wrong in one.get("ctx", {})["found"]:
                value = _get_at_path(one["input"], below)
                there = (*path, *below)
                yield there, wrong.replace(VALUE_PLACEHOLDER, f"is {show_value(value)}")
        else:
            yield path, _describe_mistake(one, root)


def _describe_mistake(one: ErrorDetails, root: type[Section]) -> str:
    path: SettingPath = one["loc"]
    if one["type"] == "extra_forbidden":
        if is_key_name(str(path[-1])):
            return REFUSAL
        holder = find_setting_info(root, path[:-1])
        section = holder.section if holder and holder.section else root
        return describe_unknown_name(str(path[-1]), section.model_fields, "setting")
    if one["type"] == "missing":
        about = find_setting_info(root, path)
        return f"is missing; it takes {about.accepted_values}" if about else "is missing"
    about = find_setting_info(root, path)
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
