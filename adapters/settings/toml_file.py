"""Finds and reads the settings file, with the line of each value."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from platformdirs import user_config_path

from ...domain.errors import InvalidSettingError
from .mistakes import hide_keys
from .section import SettingPath

SETTINGS_VARIABLE = "CUTBANK_SETTINGS"
_TOKEN = re.compile(
    r'''
    (?P<text> """(?:[^\\]|\\.)*?"""(?:"{0,2})   # the last three of up to five quotes close it
            | \'\'\'.*?\'\'\'(?:\'{0,2})
            | "(?:[^"\\\n]|\\.)*"
            | '[^'\n]*' )
    | (?P<comment> \#[^\n]* )
    | (?P<mark> [\n\[\]{}=,.] )
    | (?P<bare> [^\s\[\]{}=,."'\#]+ )
    ''',
    re.VERBOSE | re.DOTALL,
)
_MARKS = frozenset({*"\n[]{}=,.", ""})
"""The tokens that are not part of a key or value; the empty one is the end."""
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

    tomllib returns a document's content without positions. This scanner only gets documents that
    tomllib has accepted, so it only needs to know how strings and brackets nest.
    """
    scanner = _TomlScanner(document)
    while scanner.word:
        if scanner.word == "\n":
            scanner.advance()
        elif scanner.word == "[":
            scanner.read_header()
        else:
            scanner.read_pair(scanner.table)
    return scanner.lines


class _TomlScanner:
    """The scanner's state, and the lines found so far."""

    def __init__(self, document: str) -> None:
        self.lines: dict[SettingPath, int] = {}
        self.table: SettingPath = ()
        self._tables_in: Counter[SettingPath] = Counter()
        """The number of tables so far in each list of tables."""
        self._tokens = _read_tokens(document)
        self.advance()

    def advance(self) -> None:
        self.word, self._line = next(self._tokens)

    def read_header(self) -> None:
        line = self._line
        self.advance()
        if is_list := self.word == "[":
            self.advance()
        keys = self._read_keys()
        path: SettingPath = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if is_list and number == len(keys):
                self._tables_in[path] += 1
            if path in self._tables_in:
                path = (*path, self._tables_in[path] - 1)
                self.lines.setdefault(path, line)
        self.table = path
        while self.word == "]":
            self.advance()

    def read_pair(self, table: SettingPath) -> None:
        line, path = self._line, table
        for key in self._read_keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.advance()  # the equals sign
        self._read_value(path)

    def _read_keys(self) -> list[str]:
        keys: list[str] = []
        while self.word == "." or self.word not in _MARKS:
            if self.word != ".":
                keys.append(_unquote_key(self.word))
            self.advance()
        return keys

    def _read_value(self, path: SettingPath) -> None:
        """Read the value after an equals sign or in a list."""
        if self.word not in {"[", "{"}:
            # Numbers and dates may consist of several tokens.
            while self.word == "." or self.word not in _MARKS:
                self.advance()
            return
        is_list, index = self.word == "[", 0
        self.advance()
        while self.word not in {"]", "}"}:
            if self.word in {"\n", ","}:
                self.advance()
            elif is_list:
                self.lines[*path, index] = self._line
                self._read_value((*path, index))
                index += 1
            else:
                self.read_pair(path)
        self.advance()


def _read_tokens(document: str) -> Iterator[tuple[str, int]]:
    """Yield each token with its line, and then empty ones."""
    line = 1
    for found in _TOKEN.finditer(document):
        if found.lastgroup != "comment":
            yield found[0], line
        line += found[0].count("\n")
    while True:
        yield "", line


def _unquote_key(token: str) -> str:
    """Return a key without its quotes and escapes."""
    if token[0] not in "\"'":
        return token
    (key,) = tomllib.loads(f"{token} = 0")
    return key
