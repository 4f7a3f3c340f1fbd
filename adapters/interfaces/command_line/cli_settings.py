"""The verb about settings: what is in effect, what it means, and where it came from."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ....domain.policies.policy import NONE
from ...settings.example import example as example_file
from ...settings.listing import Listed, listed
from ...settings.load import load
from ...settings.secret import without_keys
from ...settings.settings import Settings
from ...settings.toml_file import place_of
from .invocation import Invocation
from .printing import clipped, say, say_json

VALUE_SHOWN = 60
"""Columns of a value; `--json` has all of it."""


def settings(
    call: Invocation,
    *,
    path: Annotated[bool, typer.Option("--path", help="Only say where the file is.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a file with every setting and its default.")
    ] = False,
) -> None:
    """Show each setting, its unit, and where it came from."""
    if example:
        text = example_file()
        if call.as_json:
            say_json({"example": text})
        else:
            say(text.rstrip("\n"))
        return
    place, _ = place_of(call.settings_file, os.environ)
    if path:
        if call.as_json:
            say_json({"file": str(place), "exists": place.exists()})
        else:
            say(str(place))
        return
    rows = list(listed(settings_of(call)))
    if call.as_json:
        document = {"file": str(place), "exists": place.exists()}
        say_json(document | {"settings": [_as_json(row) for row in rows]})
        return
    _say_rows(place, rows)


def settings_of(call: Invocation) -> Settings:
    """The settings that hold for what was asked."""
    return load(call.settings_file)


def _as_json(row: Listed) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": row.value,
        "unit": row.unit,
        "takes": row.takes,
        "help": row.help,
        "default": row.default,
        "origin": str(row.origin),
        "file": row.origin.file,
        "line": row.origin.line,
        "variable": row.origin.variable,
    }


def _say_rows(place: Path, rows: list[Listed]) -> None:
    say(f"{place}" + ("" if place.exists() else " (not there; `--example` prints one)"))
    names = [row.name for row in rows]
    values = [_value(row) for row in rows]
    origins = [_origin(row) for row in rows]
    wide_name, wide_value = max(map(len, names)), max(map(len, values))
    for row, name, value, origin in zip(rows, names, values, origins, strict=True):
        line = f"{name:{wide_name}}  {value:{wide_value}}  {origin}"
        say()
        say(line.rstrip(), bold=row.origin.file is not None or row.origin.variable is not None)
        say(f"    {row.help}")


def _value(row: Listed) -> str:
    if row.value is None:
        return f"{NONE} ({row.unit})" if row.unit else NONE
    text = row.value if isinstance(row.value, str) else json.dumps(row.value, ensure_ascii=False)
    return clipped(without_keys(text) + (f" {row.unit}" if row.unit else ""), VALUE_SHOWN)


def _origin(row: Listed) -> str:
    """Without the folder, which stands above all of them."""
    if row.origin.file is None:
        return str(row.origin)
    return f"{Path(row.origin.file).name}:{row.origin.line}"
