"""Writes the results of a backtest: a page for people, JSON for programs."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

from .....domain.backtest.cell import BacktestResult
from .....domain.errors import ExportError
from ....storage.private_files import make_folder, open_new

_PLOTLY_MISSING = "--report needs plotly, which is not installed: pip install 'cutbank[backtest]'"


def check_report(folder: Path) -> None:
    """Raise ExportError if no report can be written there, before hours of measuring."""
    if find_spec("plotly") is None:
        raise ExportError(_PLOTLY_MISSING)
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ExportError(f"{folder}: no report can be written there: {nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ExportError(f"{folder}: cannot be written: nothing may be made in {nearest}")


def write_report(measured: BacktestResult, folder: Path) -> list[Path]:
    """Write `report.html` and `measured.json`, which hold no times: equal results, equal bytes.

    Existing files are replaced. Returns the paths. Raises ExportError if a file cannot be written,
    or if plotly is not installed.
    """
    try:
        from .report_page import render_report_page  # noqa: PLC0415 - the extra `backtest`
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise ExportError(_PLOTLY_MISSING) from None
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    timeless = measured.model_copy(update={"cells": cells})
    page = render_report_page(timeless)
    tables = json.dumps(timeless.model_dump(mode="json"), ensure_ascii=True, indent=1)
    contents = {"report.html": page.encode(), "measured.json": f"{tables}\n".encode()}
    try:
        make_folder(folder)
        return _write_files({folder / name: content for name, content in contents.items()})
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _write_files(contents: dict[Path, bytes]) -> list[Path]:
    """Write all files or none; existing ones are replaced at the end."""
    beside = {target: target.with_name(f".{target.name}.{os.getpid()}.part") for target in contents}
    try:
        for target, content in contents.items():
            with open_new(beside[target]) as file:
                file.write(content)
        return [beside[target].replace(target) for target in contents]
    finally:
        for part in beside.values():
            part.unlink(missing_ok=True)
