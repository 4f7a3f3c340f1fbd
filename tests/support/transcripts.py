"""Transcripts to test with: small ones that the project made itself, and a folder of real ones."""

import csv
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from cutbank import FileReport, SessionStore
from cutbank.adapters.runtime.importing.importer import import_files, list_wanted_files
from cutbank.adapters.runtime.importing.transcript_import import ImportOptions
from cutbank.adapters.transcripts.formats.catalog import find_transcripts

SAMPLES = Path(__file__).parents[1] / "samples"
"""Made by hand: a folder for each format, with the format's name."""
SESSIONS = os.environ.get("CUTBANK_SESSIONS")
NO_SESSIONS = "CUTBANK_SESSIONS names no folder of real sessions"


def samples() -> list[Path]:
    return list(find_transcripts(SAMPLES))


def real() -> list[Path]:
    if not SESSIONS:
        return []
    return list(manifest())


def manifest() -> dict[Path, dict[str, str]]:
    """What is told of each real transcript: its path to its row."""
    if not SESSIONS:
        return {}
    with Path(SESSIONS, "manifest.csv").open(newline="") as file:
        return {Path(SESSIONS, row["path"]): row for row in csv.DictReader(file)}


def name_of(path: Path) -> str:
    root = SAMPLES if path.is_relative_to(SAMPLES) else Path(SESSIONS or "")
    return path.relative_to(root).as_posix()


def import_path(
    store: SessionStore,
    path: Path,
    *,
    namespace: str | None = None,
    redact: bool = False,
    keep_sources: bool = True,
    **how: Any,
) -> Generator[FileReport]:
    """Import a transcript, or all below a folder, as the command line does."""
    options = ImportOptions(namespace, redact, keep_sources)
    yield from import_files(store, list_wanted_files(path), options, **how)


def import_file(store: SessionStore, path: Path, *, namespace: str = "default") -> FileReport:
    (report,) = import_path(store, path, namespace=namespace)
    return report
