"""Loads settings: defaults, then the file, then the environment; reports all mistakes together.

The variable `CUTBANK_SUMMARY_RETRIES=5` sets `retries` of `[summary]`. Two underscores descend into
a table: `CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS=4000`. A table or list can be given as JSON.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ...domain.errors import InvalidSettingError
from .mistakes import (
    REFUSAL,
    find_keys,
    find_mistakes,
    format_path,
    has_key,
    hide_keys,
    is_key_name,
)
from .section import (
    Section,
    SettingInfo,
    SettingOrigin,
    SettingPath,
    SettingShape,
    describe_setting,
    find_nearest,
)
from .settings import Settings
from .toml_file import TomlFile, read_toml_file

VARIABLE_PREFIX = "CUTBANK_"


def load_settings(
    path: str | FilePath | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of the file at `path`, or of `CUTBANK_SETTINGS`, or of the usual place.

    Environment variables override the file. Raises InvalidSettingError with all mistakes, each with
    its line or variable.
    """
    environ = os.environ if environ is None else environ
    given = _GivenSettings(read_toml_file(path, environ))
    for variable, text in sorted(environ.items()):
        if variable.startswith(VARIABLE_PREFIX) and text.strip():
            given.set_variable(variable, text)
    settings = None
    try:
        settings = Settings.model_validate(given.tree)
    except ValidationError as error:
        for found, wrong in find_mistakes(error, Settings):
            given.add_mistake(found, wrong)
    given.raise_mistakes()
    assert settings is not None, "whatever pydantic refuses is a mistake"
    return settings.with_origins(given.origins)


def list_leaves(value: Any, path: SettingPath = ()) -> Iterator[SettingPath]:
    """Yield the paths of a document's values: everything but tables, and empty tables."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from list_leaves(below, (*path, key))
        return
    if path:
        yield path
    if isinstance(value, list):
        for index, below in enumerate(value):
            yield from list_leaves(below, (*path, index))


class _GivenSettings:
    """What file and environment give, with origins; mistakes are in that order."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.tree = dict(file.document)
        self.origins = {
            found: SettingOrigin(file=file.name, line=file.lines[found])
            for found in list_leaves(self.tree)
        }
        self.variables: dict[SettingPath, str] = {}
        self.of_environment: list[str] = []
        self.of_file: dict[SettingPath, str] = {}
        for found in find_keys(self.tree):
            self.add_mistake(found, REFUSAL)

    def set_variable(self, variable: str, text: str) -> None:
        """Set what a variable sets; note one that sets nothing but probably should."""
        first, *deeper = variable.removeprefix(VARIABLE_PREFIX).split("__")
        name, _, field = first.lower().partition("_")
        if name not in Settings.model_fields:
            near = find_nearest(name, Settings.model_fields)
            # Variables with this prefix may belong to other programs.
            if near and (field or deeper):
                self.of_environment.append(
                    f"{variable} sets nothing; did you mean {near.upper()} for {name.upper()}?"
                )
            return
        if is_key_name(variable) or has_key(text):
            self.of_environment.append(f"{variable} {REFUSAL}")
            return
        path, about = _follow_path(Settings, [key for key in (name, field, *deeper) if key])
        value = about.parse(text) if about else text
        if self._merge(path, value, SettingOrigin(variable=variable)):
            self.variables[path] = variable
        else:
            self.of_environment.append(
                f"{variable} sets nothing: {format_path(path[:-1])} is no table"
            )

    def _merge(self, path: SettingPath, value: Any, origin: SettingOrigin) -> bool:
        """Replace the value at a path; tables are merged.

        Returns False if the path leads through something that is not a table.
        """
        *above, last = path
        table: Any = self.tree
        for step in above:
            table = table.setdefault(step, {})
            if not isinstance(table, dict):
                return False
        if isinstance(value, dict) and isinstance(table.get(last), dict):
            for key, below in value.items():
                # Its table exists, so this succeeds.
                self._merge((*path, key), below, origin)
            return True
        table[last] = value
        for replaced in [one for one in self.origins if one[: len(path)] == path]:
            del self.origins[replaced]
        self.origins |= dict.fromkeys(list_leaves(value, path), origin)
        return True

    def add_mistake(self, path: SettingPath, wrong: str) -> None:
        """Note a mistake at a path; only the first one there counts."""
        above = [path[:length] for length in range(len(path), 0, -1)]
        if place := next((place for place in above if place in self.variables), None):
            variable = self.variables[place]
            what = variable if place == path else f"{variable}: {format_path(path)}"
            self.of_environment.append(f"{what} {wrong}")
            return
        if path not in self.file.lines:
            # A variable may have set something below a value that is not a table.
            for place, variable in self.variables.items():
                if place[: len(path)] == path:
                    self.of_environment.append(f"{variable}: {format_path(path)} {wrong}")
                    return
        if not any(place in self.of_file for place in above):
            self.of_file[path] = f"{format_path(path)} {wrong}"

    def raise_mistakes(self) -> None:
        placed = sorted((self._find_line(path), text) for path, text in self.of_file.items())
        found = [f"{self.file.name}:{line}: {text}" for line, text in placed]
        if found := [*found, *self.of_environment]:
            raise InvalidSettingError(*map(hide_keys, found))

    def _find_line(self, path: SettingPath) -> int:
        """Return the line of a value, or of the table in which it is missing."""
        above = (path[:length] for length in range(len(path), 0, -1))
        return next((self.file.lines[place] for place in above if place in self.file.lines), 1)


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
        if about:
            section = about.section if about.shape is SettingShape.TABLE else None
    return path, about
