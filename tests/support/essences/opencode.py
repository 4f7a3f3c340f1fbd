"""What opencode needs of an export to go on: all of it, every message and every part."""

import json
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    """The document under the id of its session."""
    document = json.loads(path.read_bytes())
    return {document["info"]["id"]: document}
