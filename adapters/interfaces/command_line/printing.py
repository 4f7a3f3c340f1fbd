"""Says things on a terminal, into a pipe or as JSON, whatever the text holds."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ....domain.ranges import Ranges

COLUMN_GAP_CELLS, MIN_COLUMN_CELLS = 2, 12
"""Blanks between columns, and the characters that a column that is cut short has at least."""
MAX_RANGES = 8
_NUMBER = re.compile(r"(?:[-+<~$ ]*\d[\d,.]*[kMG%s]?[*?+ ]*)?|-|\u2013|unknown")
"""What is set to the right in a column of nothing else."""

_WORD = re.compile(r"\s*\S+")
# What moves a cursor, rings a bell, turns the reading direction or cannot be seen is shown by its
# number. Variation selectors of one byte stay: emoji need them.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def print_text(text: str = "", **style: Any) -> None:
    """A line or more for people; `style` is typer's, and left out where nobody would see it."""
    clean = escape_controls(text)
    if style and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        clean = typer.style(clean, **style)
    sys.stdout.write(clean + "\n")


def print_json(document: Any) -> None:
    """One JSON document, laid out for people where they see it."""
    sys.stdout.write(_encode_json(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def print_json_line(document: Any) -> None:
    """One JSON document of many, each in a line."""
    sys.stdout.write(_encode_json(document, indent=None) + "\n")


def print_json_story(head: dict[str, Any], name: str, story: Iterable[Any]) -> None:
    """One JSON document whose last key, `name`, is a list that is written as it comes."""
    opened = _encode_json(head, indent=None).removesuffix("}")
    sys.stdout.write(f"{opened}, {_encode_json(name, indent=None)}: [")
    for number, item in enumerate(story):
        sys.stdout.write((",\n" if number else "\n") + _encode_json(item, indent=None))
    sys.stdout.write("\n]}\n")


def _encode_json(document: Any, indent: int | None) -> str:
    # Half a surrogate pair is written as the stream's `backslashreplace` has it, which is how JSON
    # has it as well; other characters that the stream cannot say have to be escaped here.
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    text = json.dumps(document, ensure_ascii=not is_unicode, indent=indent)
    return _CONTROL_CHARACTERS.sub(_escape_match, text) if sys.stdout.isatty() else text


def _escape_match(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def print_note(text: str) -> None:
    """A line for people where the answer itself goes to standard output."""
    sys.stderr.write(escape_controls(text) + "\n")


def print_error(text: str) -> None:
    """One line to whoever started the program."""
    sys.stderr.write(f"cutbank: {' '.join(escape_controls(text).split())}\n")


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | int]],
    least: Mapping[str, int] | None = None,
) -> None:
    """Columns, numbers to the right; in a pipe, values with a tab between them.

    Where a terminal is too narrow, the columns that `least` names are cut short, each down to so
    many characters; else all but numbers and the first. If that is not enough, each row becomes a
    paragraph, with a line for each of its values.
    """
    cells = [
        [
            f"{cell:,}" if isinstance(cell, int) else " ".join(escape_controls(cell).split())
            for cell in row
        ]
        for row in rows
    ]
    if not sys.stdout.isatty():
        for row in ([*headings], *cells):
            print_text("\t".join(row))
        return
    # Only a table on a terminal pays for rich.
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    is_number = [all(_NUMBER.fullmatch(row[at]) for row in cells) for at in range(len(headings))]
    widths = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
    if least is None:
        named = zip(headings[1:], is_number[1:], strict=True)
        least = {name: MIN_COLUMN_CELLS for name, is_counted in named if not is_counted}
    spare = [
        max(0, width - least.get(name, width)) for name, width in zip(headings, widths, strict=True)
    ]
    over = sum(widths) + COLUMN_GAP_CELLS * (len(widths) - 1) - shutil.get_terminal_size().columns
    while over > 0 and max(spare) > 0:
        # Each is cut by the same part of what it has beyond its least.
        widest = max(
            (at for at in range(len(spare)) if spare[at] > 0),
            key=lambda at: widths[at] / (widths[at] - spare[at]),
        )
        widths[widest] -= 1
        spare[widest] -= 1
        over -= 1
    if over > 0:
        _print_paragraphs(headings, cells)
        return
    for number, row in enumerate([list(headings), *cells]):
        fitted = []
        for text, width, right in zip(row, widths, is_number, strict=True):
            if cell_len(text) > width:
                fitted.append(set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width))
            else:
                space = " " * (width - cell_len(text))
                fitted.append(space + text if right else text + space)
        print_text(
            (" " * COLUMN_GAP_CELLS).join(fitted).rstrip(), **({} if number else {"bold": True})
        )


