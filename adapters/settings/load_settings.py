"""Finds the settings file, and loads settings where a file or a variable has any."""

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path

from ...domain.errors import InvalidSettingError
from .settings import Settings

SETTINGS_VARIABLE = "CUTBANK_SETTINGS"


def load_settings(
    path: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of the file at `path`, or of `CUTBANK_SETTINGS`, or of the usual place.

    Environment variables override the file. Raises InvalidSettingError with all mistakes, each with
    its file or variable.
    """
    environ = os.environ if environ is None else environ
    file, is_named = find_settings_file(path, environ)
    variables = {
        name: text
        for name, text in sorted(environ.items())
        if name.startswith("CUTBANK_") and text.strip() and name != SETTINGS_VARIABLE
    }
    is_there = file.is_file()
    if is_named and not is_there:
        raise InvalidSettingError(
            f"{file} is not a file: `cutbank settings --example` prints one to start with"
        )
    if not (is_there or variables):
        return Settings()
    from .sources import read_settings  # noqa: PLC0415 - start-up time without any settings

    return read_settings(str(file) if is_there else None, variables)


def find_settings_file(named: str | Path | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the path of the settings file, and whether it was named explicitly."""
    if named is not None and not str(named).strip():
        raise InvalidSettingError("--settings needs the path of a file")
    given = named or environ.get(SETTINGS_VARIABLE)
    if not given:
        return user_config_path("cutbank", appauthor=False) / "settings.toml", False
    try:
        return Path(given).expanduser(), True
    except RuntimeError:  # an unknown home folder: use the path as it is
        return Path(given), True
