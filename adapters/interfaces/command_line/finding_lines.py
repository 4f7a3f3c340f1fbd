"""What `import` without a path found on this machine: listed, and asked about."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from ...runtime.importing.finding import Found
from .invocation import AnswerIsNoError
from .printing import counted, say, say_table


def as_json(found: Found) -> dict[str, Any]:
    """One agent's transcripts, in JSON."""
    return {
        "format": found.format,
        "folders": found.folders,
        "files": len(found.files),
        "sessions": found.sessions,
        "bytes": found.bytes,
        "newest": _newest(found).isoformat(),
    }


def say_found(every: Sequence[Found]) -> None:
    """A table, an agent in a row."""
    home = str(Path.home())
    say_table(
        ("agent", "files", "sessions", "MB", "newest", "in"),
        [
            (
                found.format,
                len(found.files),
                found.sessions,
                f"{found.bytes / 1e6:,.1f}",
                f"{_newest(found):%Y-%m-%d}",
                ", ".join(folder.replace(home, "~", 1) for folder in found.folders),
            )
            for found in every
        ],
    )


def agree(every: Sequence[Found]) -> None:
    """Ask whether all that is to be read. Raises AnswerIsNoError where it is not."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AnswerIsNoError(f"{_in_all(every)} found, and nothing read: --yes imports them")
    say_found(every)
    if not typer.confirm(f"\nImport {_in_all(every)}?"):
        say("nothing was read")
        raise typer.Exit(1)


def _in_all(every: Sequence[Found]) -> str:
    files = sum(len(found.files) for found in every)
    size = sum(found.bytes for found in every)
    names = ", ".join(found.format for found in every)
    return f"{counted(files, 'transcript')} of {names} ({size / 1e6:,.1f} MB)"


def _newest(found: Found) -> datetime:
    return datetime.fromtimestamp(found.newest, UTC)
