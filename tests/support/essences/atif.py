"""Trajectories: all of it, for each field is part of what a trajectory is kept for."""

import json
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_text())
    return {whole["session_id"]: whole}
