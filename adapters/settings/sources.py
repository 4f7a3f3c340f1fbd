"""Reads settings from a TOML file and the environment, and reports all mistakes together.

The variable `CUTBANK_SUMMARY_RETRIES=5` sets `retries` of `[summary]`. Two underscores descend into
a table: `CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS=4000`. A table or list can be given as JSON.
"""

import json
from collections.abc import Iterator, Mapping
from tomllib import TOMLDecodeError
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from ...domain.errors import InvalidSettingError
from .section import (
    KEY_REFUSAL,
    SettingOrigin,
    SettingPath,
    find_mistakes,
    find_nearest,
    format_path,
    has_key,
    hide_keys,
    is_key_name,
)
from .settings import Settings

VARIABLE_PREFIX = "CUTBANK_"


class LoadedSettings(Settings, BaseSettings):
    """Settings that are read from sources."""

    model_config = SettingsConfigDict(case_sensitive=True, validate_default=False)


class VariableSource(InitSettingsSource):
    """What one environment variable sets."""

    def __init__(self, name: str, path: SettingPath, text: str) -> None:
        self.name, self.path, self.value = name, path, _parse_table(text)
        values: Any = self.value
        for step in reversed(path):
            values = {step: values}
        super().__init__(LoadedSettings, values)


def read_settings(file: str | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a file, if any, and of variables, which override it."""
    source = _read_file(file)
    variables, mistakes = _read_variables(environ)
    origins = _find_origins(file, source.toml_data, variables)
    found = [(path, KEY_REFUSAL) for path, one in _walk(source.toml_data) if has_key(one)]
    # The sources that come first win, and longer names are of deeper tables.
    sources: dict[str, Any] = {"_build_sources": ((*reversed(variables), source), {})}
    try:
        settings = LoadedSettings(**sources)
    except ValidationError as error:
        found += find_mistakes(error, Settings)
    else:
        if not (found or mistakes):
            return settings.with_origins(origins)
    paths = {one.name: one.path for one in variables}
    shown: list[SettingPath] = []
    for path, wrong in found:
        place = _find_place(path, origins)
        if place.variable:
            name = "" if paths[place.variable] == path else f": {format_path(path)}"
            mistakes.append(f"{place.variable}{name} {wrong}")
        elif not any(path[: len(one)] == one for one in shown):  # one mistake at each place
            shown.append(path)
            mistakes.insert(len(shown) - 1, f"{file}: {format_path(path)} {wrong}")
    raise InvalidSettingError(*map(hide_keys, mistakes))


def _read_file(file: str | None) -> TomlConfigSettingsSource:
    try:
        return TomlConfigSettingsSource(LoadedSettings, file)
    except TOMLDecodeError as error:
        raise InvalidSettingError(hide_keys(f"{file}: is not TOML: {error}")) from None
    except UnicodeDecodeError:
        raise InvalidSettingError(f"{file}: is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise InvalidSettingError(f"{file} cannot be read ({error.strerror})") from None
    except RecursionError:
        raise InvalidSettingError(f"{file}: nests lists or tables too deeply") from None


def _read_variables(environ: Mapping[str, str]) -> tuple[list[VariableSource], list[str]]:
    """Return what variables set, and mistakes in those that set nothing."""
    found: list[VariableSource] = []
    mistakes: list[str] = []
    for variable, text in environ.items():
        first, *deeper = variable.removeprefix(VARIABLE_PREFIX).split("__")
        name, _, field = first.lower().partition("_")
        keys = [key for key in (field, *deeper) if key]
        if name not in Settings.model_fields:
            near = find_nearest(name, Settings.model_fields)
            # Variables with this prefix may belong to other programs.
            if near and keys:
                meant = f"did you mean {near.upper()} for {name.upper()}?"
                mistakes.append(f"{variable} sets nothing; {meant}")
        elif is_key_name(variable) or has_key(text):
            mistakes.append(f"{variable} {KEY_REFUSAL}")
        else:
            literal = 1 if name == "models" else 0  # a model's name is taken as it is
            lower = [key.lower() for key in keys[literal:]]
            found.append(VariableSource(variable, (name, *keys[:literal], *lower), text))
    return found, mistakes


def _parse_table(text: str) -> Any:
    """Return the table or list of a JSON text; another text as it is."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _walk(value: Any, path: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Yield everything in a document's tables and lists, each with its path."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), below
            yield from _walk(below, (*path, key))


def _find_origins(
    file: str | None, document: Mapping[str, Any], variables: list[VariableSource]
) -> dict[SettingPath, SettingOrigin]:
    origins = {path: SettingOrigin(file=file) for path, _ in _walk(document)}
    for variable in variables:
        for path, value in ((variable.path, variable.value), *_walk(variable.value, variable.path)):
            if not isinstance(value, dict):  # tables are merged, all else is replaced
                origins = {one: at for one, at in origins.items() if one[: len(path)] != path}
            origins[path] = SettingOrigin(variable=variable.name)
    return origins


def _find_place(path: SettingPath, origins: Mapping[SettingPath, SettingOrigin]) -> SettingOrigin:
    """Return the place of a value, or of the nearest thing that says what is there."""
    # A variable may have set something below a value that is not a table.
    below = [origins[one] for one in origins if one[: len(path)] == path]
    above = [path[:length] for length in range(len(path) - 1, 0, -1)]
    near = [*sorted(below, key=lambda one: one.variable is None)]
    near += [origins[one] for one in above if one in origins]
    return near[0] if near else SettingOrigin()
