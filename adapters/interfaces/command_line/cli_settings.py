"""Implements `settings`: shows the effective settings, their meaning and their origin."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ....domain.policies.policy import NO_VALUE
from ...settings.listing import ListedSetting, list_effective_settings
from ...settings.listing import make_example as example_file
from ...settings.load_settings import load_settings
from ...settings.secret_values import hide_keys
from ...settings.settings import Settings
from ...settings.toml_file import find_settings_file
from .invocation import Invocation
from .printing import clip_text, print_json, print_text

MAX_VALUE_CHARACTERS = 60
"""Characters shown of a value; `--json` has all of it."""


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
            print_json({"example": text})
        else:
            print_text(text.rstrip("\n"))
        return
    place, _ = find_settings_file(call.settings_file, os.environ)
    if path:
        if call.as_json:
            print_json({"file": str(place), "exists": place.exists()})
        else:
            print_text(str(place))
        return
    rows = list(list_effective_settings(load_call_settings(call)))
    if call.as_json:
        document = {"file": str(place), "exists": place.exists()}
        print_json(document | {"settings": [_row_to_json(row) for row in rows]})
        return
    _print_rows(place, rows)


def load_call_settings(call: Invocation) -> Settings:
    return load_settings(call.settings_file)


def _row_to_json(row: ListedSetting) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": row.value,
        "unit": row.unit,
        "takes": row.accepted_values,
        "help": row.help,
        "default": row.default,
        "origin": str(row.origin),
        "file": row.origin.file,
        "line": row.origin.line,
        "variable": row.origin.variable,
    }


def _print_rows(place: Path, rows: list[ListedSetting]) -> None:
    print_text(f"{place}" + ("" if place.exists() else " (not there; `--example` prints one)"))
    names = [row.name for row in rows]
    values = [_format_value(row) for row in rows]
    origins = [_format_origin(row) for row in rows]
    wide_name, wide_value = max(map(len, names)), max(map(len, values))
    for row, name, value, origin in zip(rows, names, values, origins, strict=True):
        line = f"{name:{wide_name}}  {value:{wide_value}}  {origin}"
        print_text()
        print_text(
            line.rstrip(), bold=row.origin.file is not None or row.origin.variable is not None
        )
        print_text(f"    {row.help}")


def _format_value(row: ListedSetting) -> str:
    if row.value is None:
        return f"{NO_VALUE} ({row.unit})" if row.unit else NO_VALUE
    text = row.value if isinstance(row.value, str) else json.dumps(row.value, ensure_ascii=False)
    return clip_text(hide_keys(text) + (f" {row.unit}" if row.unit else ""), MAX_VALUE_CHARACTERS)


def _format_origin(row: ListedSetting) -> str:
    """Return the origin without the folder, which is printed above all settings."""
    if row.origin.file is None:
        return str(row.origin)
    return f"{Path(row.origin.file).name}:{row.origin.line}"
