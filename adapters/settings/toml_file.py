"""Finds and reads the settings file, with the line of each value."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from platformdirs import user_config_path

from ...domain.errors import InvalidSettingError
from .mistakes import hide_keys
from .section import SettingPath, walk_values

SETTINGS_VARIABLE = "CUTBANK_SETTINGS"
_CLOSINGS = ("", "]", "]]", "]}", "]}]")
"""The ends of statements that go on in a further line, where only lists can be open."""
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file's content; without a name if there is none."""

    name: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[SettingPath, int] = field(default_factory=dict)


def find_settings_file(
    named: str | FilePath | None, environ: Mapping[str, str]
) -> tuple[FilePath, bool]:
    """Return the path of the settings file, and whether it was named explicitly."""
    if named is not None and not str(named).strip():
        raise InvalidSettingError("--settings needs the path of a file")
    given = named or environ.get(SETTINGS_VARIABLE)
    if not given:
        return user_config_path("cutbank", appauthor=False) / "settings.toml", False
    try:
        return FilePath(given).expanduser(), True
    except RuntimeError:  # an unknown home folder: use the path as it is
        return FilePath(given), True


def read_toml_file(named: str | FilePath | None, environ: Mapping[str, str]) -> TomlFile:
    """Read the named file, or the one in the usual place, if any."""
    path, is_named = find_settings_file(named, environ)
    try:
        # Some editors add a byte order mark.
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if is_named:
            raise InvalidSettingError(
                f"{path} does not exist: `cutbank settings --example` prints one to start with"
            ) from None
        return TomlFile()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidSettingError(f"{path}:{line}: is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise InvalidSettingError(f"{path} cannot be read ({error.strerror})") from None
    text = text.replace("\r\n", "\n")
    try:
        return TomlFile(str(path), tomllib.loads(text), find_lines(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettingError(hide_keys(f"{path}:{_make_toml_error(error, text)}")) from None
    except RecursionError:
        raise InvalidSettingError(f"{path}: nests lists or tables too deeply") from None


def _make_toml_error(error: tomllib.TOMLDecodeError, text: str) -> str:
    place = _PLACE.search(str(error))
    what = _PLACE.sub("", str(error))
    if place is None or place[1] is None:
        return f"{text.rstrip().count(chr(10)) + 1}: is not TOML: {what} at the end of the file"
    return f"{place[1]}: is not TOML: {what} at column {place[2]}"


def find_lines(document: str) -> dict[SettingPath, int]:
    """Return the line, from 1 on, of every table, key and element of a valid document.

    tomllib returns a document's content without positions, so each statement is parsed by itself,
    and one of several lines after each of them, as if it were closed there.
    """
    lines: dict[SettingPath, int] = {}
    table: SettingPath = ()
    tables_in: Counter[SettingPath] = Counter()
    statement, line = "", 1
    for number, text in enumerate(document.split("\n"), 1):
        statement += f"{text}\n"
        found = next(filter(None, (_parse_statement(statement, end) for end in _CLOSINGS)), None)
        if found is None:
            continue  # inside a text of several lines
        content, is_whole = found
        if statement.lstrip().startswith("["):
            table = ()
            while content:
                ((key, content),) = content.items()
                table = (*table, key)
                lines.setdefault(table, line)
                if isinstance(content, list):
                    (content,) = content
                    tables_in[table] += 1
                if table in tables_in:
                    table = (*table, tables_in[table] - 1)
                    lines.setdefault(table, line)
        else:
            for path, _ in walk_values(content, table):
                lines.setdefault(path, line)
        line = number + 1
        statement = "" if is_whole else statement
    return lines


def _parse_statement(statement: str, closing: str) -> tuple[Any, bool] | None:
    """Return the content of a statement, and whether that is all of it; None if it is not valid."""
    try:
        return tomllib.loads(statement + closing), not closing
    except tomllib.TOMLDecodeError:
        return None
