"""What is wrong with settings, one sentence for each mistake: what, where, and what it takes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .nearest import names_only, nearest
from .secret import REFUSAL, holds_a_key, names_a_key, shown
from .section import CONTRADICTION, VALUE, Section, Shape, Told, told
from .toml_lines import Path


def in_words(path: Path) -> str:
    """A path as TOML would have it: `models."gpt-4o".context`, `hooks.commands[0].on`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        else:
            is_bare = step.replace("_", "").replace("-", "").isalnum() and step.isascii()
            words += ("." if words else "") + (step if is_bare else f'"{step}"')
    return words


def keys_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where a document holds what looks like a key."""
    match value:
        case Mapping():
            for key, below in value.items():
                yield from keys_in(below, (*path, key))
        case list():
            for index, below in enumerate(value):
                yield from keys_in(below, (*path, index))
        case _ if holds_a_key(value):
            yield path
        case _:
            pass


def found_by(error: ValidationError, root: type[Section]) -> Iterator[tuple[Path, str]]:
    """Each mistake: where it is, and what is to be said behind the name of what is there."""
    for one in error.errors(include_url=False):
        path: Path = one["loc"]
        if one["type"] == CONTRADICTION:
            for below, wrong in one.get("ctx", {})["found"]:
                value = _value_at(one["input"], below)
                there = (*path, *below)
                yield there, wrong.replace(VALUE, f"is {shown(value)}")
        else:
            yield path, _wrong(one, root)


def _wrong(one: ErrorDetails, root: type[Section]) -> str:
    path: Path = one["loc"]
    if one["type"] == "extra_forbidden":
        if names_a_key(str(path[-1])):
            return REFUSAL
        holder = about_of(root, path[:-1])
        section = holder.section if holder and holder.section else root
        return names_only(str(path[-1]), section.model_fields, "setting")
    if one["type"] == "missing":
        about = about_of(root, path)
        return f"is missing; it takes {about.takes}" if about else "is missing"
    about = about_of(root, path)
    value = shown(one["input"])
    if one["type"] == "model_type":
        return f"is {value}; it takes a table"
    if about is None:
        return f"is {value}: {one['msg']}"
    is_element = about.shape is Shape.LIST and isinstance(path[-1], int)
    takes = about.scalar.takes if is_element else about.takes
    near = nearest(str(one["input"]), about.scalar.among)
    meant = f"did you mean {near}? It" if near else "it"
    return f"is {value}; {meant} takes {takes}"


def about_of(root: type[Section], path: Path) -> Told | None:
    """What is known of the setting, table or element at a path; None where nothing is."""
    section: type[Section] | None = root
    about: Told | None = None
    for step in path:
        if about and section is None and (about.is_by_name or isinstance(step, int)):
            # One of the tables, or one of the elements.
            section = about.section
            continue
        if section is None or step not in section.model_fields:
            return None
        about = told(section, str(step))
        is_one_table = about.shape is Shape.TABLE and not about.is_by_name
        section = about.section if is_one_table else None
    return about


def _value_at(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
        else:
            value = getattr(value, str(step), None)
    return value
