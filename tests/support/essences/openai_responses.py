"""OpenAI Responses items: all of it is sent again, so nothing is left out."""

from pathlib import Path
from typing import Any

from essences.message_arrays import bodies


def essence(path: Path) -> dict[str, Any]:
    return bodies(path, "input", "output")
