"""Loads settings: defaults, then the file, then the environment; reports all mistakes together.

The variable `CUTBANK_SUMMARY_RETRIES=5` sets `retries` of `[summary]`. Two underscores descend into
a table: `CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS=4000`. A table or list can be given as JSON.
"""

import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ...domain.errors import InvalidSettingError
from .mistakes import REFUSAL, find_mistakes, format_path, has_key, hide_keys, is_key_name
from .section import (
    UNSET,
    SettingOrigin,
    SettingPath,
    find_nearest,
    find_setting_info,
    walk_values,
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
    return given.validate()


class _GivenSettings:
    """What file and environment give, with the place of each value, and all mistakes in it."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.tree = dict(file.document)
        self.places = {
            path: SettingOrigin(file=file.name, line=line) for path, line in file.lines.items()
        }
        self.variables: dict[str, SettingPath] = {}
        self.of_environment: list[str] = []
        self.of_file: dict[SettingPath, tuple[int, str]] = {}
        for path, value in walk_values(self.tree):
            if has_key(value):
                self._add_mistake(path, REFUSAL)

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
        path: SettingPath = (name,)
        about = find_setting_info(Settings, path)
        for key in filter(None, (field, *deeper)):
            # A name chosen by the user is taken literally.
            is_chosen = about is not None and about.is_by_name and about.scalar.name == path[-1]
            path = (*path, key if is_chosen else key.lower())
            about = find_setting_info(Settings, path)
        is_field = about is not None and about.scalar.name == path[-1]
        value = about.parse(text) if about and is_field else text
        if self._set_value(path, value, SettingOrigin(variable=variable)):
            self.variables[variable] = path
        else:
            self.of_environment.append(
                f"{variable} sets nothing: {format_path(path[:-1])} is no table"
            )

    def _set_value(self, path: SettingPath, value: Any, origin: SettingOrigin) -> bool:
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
                self._set_value((*path, key), below, origin)
            return True
        table[last] = value
        for replaced in [one for one in self.places if one[: len(path)] == path]:
            del self.places[replaced]
        self.places |= {path: origin} | {below: origin for below, _ in walk_values(value, path)}
        return True

    def validate(self) -> Settings:
        try:
            settings = Settings.model_validate(self.tree)
        except ValidationError as error:
            for path, wrong in find_mistakes(error, Settings):
                self._add_mistake(path, wrong)
        else:
            if not (self.of_file or self.of_environment):
                return settings.with_origins(self.places)
        of_file = [
            f"{self.file.name}:{line}: {text}" for line, text in sorted(self.of_file.values())
        ]
        raise InvalidSettingError(*map(hide_keys, [*of_file, *self.of_environment]))

    def _add_mistake(self, path: SettingPath, wrong: str) -> None:
        """Note a mistake at a path; in the file only the first one there counts."""
        text = f"{format_path(path)} {wrong}"
        place = self._find_place(path)
        if place.variable:
            is_value = path == self.variables[place.variable]
            text = f"{place.variable} {wrong}" if is_value else f"{place.variable}: {text}"
            self.of_environment.append(text)
        elif not any(path[:length] in self.of_file for length in range(1, len(path) + 1)):
            self.of_file[path] = (place.line or 1, text)

    def _find_place(self, path: SettingPath) -> SettingOrigin:
        """Return the place of a value, or of the nearest thing that says what is there."""
        # A variable may have set something below a value that is not a table.
        below = (one for one in self.places if one[: len(path)] == path)
        above = (path[:length] for length in range(len(path) - 1, 0, -1))
        near = (one for one in (path, *below, *above) if one in self.places)
        return next((self.places[one] for one in near), UNSET)
