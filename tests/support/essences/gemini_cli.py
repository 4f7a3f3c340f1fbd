"""What Gemini CLI needs of a recorded session to go on: all of it."""

import json
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    """The document under the id of its session."""
    document = json.loads(path.read_bytes())
    return {document["sessionId"]: document}
