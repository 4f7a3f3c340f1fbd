"""Prints text, tables and JSON to terminals and pipes safely, whatever the text holds."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ....domain.hooks import Progress as ReportProgress
    from ....domain.ranges import Ranges
    from ....domain.token_estimate import KindShare

COLUMN_GAP, MIN_COLUMN_CELLS, MIN_NAME_CELLS = "  ", 8, 20
"""What separates columns, and the minimum width of a shortened one and of the first."""
BAR_CELLS = 40
LABEL_CELLS = 9
MAX_RANGES = 8
INDENT = "    "
_NUMBER = re.compile(r"(?:[-+<~$ ]*\d[\d,.]*[kMG%s]?[*?+ ]*)?|-|\u2013|unknown")
"""A column with only such values is right-aligned."""

_WORD = re.compile(r"\s*\S+")
_LABEL = re.compile(r"\s*\S+\s{2,}")
"""What a line begins with if its values are below each other."""
# Characters that move the cursor, ring a bell, change the reading direction or are invisible are
# shown by number. One-byte variation selectors stay, since emoji need them.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def print_text(text: str = "", *, verbatim: bool = False, **style: Any) -> None:
    """Print text for people, which a terminal wraps at spaces unless it is to be copied verbatim.

    `style` is typer's, and only used on a terminal.
    """
    clean = escape_controls(text)
    if not sys.stdout.isatty():
        sys.stdout.write(clean + "\n")
        return
    lines = clean.split("\n")
    if not verbatim:
        lines = [part for line in lines for part in _wrap_line(line)]
    for line in lines:
        styled = style and not os.environ.get("NO_COLOR")
        sys.stdout.write((typer.style(line, **style) if styled else line) + "\n")


def _wrap_line(line: str) -> list[str]:
    width = get_width()
    if line.isascii() and len(line) <= width:
        return [line]
    label = _LABEL.match(line)
    cells = len(label[0]) if label else len(line) - len(line.lstrip()) + 2
    indent = " " * min(cells, width // 2)
    return list(_wrap_cells(line, width, indent, splits_words=False)) or [line]


def print_json(document: Any) -> None:
    sys.stdout.write(_encode_json(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def pick(value: object, names: str) -> dict[str, Any]:
    """Return attributes by their names in JSON, in this order: `lineage at=coordinate.position`.

    All are None if there is no value.
    """
    words = (name.rpartition("=") for name in names.split())
    return {
        name or path: None if value is None else attrgetter(path)(value) for name, _, path in words
    }


def print_json_line(document: Any) -> None:
    """Print one JSON document of many, one per line."""
    sys.stdout.write(_encode_json(document, indent=None) + "\n")


def print_json_story(head: dict[str, Any], name: str, story: Iterable[Any]) -> None:
    """Print one JSON document whose last key, `name`, is a list that is written as it is read."""
    opened = _encode_json(head, indent=None).removesuffix("}")
    sys.stdout.write(f"{opened}, {_encode_json(name, indent=None)}: [")
    for number, item in enumerate(story):
        sys.stdout.write((",\n" if number else "\n") + _encode_json(item, indent=None))
    sys.stdout.write("\n]}\n")


def _encode_json(document: Any, indent: int | None) -> str:
    # The stream's `backslashreplace` writes an unpaired surrogate as JSON does; other characters
    # that the stream cannot encode must be escaped here.
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    # Ranges are the only values of a document that are not JSON's own.
    text = json.dumps(
        document, ensure_ascii=not is_unicode, indent=indent, default=attrgetter("runs")
    )
    return _CONTROL_CHARACTERS.sub(_escape_match, text) if sys.stdout.isatty() else text


def _escape_match(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def write_raw(*texts: bytes) -> None:
    """Write texts byte for byte, without separators."""
    sys.stdout.flush()
    sys.stdout.buffer.writelines(texts)
    sys.stdout.buffer.flush()


def print_block(top: str, pieces: Iterable[str], *, brief: bool = False) -> None:
    """Print a heading and a text; `brief` prints as much of the text as fits into one line."""
    if brief:
        text = "\n".join(pieces)
        print_text(f"{top}  {clip_text(text, max(20, get_width() - len(top) - 2))}".rstrip())
        return
    print_text(top, bold=True)
    for piece in pieces:
        for line in escape_controls(piece).split("\n"):
            print_text(INDENT + line if line else "", verbatim=True)


def print_note(text: str) -> None:
    """Print a line for people where standard output holds the answer."""
    sys.stderr.write(escape_controls(text) + "\n")


def print_error(text: str) -> None:
    sys.stderr.write(f"cutbank: {' '.join(escape_controls(text).split())}\n")


def print_rows(
    rows: Sequence[Mapping[str, object]], title: str = "", most: int | None = None, hint: str = ""
) -> None:
    """Print the first rows as a table, and the number of the others; nothing without rows.

    The keys of the first row are the headings; numbers are right-aligned. In a pipe, tabs separate
    the values. On a terminal, empty columns are left out, and columns of text are shortened; if
    that is not enough, each row becomes a paragraph with a line for each value.
    """
    if not rows:
        return
    if title:
        print_text()
        print_text(title, bold=True)
    cells = [[" ".join(format_value(value).split()) for value in row.values()] for row in rows]
    table = [list(map(str, rows[0])), *cells[:most]]
    if sys.stdout.isatty():
        _print_table([column for column in zip(*table, strict=True) if any(column[1:])])
    else:
        print_text("\n".join(map("\t".join, table)))
    print_more(len(rows), most, hint)


def _print_table(columns: Sequence[Sequence[str]]) -> None:
    # Only a table on a terminal needs rich, a slow import.
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - start-up time

    columns = [list(map(escape_controls, column)) for column in columns]
    widths = [max(map(cell_len, column)) for column in columns]
    is_number = [all(map(_NUMBER.fullmatch, column[1:])) for column in columns]
    headings, *rows = zip(*columns, strict=True)
    for _ in range(sum(widths) + len(COLUMN_GAP) * (len(widths) - 1) - get_width()):
        least = [MIN_COLUMN_CELLS if at else MIN_NAME_CELLS for at in range(len(widths))]
        long = [at for at in range(len(widths)) if widths[at] > least[at] and not is_number[at]]
        if not long:
            for values in rows:
                print_text()
                print_fields(zip(headings, values, strict=True))
            return
        widths[max(long, key=widths.__getitem__)] -= 1
    for number, row in enumerate([headings, *rows]):
        fitted = []
        for text, width, right in zip(row, widths, is_number, strict=True):
            if cell_len(text) > width:
                fitted.append(set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width))
            else:
                space = " " * (width - cell_len(text))
                fitted.append(space + text if right else text + space)
        print_text(COLUMN_GAP.join(fitted).rstrip(), **({} if number else {"bold": True}))


def format_value(value: Any) -> str:
    """Format a value of a JSON document for people, on one line; nothing for None and False."""
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
        case datetime():
            return format_time(value)
        case Mapping():
            return ", ".join(f"{label} {text}" for label, text in list_fields(value))
        case list() | tuple():
            return "; ".join(filter(None, map(format_value, value)))
        case _:
            return format_handles(value) if hasattr(value, "runs") else str(value)


def list_fields(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the value of each entry of a JSON document that is not empty."""
    for name, value in document.items():
        is_cost = name.endswith("_usd") and isinstance(value, int | float)
        if text := format_usd(value) if is_cost else format_value(value):
            yield name.removesuffix("_usd").replace("_", " "), text


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print labels with their values, which a terminal wraps below each other."""
    known = list(fields)
    cells = max([LABEL_CELLS - 1, *(len(label) for label, _ in known)]) + 1
    for label, value in known:
        line = f"{label:<{cells}}{value}"
        for part in _wrap_cells(line, get_width(), " " * cells) if sys.stdout.isatty() else [line]:
            print_text(part)


def print_list(heading: str, lines: Sequence[str], most: int | None, hint: str = "") -> None:
    """Print a paragraph with the first lines, and the number of the others; nothing if empty."""
    if lines:
        print_text()
        print_text(heading, bold=True)
    for line in lines[:most]:
        print_text(f"  {line}")
    print_more(len(lines), most, hint)


def print_more(number: int, most: int | None, hint: str = "") -> None:
    if most is not None and number > most:
        print_text(f"  and {number - most:,} more{hint}")


def format_bar(share: float) -> str:
    return f"[{'#' * min(BAR_CELLS, int(share * BAR_CELLS)):.<{BAR_CELLS}}]"


def get_width() -> int:
    return shutil.get_terminal_size((100, 0)).columns if sys.stdout.isatty() else 100


def _wrap_cells(text: str, width: int, indent: str, *, splits_words: bool = True) -> Iterator[str]:
    """Yield lines of at most `width` cells, broken at spaces.

    A longer word is split, or left whole, as a path that somebody copies.
    """
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - start-up time

    room = max(1, width - len(indent))
    line = ""
    for word in _WORD.findall(text):
        if cell_len(line + word) <= width:
            line += word
            continue
        if line.strip():
            yield line
        *full, last = chop_cells(word.lstrip(), room) if splits_words else [word.lstrip()]
        yield from (indent + piece for piece in full)
        line = indent + last
    if line:
        yield line


def escape_controls(text: str) -> str:
    """Escape everything that a terminal would interpret."""
    text = text.replace("\r\n", "\n")
    return _CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], text)


def clip_text(text: str, width: int) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) < width and len(text) <= 4 * width else line[: width - 1] + "…"


def format_count(number: int, thing: str) -> str:
    """Return `1 token`, `2,048 tokens` or `3 entries`."""
    if number == 1:
        return f"1 {thing}"
    es = "es" if thing.endswith(("s", "sh", "x")) else "s"
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}{es}"
    return f"{number:,} {plural}"


def format_time(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_usd(dollars: float) -> str:
    """Return `$1,234.50`; less than a cent is shown with two digits."""
    if dollars and abs(dollars) < 0.01:
        return f"${dollars:.2g}" if abs(dollars) >= 0.0001 else "<$0.0001"
    return f"${dollars:,.2f}"


def format_short_cost(dollars: float, *, is_part: bool) -> str:
    """Return `$1.23`; `$1.23+` if that is only a part, and `unknown` if no part is known."""
    return f"{format_usd(dollars)}{'+' * is_part}" if dollars or not is_part else "unknown"


def format_short_tokens(tokens: float) -> str:
    """Return up to three digits: `999`, `12.3k`, `4.57M`."""
    for unit in ("", "k", "M"):
        if tokens < 999.5:
            return f"{tokens:.3g}{unit}"
        tokens /= 1_000
    return f"{tokens:,.1f}G"


def shorten_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if f"{path}/".startswith(f"{home}/") else path


def format_handles(handles: "Ranges", most: int = MAX_RANGES) -> str:
    """Return the first ranges of handles, and the number of further ones."""
    shown = str(handles).split()
    more = len(shown) - most
    return " ".join(shown[:most]) + (f" and {format_count(more, 'more range')}" if more > 0 else "")


def format_shares(shares: "Sequence[KindShare]") -> str:
    parts = (f"{share.blocks:,} {share.kind} with {share.tokens:,} tokens" for share in shares)
    return ", ".join(parts) or "nothing"


def escape_unencodable() -> None:
    """Make the standard streams escape characters that they cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def show_progress(what: str, *, wanted: bool = True) -> "Iterator[ReportProgress | None]":
    """Show a slow verb's progress on stderr; yield a function to report it and the total.

    Yields None without a terminal.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return

    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich
    from rich.progress import Progress  # noqa: PLC0415 - start-up time

    console = Console(file=sys.stderr, soft_wrap=True)
    # Messages appear above the bar; in a pipe they are unchanged.
    with Progress(console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
