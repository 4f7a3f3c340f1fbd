"""Every transcript format by name, how to tell them apart, and where transcripts lie."""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .claude_code import reader as claude_code
from .json_lines import LONGEST, parse
from .steps import Step

_FIRST_LINES = 32


@dataclass(frozen=True, slots=True)
class Format:
    """A way in which some agent writes its sessions down."""

    name: str
    recognises: Callable[[list[Any]], bool]
    """Whether a file that begins with these values is of this format."""
    read: Callable[[Path], Iterator[Step]]


FORMATS = {
    one.name: one for one in (Format("claude-code", claude_code.recognises, claude_code.read),)
}


def recognise(path: Path) -> Format | None:
    """The format of a file, told by its first lines and never by its name."""
    first = _first_values(path)
    return next((one for one in FORMATS.values() if one.recognises(first)), None)


def find_transcripts(path: Path) -> Iterator[Path]:
    """All `*.jsonl` files in a directory and below it, sorted, each directory once.

    A directory's own files come before those below it, so that a session comes before its
    sub-agents. Links are followed, but not in circles.
    """
    entered: set[tuple[int, int]] = set()
    for folder, below, files in os.walk(path, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            below.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        below.sort()
        # Where sub-agents lie beside their session, their names begin like this.
        for name in sorted(files, key=lambda name: (name.startswith("agent-"), name)):
            if name.endswith(".jsonl") and (file := Path(folder, name)).is_file():
                yield file


def _first_values(path: Path) -> list[Any]:
    with path.open("rb") as file:
        head = file.read(LONGEST).removeprefix(BOM_UTF8)
    raws = [stripped for raw in head.split(b"\n", _FIRST_LINES) if (stripped := raw.strip())]
    parsed = [parse(raw) for raw in raws[:_FIRST_LINES]]
    return [line.value for line in parsed if line.problem is None]
