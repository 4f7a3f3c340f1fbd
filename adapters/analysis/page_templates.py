"""Renders the templates beside it; autoescape is the one place where HTML is escaped."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# Characters that change the reading direction, are invisible or cannot be encoded.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def show_hidden_characters(text: str) -> str:
    """Replace control codes, direction marks and surrogates by their names."""
    text = text.replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def format_plural(number: int, one: str) -> str:
    """Return `1 call` or `1,024 calls`; the noun adds an `s`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def format_cell(value: str | float | None) -> str:
    """Format the value of a cell of a table: `1,024`, `0.85`, or `-` if it is unknown."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else value


def is_figure(value: str | float | None) -> bool:
    """Return whether a cell of a table holds a number, which is aligned right."""
    return not isinstance(value, str) or value[:1] in "0123456789$+-."


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup) else show_hidden_characters(str(value))


@cache
def make_template_environment() -> Environment:
    """Return the environment of the pages: every value that is not `Markup` is escaped."""
    environment = Environment(
        loader=PackageLoader(__package__ or ""),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plural"] = format_plural
    environment.filters["commas"] = "{:,}".format
    environment.filters["cell"] = format_cell
    environment.filters["zip"] = zip
    environment.tests["figure"] = is_figure
    # `tojson` escapes what could end a script element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def render_page(name: str, **values: Any) -> str:
    """Render a template. Only `Markup` is not escaped."""
    return make_template_environment().get_template(name).render(values)
