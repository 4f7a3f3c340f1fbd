"""Prints the transcripts that `import` found on this machine, and asks for confirmation."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from ...runtime.importing.transcript_discovery import FoundTranscripts
from .invocation import NegativeAnswerError
from .printing import format_count, print_table, print_text


def found_to_json(found: FoundTranscripts) -> dict[str, Any]:
    """Return one agent's transcripts."""
    return {
        "format": found.format,
        "folders": found.folders,
        "files": len(found.files),
        "sessions": found.sessions,
        "bytes": found.bytes,
        "newest": _newest_time(found).isoformat(),
    }


def print_found(every: Sequence[FoundTranscripts]) -> None:
    """Print a table with a row for each agent."""
    home = str(Path.home())
    print_table(
        ("agent", "files", "sessions", "MB", "newest", "in"),
        [
            (
                found.format,
                len(found.files),
                found.sessions,
                f"{found.bytes / 1e6:,.1f}",
                f"{_newest_time(found):%Y-%m-%d}",
                ", ".join(folder.replace(home, "~", 1) for folder in found.folders),
            )
            for found in every
        ],
    )


def confirm_import(every: Sequence[FoundTranscripts]) -> None:
    """Ask whether to import everything. Raises NegativeAnswerError if the answer is no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NegativeAnswerError(
            f"{_format_total(every)} found, and nothing read: --yes imports them"
        )
    print_found(every)
    if not typer.confirm(f"\nImport {_format_total(every)}?"):
        print_text("nothing was read")
        raise typer.Exit(1)


def _format_total(every: Sequence[FoundTranscripts]) -> str:
    files = sum(len(found.files) for found in every)
    size = sum(found.bytes for found in every)
    names = ", ".join(found.format for found in every)
    return f"{format_count(files, 'transcript')} of {names} ({size / 1e6:,.1f} MB)"


def _newest_time(found: FoundTranscripts) -> datetime:
    return datetime.fromtimestamp(found.newest, UTC)
