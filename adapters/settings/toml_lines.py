"""Finds the lines of keys and list elements in a TOML document.

tomllib returns a document's content without positions. This scanner only gets documents that
tomllib has accepted, so it only needs to know how strings and brackets nest.
"""

import re
import tomllib
from collections.abc import Iterator

SettingPath = tuple[str | int, ...]
"""Keys and list indices, outermost first."""

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


def find_lines(document: str) -> dict[SettingPath, int]:
    """Return the line, from 1 on, of every table, key and element of a valid document."""
    scan = _TomlScanner(document)
    while scan.mark or scan.token:
        if scan.mark == "\n":
            scan.advance()
        elif scan.mark == "[":
            scan.read_header()
        else:
            scan.read_pair(scan.table)
    return scan.lines


class _TomlScanner:
    """The scanner's state, and the lines found so far."""

    def __init__(self, document: str) -> None:
        self.lines: dict[SettingPath, int] = {}
        self.table: SettingPath = ()
        self.tables_in: dict[SettingPath, int] = {}
        """The number of tables so far in each list of tables."""
        self.tokens = _read_tokens(document)
        self.advance()

    def advance(self) -> None:
        self.token, self.mark, self.line = next(self.tokens, ("", "", 0))

    def read_header(self) -> None:
        line = self.line
        self.advance()
        if is_list := self.mark == "[":
            self.advance()
        keys = self.read_keys()
        path: SettingPath = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if is_list and number == len(keys):
                self.tables_in[path] = self.tables_in.get(path, 0) + 1
            if path in self.tables_in:
                path = (*path, self.tables_in[path] - 1)
                self.lines.setdefault(path, line)
        self.table = path
        while self.mark == "]":
            self.advance()

    def read_pair(self, table: SettingPath) -> None:
        line = self.line
        path = table
        for key in self.read_keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.advance()  # the equals sign
        self.read_value(path)

    def read_keys(self) -> list[str]:
        found: list[str] = []
        while self.token or self.mark == ".":
            if self.token:
                found.append(_read_key(self.token))
            self.advance()
        return found

    def read_value(self, path: SettingPath) -> None:
        """Read the value after an equals sign or in a list."""
        match self.mark:
            case "[":
                self.read_elements(path)
            case "{":
                self.read_inline_table(path)
            case _:
                # Numbers and dates may consist of several tokens.
                while self.token or self.mark == ".":
                    self.advance()

    def read_elements(self, path: SettingPath) -> None:
        self.advance()
        index = 0
        while self.mark != "]":
            if self.mark in {"\n", ","}:
                self.advance()
                continue
            self.lines[*path, index] = self.line
            self.read_value((*path, index))
            index += 1
        self.advance()

    def read_inline_table(self, path: SettingPath) -> None:
        self.advance()
        while self.mark != "}":
            if self.mark in {"\n", ","}:
                self.advance()
            else:
                self.read_pair(path)
        self.advance()


def _read_tokens(document: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for found in _TOKEN.finditer(document):
        if found.lastgroup == "mark":
            yield "", found[0], line
        elif found.lastgroup != "comment":
            yield found[0], "", line
        line += found[0].count("\n")


def _read_key(token: str) -> str:
    """Return a key without its quotes and escapes."""
    if token[0] not in "\"'":
        return token
    (key,) = tomllib.loads(f"{token} = 0")
    return key
