"""Says things on a terminal, into a pipe or as JSON, whatever the text holds."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ...domain.ranges import Ranges

PIPED_WIDTH = 1_000
"""Columns of a table that no screen limits."""
NAME_WIDTH, LAST_WIDTH = 20, 12
"""Columns that a row's name and what comes last have at least, however narrow a terminal is."""
RUNS_SHOWN = 8

# What moves a cursor, rings a bell or turns the reading direction is shown instead of obeyed.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def say(text: str = "", **style: Any) -> None:
    """A line or more for people; `style` is typer's, and left out where nobody would see it."""
    clean = readable(text)
    if style and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        clean = typer.style(clean, **style)
    sys.stdout.write(clean + "\n")


def say_json(document: Any) -> None:
    """One JSON document, laid out for people where they see it."""
    sys.stdout.write(_json(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def say_json_line(document: Any) -> None:
    """One JSON document of many, each in a line."""
    sys.stdout.write(_json(document, indent=None) + "\n")


def say_json_story(head: dict[str, Any], name: str, story: Iterable[Any]) -> None:
    """One JSON document whose last key, `name`, is a list that is written as it comes."""
    opened = _json(head, indent=None).removesuffix("}")
    sys.stdout.write(f"{opened}, {_json(name, indent=None)}: [")
    for number, item in enumerate(story):
        sys.stdout.write((",\n" if number else "\n") + _json(item, indent=None))
    sys.stdout.write("\n]}\n")


def _json(document: Any, indent: int | None) -> str:
    # Half a surrogate pair is written as the stream's `backslashreplace` has it, which is how JSON
    # has it as well; other characters that the stream cannot say have to be escaped here.
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    return json.dumps(document, ensure_ascii=not is_unicode, indent=indent)


def remark(text: str) -> None:
    """A line for people where the answer itself goes to standard output."""
    sys.stderr.write(readable(text) + "\n")


def complain(text: str) -> None:
    """One line to whoever started the program."""
    sys.stderr.write(f"cutbank: {' '.join(readable(text).split())}\n")


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Columns; whole numbers stand right, with separators.

    Names, which come first, may be folded, and what comes last cut short; nothing else is lost.
    """
    # Only a table pays for rich.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    rows = list(rows)
    cells = [
        [f"{cell:,}" if isinstance(cell, int) else readable(cell) for cell in row] for row in rows
    ]
    needs = [max(map(cell_len, column)) + 1 for column in zip(headings, *cells, strict=True)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH
    least = min(needs[0], NAME_WIDTH) + sum(needs[1:])
    is_cut = least > width and len(needs) > 2 and not any(isinstance(row[-1], int) for row in rows)
    if is_cut:
        last = max(min(needs[-1], LAST_WIDTH), needs[-1] - (least - width))
        least += last - needs[-1]
        needs[-1] = last
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        counts = any(isinstance(row[number], int) for row in rows)
        is_last = is_cut and number == len(headings) - 1
        table.add_column(
            heading,
            justify="right" if counts else "left",
            overflow="ellipsis" if is_last else "fold",
            no_wrap=number > 0,  # a name may be long, and stays whole
            max_width=needs[-1] - 1 if is_last else None,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    Console(file=sys.stdout, width=max(width, least), highlight=False).print(table, crop=False)


def readable(text: str) -> str:
    """A text that does nothing to a terminal but stand there."""
    text = text.replace("\r\n", "\n")
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def clipped(text: str, width: int) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) < width and len(text) <= 4 * width else line[: width - 1] + "…"


def counted(number: int, thing: str) -> str:
    """`1 token`, `2,048 tokens`, `3 entries`."""
    if number == 1:
        return f"1 {thing}"
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number:,} {plural}"


def shortly(handles: "Ranges", most: int = RUNS_SHOWN) -> str:
    """The first few ranges of handles, and how many more there are."""
    shown = str(handles).split()
    more = len(shown) - most
    return " ".join(shown[:most]) + (f" and {counted(more, 'more range')}" if more > 0 else "")


def runs(handles: "Ranges") -> list[list[int]]:
    """Handles as JSON has them, first and last of each range: `[[3, 9], [12, 12]]`."""
    return [list(run) for run in handles.runs]


def survive_any_text() -> None:
    """Let the streams take what their encoding cannot say, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
