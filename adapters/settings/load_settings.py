"""Loads settings: defaults, then the file, then the environment; reports all mistakes together."""

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ...domain.errors import InvalidSettingError
from .environment import VariableValue, read_variables
from .mistakes import find_keys, find_mistakes, format_path
from .origin import SettingOrigin
from .secret_values import REFUSAL, hide_keys
from .settings import Settings
from .toml_file import TomlFile, read_toml_file
from .toml_lines import SettingPath


def load_settings(
    path: str | FilePath | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of the file at `path`, or of `CUTBANK_SETTINGS`, or of the usual place.

    Environment variables override the file. Raises InvalidSettingError with all mistakes, each with
    its line or variable.
    """
    environ = os.environ if environ is None else environ
    file = read_toml_file(path, environ)
    mistakes = _Mistakes(file)
    tree = deepcopy(dict(file.document))
    for found in find_keys(tree):
        mistakes.add(found, REFUSAL)
    origins = {
        found: SettingOrigin(file=file.name, line=file.lines[found]) for found in list_leaves(tree)
    }
    for given in read_variables(environ, Settings):
        if isinstance(given, str):
            mistakes.of_environment.append(given)
        elif _merge_variable(tree, origins, given):
            mistakes.variables[given.path] = given.variable
        else:
            mistakes.of_environment.append(
                f"{given.variable} sets nothing: {format_path(given.path[:-1])} is no table"
            )
    settings = None
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        for found, wrong in find_mistakes(error, Settings):
            mistakes.add(found, wrong)
    mistakes.raise_all()
    assert settings is not None, "whatever pydantic refuses is a mistake"
    return settings.with_origins(origins)


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


def _merge_variable(
    tree: dict[str, Any], origins: dict[SettingPath, SettingOrigin], given: VariableValue
) -> bool:
    """Replace the file's value with a variable's; tables are merged.

    Returns False if the path leads through something that is not a table.
    """
    *above, last = given.path
    table: Any = tree
    for step in above:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            return False
    if isinstance(given.value, dict) and isinstance(table.get(last), dict):
        for key, below in given.value.items():
            # Its table exists, so this succeeds.
            _merge_variable(tree, origins, VariableValue(given.variable, (*given.path, key), below))
        return True
    table[last] = given.value
    length = len(given.path)
    for path in [path for path in origins if path[:length] == given.path]:
        del origins[path]
    for path in list_leaves(given.value, given.path):
        origins[path] = SettingOrigin(variable=given.variable)
    return True


class _Mistakes:
    """All mistakes, in the order of the file, then of the environment."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.variables: dict[SettingPath, str] = {}
        self.of_environment: list[str] = []
        self.of_file: dict[SettingPath, str] = {}

    def add(self, path: SettingPath, wrong: str) -> None:
        """Note a mistake at a path; only the first one there counts."""
        for length in range(len(path), 0, -1):
            if variable := self.variables.get(path[:length]):
                what = variable if length == len(path) else f"{variable}: {format_path(path)}"
                self.of_environment.append(f"{what} {wrong}")
                return
        if path not in self.file.lines:
            # A variable may have set something below a value that is not a table.
            for place, variable in self.variables.items():
                if place[: len(path)] == path:
                    self.of_environment.append(f"{variable}: {format_path(path)} {wrong}")
                    return
        if not any(path[:length] in self.of_file for length in range(1, len(path) + 1)):
            self.of_file[path] = f"{format_path(path)} {wrong}"

    def raise_all(self) -> None:
        placed = sorted(
            (self._find_line(path), sentence) for path, sentence in self.of_file.items()
        )
        said = [f"{self.file.name}:{line}: {sentence}" for line, sentence in placed]
        if found := [*said, *self.of_environment]:
            raise InvalidSettingError(*map(hide_keys, found))

    def _find_line(self, path: SettingPath) -> int:
        """Return the line of a value, or of the table in which it is missing."""
        return next(
            (
                self.file.lines[path[:length]]
                for length in range(len(path), 0, -1)
                if path[:length] in self.file.lines
            ),
            1,
        )
