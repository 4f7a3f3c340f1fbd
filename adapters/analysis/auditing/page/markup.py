"""Builds HTML, and escapes everything that is not `Markup`."""

import re
from collections.abc import Iterable
from html import escape

# Show characters that change the reading direction, are invisible or cannot be encoded.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def show_hidden_characters(text: str) -> str:
    """Replace control codes, direction marks and surrogates by their names."""
    text = text.replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def to_markup(part: object) -> Markup:
    """Convert a value to HTML; escape it unless it is markup."""
    if isinstance(part, Markup):
        return part
    return Markup(escape(show_hidden_characters(str(part)), quote=True))


def join_markup(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(map(to_markup, parts)))


def format_plural(number: int, one: str, more: str) -> str:
    """Return `1 boundary` or `1,024 boundaries`."""
    return f"{number:,} {one if number == 1 else more}"


def make_tag(name: str, /, *parts: object, **attributes: object) -> Markup:
    """Return an element; `class_` sets `class`, `data_x` sets `data-x`, True adds no value.

    None and False are left out.
    """
    given = "".join(
        f" {_attribute_name(key)}" + ("" if value is True else f'="{to_markup(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join_markup(parts)}</{name}>")


_VOID = frozenset({"br", "hr", "input", "meta"})


def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
