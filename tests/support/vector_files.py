"""Where the original programs' answers are: a sample with the tests, all of them in a folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Vector = dict[str, Any]

COMMITTED = Path(__file__).parents[1] / "vectors"
FOLDERS = pytest.mark.parametrize(
    "folder", ["all" if os.environ.get("CUTBANK_VECTORS") else "committed"]
)
"""For tests of every line: of the folder that CUTBANK_VECTORS names, or else of the sample."""


def folder_of(which: str) -> Path:
    """The sample's folder, or that of all vectors; the test is skipped where nobody names one."""
    if which == "committed":
        return COMMITTED
    folder = os.environ.get("CUTBANK_VECTORS")
    if not folder:
        pytest.skip("CUTBANK_VECTORS is not set: it names the folder of all vectors")
    return Path(folder)


def lines_of(which: str, file: str) -> Iterator[Vector]:
    """All vectors of one file, as `lines_of("all", "kdcube")`; there is at least one."""
    lines = (folder_of(which) / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines, file
    return map(json.loads, lines)


def table_of(which: str, file: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(
        (folder_of(which) / f"{file}.json").read_text(encoding="utf-8")
    )
    return table
