"""What of a transcript its agent needs to go on: read from the file itself, not by the readers.

One module a format, named after it (`codex`, `claude_code`), each with
`essence(path) -> dict[str, Any]`: for each session in the file, its entries as plain data. A module
says, and gives the reason, which fields of the format it leaves out.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Essence = Callable[[Path], dict[str, Any]]


def essence_of(name: str) -> Essence:
    """How the transcripts of a format are reduced."""
    found: Essence = import_module(f"essences.{name.replace('-', '_')}").essence
    return found
