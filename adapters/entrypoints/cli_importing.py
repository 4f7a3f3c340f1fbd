"""The verb that reads transcripts of other agents into sessions."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...domain.errors import ImportFileError
from ..importer import import_path
from ..reports import FileReport
from .invocation import Invocation
from .printing import counted, say, say_json
from .progress_bar import progress_bar


def import_(
    call: Invocation,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Transcripts, or folders of them.")
    ],
) -> None:
    """Import transcripts. Of those imported before, only what is new."""
    for path in paths:
        if not path.exists():
            raise ImportFileError(f"{path} does not exist")
    reports: list[FileReport] = []
    with call.store(creates=True) as store:
        for path in paths:
            with progress_bar("importing", in_bytes=True) as progress:
                found = import_path(store, path, namespace=call.namespace, progress=progress)
                for report in found:
                    reports.append(report)
                    if not call.as_json:
                        say_report(report)
    if call.as_json:
        say_json([asdict(report) for report in reports])
    else:
        _say_total(reports)
    if any(report.errors for report in reports):
        raise typer.Exit(1)


def say_report(report: FileReport) -> None:
    """A file in a line, and what is wrong in it in one each."""
    names = ", ".join(report.sessions[:3]) + (" ..." if len(report.sessions) > 3 else "")
    say(
        f"{report.path}: {report.format or 'no known format'}, {report.added:,} new blocks"
        f" of {report.entries:,} entries" + (f" in {names}" if names else "")
    )
    for kind, count in report.unknown.items():
        say(f"    {count:,} of the unknown type {kind} are kept as notes")
    for error in report.errors:
        say(f"    {error}")
    if report.format and not report.complete:
        say("    it was not read to its end: import it again to go on")


def _say_total(reports: list[FileReport]) -> None:
    if len(reports) > 1:
        added = sum(report.added for report in reports)
        sessions = {name for report in reports for name in report.sessions}
        errors = sum(len(report.errors) for report in reports)
        say(
            f"{len(reports):,} files: {added:,} new blocks in {len(sessions):,} sessions,"
            f" {errors:,} errors"
        )
