"""Reads the settings: defaults, then the file, then the environment; whatever is wrong, at once."""

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ...domain.errors import InvalidSettingError
from .environment import Given, given_by
from .mistakes import found_by, in_words, keys_in
from .origin import Origin
from .secret import REFUSAL, without_keys
from .settings import Settings
from .toml_file import TomlFile, read
from .toml_lines import Path


def load(path: str | FilePath | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the file at `path`; else of `CUTBANK_SETTINGS`, else of the usual place.

    Variables of the environment go before the file. Raises InvalidSettingError, which names all
    mistakes, each with its line or its variable.
    """
    environ = os.environ if environ is None else environ
    file = read(path, environ)
    mistakes = _Mistakes(file)
    tree = deepcopy(dict(file.document))
    for found in keys_in(tree):
        mistakes.add(found, REFUSAL)
    origins = {found: Origin(file=file.name, line=file.lines[found]) for found in leaves(tree)}
    for given in given_by(environ, Settings):
        if isinstance(given, str):
            mistakes.of_environment.append(given)
        elif _put(tree, origins, given):
            mistakes.variables[given.path] = given.variable
        else:
            mistakes.of_environment.append(
                f"{given.variable} sets nothing: {in_words(given.path[:-1])} is no table"
            )
    settings = None
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        for found, wrong in found_by(error, Settings):
            mistakes.add(found, wrong)
    mistakes.refuse()
    assert settings is not None, "whatever pydantic refuses is a mistake"
    return settings.from_sources(origins)


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where a document holds values: whatever is no table, and empty tables."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from leaves(below, (*path, key))
        return
    if path:
        yield path
    if isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))


def _put(tree: dict[str, Any], origins: dict[Path, Origin], given: Given) -> bool:
    """Let a variable's value take the place of the file's; tables are merged.

    False where it should stand in something that is no table.
    """
    *above, last = given.path
    table: Any = tree
    for step in above:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            return False
    if isinstance(given.value, dict) and isinstance(table.get(last), dict):
        for key, below in given.value.items():
            # It has a table to stand in, so it does.
            _put(tree, origins, Given(given.variable, (*given.path, key), below))
        return True
    table[last] = given.value
    length = len(given.path)
    for path in [path for path in origins if path[:length] == given.path]:
        del origins[path]
    for path in leaves(given.value, given.path):
        origins[path] = Origin(variable=given.variable)
    return True


class _Mistakes:
    """All that is wrong, in the order of the file, and then of the environment."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.variables: dict[Path, str] = {}
        self.of_environment: list[str] = []
        self.of_file: dict[Path, str] = {}

    def add(self, path: Path, wrong: str) -> None:
        """Note what is wrong at a path, and no more of it once something is."""
        for length in range(len(path), 0, -1):
            if variable := self.variables.get(path[:length]):
                what = variable if length == len(path) else f"{variable}: {in_words(path)}"
                self.of_environment.append(f"{what} {wrong}")
                return
        if path not in self.file.lines:
            # A variable may have set something below what is no table.
            for place, variable in self.variables.items():
                if place[: len(path)] == path:
                    self.of_environment.append(f"{variable}: {in_words(path)} {wrong}")
                    return
        if not any(path[:length] in self.of_file for length in range(1, len(path) + 1)):
            self.of_file[path] = f"{in_words(path)} {wrong}"

    def refuse(self) -> None:
        """Raise what was found, if anything was."""
        placed = sorted((self._line(path), sentence) for path, sentence in self.of_file.items())
        said = [f"{self.file.name}:{line}: {sentence}" for line, sentence in placed]
        if found := [*said, *self.of_environment]:
            raise InvalidSettingError(*map(without_keys, found))

    def _line(self, path: Path) -> int:
        """Where a value stands, or the table that it should stand in."""
        return next(
            (
                self.file.lines[path[:length]]
                for length in range(len(path), 0, -1)
                if path[:length] in self.file.lines
            ),
            1,
        )
