"""Writes what a backtest measured: a page for people, tables and JSON for programs."""

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from .....domain.backtest.result import Measured
from .....domain.errors import ExportError
from ....storage.private_files import make_folder, open_new
from ..in_words import command_of
from .page import page_of
from .tables import CellTable, ControlTable, parquet_of
from .timeless import seconds_of, without_seconds

DRAWN_BY = ("plotly", "pyarrow")

MISSING = (
    "--report needs plotly and pyarrow, which are not installed: pip install 'cutbank[backtest]'"
)


def check_report(folder: Path) -> None:
    """Raise ExportError if no report can be written there, before hours are spent on measuring."""
    if any(find_spec(name) is None for name in DRAWN_BY):
        raise ExportError(MISSING)
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ExportError(f"{folder}: no report can be written there: {nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ExportError(f"{folder}: cannot be written: nothing may be made in {nearest}")


def write_report(measured: Measured, folder: Path, command: str | None = None) -> list[Path]:
    """Write `report.html`, `cells.parquet`, `controls.parquet`, `measured.json`, `seconds.json`.

    All files but the last hold no time, so that equal measurements give equal bytes. `command` is
    what was run, as the page shows it; without one it is told from the setups. Files of these names
    are replaced. Returns their paths; raises ExportError where they cannot be written, or where
    what draws the page is not installed.
    """
    timeless = without_seconds(measured)
    made: dict[str, Callable[[], bytes]] = {
        "report.html": lambda: page_of(timeless, command or command_of(timeless)).encode(),
        "cells.parquet": lambda: parquet_of(CellTable(timeless)),
        "controls.parquet": lambda: parquet_of(ControlTable(timeless)),
        "measured.json": lambda: _json(timeless.model_dump(mode="json")),
        "seconds.json": lambda: _json(seconds_of(measured)),
    }
    try:
        contents = {name: make() for name, make in made.items()}
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in DRAWN_BY:
            raise
        raise ExportError(MISSING) from None
    try:
        make_folder(folder)
        return _written({folder / name: content for name, content in contents.items()})
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _json(document: object) -> bytes:
    return (json.dumps(document, ensure_ascii=True, indent=1) + "\n").encode()


def _written(contents: dict[Path, bytes]) -> list[Path]:
    """Beside their names until all are written: no half takes the place of an earlier report."""
    beside = {target: target.with_name(f".{target.name}.{os.getpid()}.part") for target in contents}
    try:
        for target, content in contents.items():
            with open_new(beside[target]) as file:
                file.write(content)
        return [beside[target].replace(target) for target in contents]
    finally:
        for part in beside.values():
            part.unlink(missing_ok=True)
