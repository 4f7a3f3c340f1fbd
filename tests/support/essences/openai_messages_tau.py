"""Runs of tau-bench: each record whole, since all of it is small."""

import json
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    keyed: dict[str, Any] = {}
    for record in json.loads(path.read_text()):
        mark = "".join(f"-{record[name]}" for name in ("task_id", "trial") if name in record)
        keyed[path.stem if mark and path.stem.endswith(mark) else f"{path.stem}{mark}"] = record
    return keyed
