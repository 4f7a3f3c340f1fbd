"""In which line of a TOML document each key and each element of a list begins.

tomllib says what is in a document, and not where. This only finds lines: it is shown documents
that tomllib has read, so it need not know what is right, only how strings and brackets nest.
"""

import re
import tomllib
from collections.abc import Iterator

Path = tuple[str | int, ...]
"""Keys, and indices of lists, from the outermost on."""

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


def lines_of(document: str) -> dict[Path, int]:
    """The line, from 1 on, of every table, key and element of a valid document."""
    scan = _Scan(document)
    while scan.mark or scan.token:
        if scan.mark == "\n":
            scan.advance()
        elif scan.mark == "[":
            scan.header()
        else:
            scan.pair(scan.table)
    return scan.lines


class _Scan:
    """Where the scanner stands, and what it found so far."""

    def __init__(self, document: str) -> None:
        self.lines: dict[Path, int] = {}
        self.table: Path = ()
        self.tables_in: dict[Path, int] = {}
        """How many tables a list of tables has by now."""
        self.tokens = _tokens(document)
        self.advance()

    def advance(self) -> None:
        self.token, self.mark, self.line = next(self.tokens, ("", "", 0))

    def header(self) -> None:
        """`[a.b]` or `[[a.b]]`."""
        line = self.line
        self.advance()
        if is_list := self.mark == "[":
            self.advance()
        keys = self.keys()
        path: Path = ()
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

    def pair(self, table: Path) -> None:
        """`a.b = value`."""
        line = self.line
        path = table
        for key in self.keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.advance()  # the equals sign
        self.value(path)

    def keys(self) -> list[str]:
        found: list[str] = []
        while self.token or self.mark == ".":
            if self.token:
                found.append(_key(self.token))
            self.advance()
        return found

    def value(self, path: Path) -> None:
        """Whatever stands behind an equals sign or in a list."""
        match self.mark:
            case "[":
                self.elements(path)
            case "{":
                self.inline_table(path)
            case _:
                # Numbers and dates may fall into several tokens.
                while self.token or self.mark == ".":
                    self.advance()

    def elements(self, path: Path) -> None:
        self.advance()
        index = 0
        while self.mark != "]":
            if self.mark in {"\n", ","}:
                self.advance()
                continue
            self.lines[*path, index] = self.line
            self.value((*path, index))
            index += 1
        self.advance()

    def inline_table(self, path: Path) -> None:
        self.advance()
        while self.mark != "}":
            if self.mark in {"\n", ","}:
                self.advance()
            else:
                self.pair(path)
        self.advance()


def _tokens(document: str) -> Iterator[tuple[str, str, int]]:
    """Each key or piece of a value, or else the mark, and its line."""
    line = 1
    for found in _TOKEN.finditer(document):
        if found.lastgroup == "mark":
            yield "", found[0], line
        elif found.lastgroup != "comment":
            yield found[0], "", line
        line += found[0].count("\n")


def _key(token: str) -> str:
    """A key as it is meant: what tomllib makes of its quotes and escapes."""
    if token[0] not in "\"'":
        return token
    (key,) = tomllib.loads(f"{token} = 0")
    return key
