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
    return list(wrap_cells(line, width, indent, splits_words=False)) or [line]


def print_json(document: Any) -> None:
    sys.stdout.write(_encode_json(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def print_answer(as_json: bool, document: Any, *lines: str) -> None:
    if as_json:
        print_json(document)
    else:
        print_lines(lines)


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_text(line)


def pick(value: object, names: str) -> dict[str, Any]:
    """Return attributes by their names in JSON, in this order: `lineage at=coordinate.position`."""
    words = (name.rpartition("=") for name in names.split())
    return {name or path: attrgetter(path)(value) for name, _, path in words}


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


def print_brief(top: str, text: str) -> None:
    """Print a heading, and as much of the text as fits into its line."""
    print_text(f"{top}  {clip_text(text, max(20, get_width() - len(top) - 2))}".rstrip())


def print_block(top: str, pieces: Iterable[str]) -> None:
    print_text(top, bold=True)
    for piece in pieces:
        for line in escape_controls(piece).split("\n"):
            print_text(INDENT + line if line else "", verbatim=True)


def print_note(text: str) -> None:
    """Print a line for people where standard output holds the answer."""
    sys.stderr.write(escape_controls(text) + "\n")


def print_error(text: str) -> None:
    sys.stderr.write(f"cutbank: {' '.join(escape_controls(text).split())}\n")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Print columns, numbers right-aligned; in a pipe, separate values by tabs.

    On a narrow terminal, columns of text are shortened. If that is not enough, each row becomes a
    paragraph with a line for each value.
    """
    cells = [
        [
            f"{cell:,}" if isinstance(cell, int) else " ".join(escape_controls(cell).split())
            for cell in row
        ]
        for row in rows
    ]
    if not sys.stdout.isatty():
        print_lines("\t".join(row) for row in ([*headings], *cells))
        return
    # Only a table on a terminal needs rich, a slow import.
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - start-up time

    columns = list(zip(headings, *cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    is_number = [all(map(_NUMBER.fullmatch, column[1:])) for column in columns]
    over = sum(widths) + len(COLUMN_GAP) * (len(widths) - 1) - get_width()
    for _ in range(over):
        least = [MIN_COLUMN_CELLS if at else MIN_NAME_CELLS for at in range(len(widths))]
        long = [at for at in range(len(widths)) if widths[at] > least[at] and not is_number[at]]
        if not long:
            _print_paragraphs(headings, cells)
            return
        widths[max(long, key=widths.__getitem__)] -= 1
    for number, row in enumerate([headings, *cells]):
        fitted = []
        for text, width, right in zip(row, widths, is_number, strict=True):
            if cell_len(text) > width:
                fitted.append(set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width))
            else:
                space = " " * (width - cell_len(text))
                fitted.append(space + text if right else text + space)
        print_text(COLUMN_GAP.join(fitted).rstrip(), **({} if number else {"bold": True}))


def print_rows(
    rows: Sequence[Mapping[str, object]], title: str = "", most: int | None = None, hint: str = ""
) -> None:
    """Print the first rows as a table, and the number of the others; nothing without rows.

    The keys of the first row are the headings. On a terminal, empty columns are left out.
    """
    if not rows:
        return
    if title:
        print_text()
        print_text(title, bold=True)
    cells = [[_format_cell(value) for value in row.values()] for row in rows[:most]]
    columns = list(zip(rows[0], *cells, strict=True))
    if sys.stdout.isatty():
        columns = [column for column in columns if any(cell != "" for cell in column[1:])]
    headings, *shown = zip(*columns, strict=True)
    print_table([str(heading) for heading in headings], shown)
    print_more(len(rows), most, hint)


def _format_cell(value: object) -> str | int:
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case int():
            return value
        case float():
            return f"{value:,.4g}"
        case datetime():
            return format_time(value)
        case _:
            return str(value)


def _print_paragraphs(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for name, *values in rows:
        print_text()
        print_fields([(headings[0], name), *zip(headings[1:], values, strict=True)])


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print labels with their values, which a terminal wraps below each other."""
    known = list(fields)
    cells = max([LABEL_CELLS - 1, *(len(label) for label, _ in known)]) + 1
    for label, value in known:
        line = f"{label:<{cells}}{value}"
        print_lines(wrap_cells(line, get_width(), " " * cells) if sys.stdout.isatty() else [line])


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


def wrap_cells(text: str, width: int, indent: str, *, splits_words: bool = True) -> Iterator[str]:
    """Yield lines of at most `width` cells, broken at spaces.

    A longer word is split, or left whole, as a path that somebody copies.
    """
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - as above

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


def format_short_tokens(tokens: int) -> str:
    """Return three digits: `999`, `12.3k`, `4.57M`."""
    if tokens < 1_000:
        return str(tokens)
    for unit, size in (("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        number = tokens / size
        if number < 999.5 or unit == "G":
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
            return f"{number:,.{digits}f}{unit}"
    raise AssertionError("the last unit takes all")


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
def show_progress(
    what: str, *, in_bytes: bool = False, wanted: bool = True
) -> "Iterator[ReportProgress | None]":
    """Show a slow verb's progress on stderr; yield a function to report it and the total.

    Yields None without a terminal.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return

    from rich import progress as parts  # noqa: PLC0415 - start-up time
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich

    amount = (
        (parts.DownloadColumn(), parts.TransferSpeedColumn())
        if in_bytes
        else (parts.MofNCompleteColumn(),)
    )
    with parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        *amount,
        parts.TimeRemainingColumn(),
        console=Console(file=sys.stderr, soft_wrap=True),
        transient=True,
        # Messages appear above the bar; in a pipe they are unchanged.
        redirect_stdout=sys.stdout.isatty(),
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