def _print_paragraphs(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    width = shutil.get_terminal_size().columns
    for row in rows:
        for number, (heading, cell) in enumerate(zip(headings, row, strict=True)):
            lead = "" if number == 0 else f"  {heading}: "
            for line in wrap_cells(lead + cell, width, "    ") if cell else []:
                print_text(line, **({} if number else {"bold": True}))


def get_line_width() -> int:
    """Characters of a line: a terminal's width, or 100 in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100


def print_wrapped(text: str, indent: str) -> None:
    """A line that a terminal's width folds; what follows its first part is indented."""
    if sys.stdout.isatty():
        for line in wrap_cells(text, shutil.get_terminal_size().columns, indent):
            print_text(line)
    else:
        print_text(text)


def wrap_cells(text: str, width: int, indent: str) -> Iterator[str]:
    """A text in lines of so many cells, broken at blanks where that can be."""
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - as above

    room = max(1, width - len(indent))
    line = ""
    for word in _WORD.findall(text):
        if cell_len(line + word) <= width:
            line += word
            continue
        if line:
            yield line
        *full, last = chop_cells(word.lstrip(), room)
        yield from (indent + piece for piece in full)
        line = indent + last
    if line:
        yield line


def escape_controls(text: str) -> str:
    """A text that does nothing to a terminal but stand there."""
    text = text.replace("\r\n", "\n")
    return _CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], text)


def clip_text(text: str, width: int) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) < width and len(text) <= 4 * width else line[: width - 1] + "…"


def format_count(number: int, thing: str) -> str:
    """`1 token`, `2,048 tokens`, `3 entries`."""
    if number == 1:
        return f"1 {thing}"
    es = "es" if thing.endswith(("s", "sh", "x")) else "s"
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}{es}"
    return f"{number:,} {plural}"


def format_usd(dollars: float) -> str:
    """`$1,234.50`; what is less than a cent to two digits."""
    if dollars and abs(dollars) < 0.01:
        return f"${dollars:.2g}" if abs(dollars) >= 0.0001 else "<$0.0001"
    return f"${dollars:,.2f}"


def format_short_cost(dollars: float, *, is_part: bool) -> str:
    """`$1.23`; `$1.23+` where that is a part of it, and `unknown` where no part is known."""
    return f"{format_usd(dollars)}{'+' * is_part}" if dollars or not is_part else "unknown"


def format_short_tokens(tokens: int) -> str:
    """`999`, `12.3k`, `4.57M`: three digits."""
    if tokens < 1_000:
        return str(tokens)
    for unit, size in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        number = tokens / size
        if number < 999.5 or unit == "G":
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
            return f"{number:,.{digits}f}{unit}"
    raise AssertionError("the last unit takes all")


def shorten_home(path: str) -> str:
    """A path with `~` for the home of who runs this."""
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if f"{path}/".startswith(f"{home}/") else path


def format_handles(handles: "Ranges", most: int = MAX_RANGES) -> str:
    """The first few ranges of handles, and how many more there are."""
    shown = str(handles).split()
    more = len(shown) - most
    return " ".join(shown[:most]) + (f" and {format_count(more, 'more range')}" if more > 0 else "")


def list_handle_ranges(handles: "Ranges") -> list[list[int]]:
    """Handles as JSON has them, first and last of each range: `[[3, 9], [12, 12]]`."""
    return [list(run) for run in handles.runs]


def escape_unencodable() -> None:
    """Let the streams take what their encoding cannot say, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
