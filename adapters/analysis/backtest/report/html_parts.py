"""Writes HTML and JSON for a page, escaping all text from sessions."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

Inline = str | int | float | None


def escape_surrogates(text: str) -> str:
    """Make a text valid UTF-8: write an unpaired surrogate as its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def escape_label(text: str) -> str:
    """Escape a name in a drawing, where Plotly would interpret tags."""
    return escape_surrogates(text).replace("&", "&amp;").replace("<", "&lt;")


def escape_html(value: Inline) -> str:
    """Escape a value between tags, or in a quoted attribute."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    shown = (mark if mark.isprintable() or mark in "\n\t" else ascii(mark)[1:-1] for mark in value)
    return escape("".join(shown))


def make_code(value: str) -> str:
    return f"<code>{escape_html(value)}</code>"


def make_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Inline]]) -> str:
    """Make a table whose first column names its rows; numbers are right-aligned.

    Each cell also names its column, because narrow screens show rows as lists.
    """
    rows = list(rows)
    like = [_cell_class(value) for value in rows[0]] if rows else [""] * len(headings)
    head = "".join(
        f'<th scope="col"{is_number if number else ""}>{escape_html(heading)}</th>'
        for number, (heading, is_number) in enumerate(zip(headings, like, strict=True))
    )
    body = "\n".join(f"<tr>{_make_row(headings, row)}</tr>" for row in rows)
    return wrap_table(caption, head, body, "wide pairs" if len(headings) == 2 else "wide")


def wrap_table(caption: str, head: str, body: str, look: str = "wide") -> str:
    """Make a table from cells that are already HTML."""
    return (
        f'<div class="{look}" tabindex="0" role="region" aria-label="{escape_html(caption)}">\n'
        f"<table><caption>{escape_html(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def make_data_cell(heading: str, value: str, attributes: str = "") -> str:
    """Make a cell with its column name; the value is already HTML."""
    return f'<td data-label="{escape_html(heading)}"{attributes}>{value}</td>'


def make_section(name: str, heading: str, *parts: str) -> str:
    """Make one part of the page; `name` is its id and must be unique."""
    body = "\n".join(filter(None, parts))
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape_html(heading)}</h2>\n'
        f"{body}\n</section>"
    )


def make_paragraph(words: str) -> str:
    return f"<p>{escape_html(words)}</p>"


def make_figure(name: str, says: str, drawing: dict[str, Any]) -> str:
    """Make a place for a drawing, with its text alternative and its data."""
    return (
        f'<figure>\n<div class="drawing" id="{name}" role="img" '
        f'aria-label="{escape_html(says)}"></div>\n'
        f"<figcaption>{escape_html(says)}</figcaption>\n</figure>\n"
        f"{make_data_script(f'{name}-data', drawing)}"
    )


def make_data_script(name: str, document: Any) -> str:
    """Embed JSON in a page; no text in it can end its element."""
    said = json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    harmless = said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{name}">{harmless}</script>'


def _make_row(headings: Sequence[str], row: Sequence[Inline]) -> str:
    first, *others = row
    return f'<th scope="row">{escape_html(first)}</th>' + "".join(
        make_data_cell(heading, escape_html(value), _cell_class(value))
        for heading, value in zip(headings[1:], others, strict=True)
    )


def _cell_class(value: Inline) -> str:
    is_number = not isinstance(value, str) or value[:1] in "0123456789$+-."
    return ' class="n"' if is_number else ""
