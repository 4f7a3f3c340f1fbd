"""Implements `import`: reads other agents' transcripts into sessions."""

from contextlib import closing
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ....domain.errors import ImportFileError, InvalidSettingError
from ...runtime.importing.file_import import ImportOptions, WantedFile
from ...runtime.importing.importer import import_files, list_wanted_files
from ...runtime.importing.transcript_discovery import (
    FoundTranscripts,
    find_installed_transcripts,
    list_hints,
)
from ...transcripts.reports import FileReport
from . import found_files_lines, import_lines
from .cli_following import follow_paths
from .database import open_call_store
from .invocation import Invocation, NegativeAnswerError
from .printing import print_json, print_note
from .progress_bar import show_progress


def import_(
    call: Invocation,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts, or folders of them; else those that are found on this machine.",
        ),
    ] = None,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Import what is found, and do not ask.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Read files that have not changed as well.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Say at the end what became of all entries.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            max=64,
            help="Processes; else one for each core.",
        ),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace secrets before anything is stored.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what is written, until interrupted.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Each file, and all that is wrong in it.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, and only files with errors.")
    ] = False,
) -> None:
    """Import transcripts. Of those imported before, only what is new."""
    if redact:
        from ...transcripts.redaction.secret_kinds import list_secret_kinds  # noqa: PLC0415 - regular expressions by the dozen

        list_secret_kinds()  # report a missing dependency before anything is opened
    if follow:
        if not paths:
            raise InvalidSettingError("--follow needs a PATH: a folder whose files are followed")
        for option, is_given in {"--again": again, "--jobs": jobs, "--yes": yes}.items():
            if is_given:
                raise InvalidSettingError(f"--follow takes no {option}")
        follow_paths(call, paths, redacts=redact, reports=report, quiet=quiet)
        return
    for path in paths or ():
        if not path.exists():
            raise ImportFileError(f"{path} does not exist")
    if not (paths or quiet or call.as_json):
        for hint in list_hints():
            print_note(hint)
    found = [] if paths else _find_transcripts()
    if found and not yes:
        if call.as_json:
            print_json([found_files_lines.found_to_json(one) for one in found])
            return
        found_files_lines.confirm_import(found)
    manner = ImportOptions(call.named, redact)
    reports: list[FileReport] = []
    try:
        with (
            open_call_store(call, creates=True) as store,
            show_progress("importing", in_bytes=True, wanted=not quiet) as progress,
        ):
            files, refused = _choose_files(paths) if paths else (_wanted_files(found), [])
            every = import_files(
                store, files, manner, progress=progress, skip_unchanged=not again, jobs=jobs
            )
            with closing(every):
                for one in chain(refused, every):
                    reports.append(one)
                    if not call.as_json and (verbose or (quiet and one.errors)):
                        import_lines.print_file_report(one)
    except KeyboardInterrupt:
        print_note("what was read is kept: import it again to go on")
        raise
    if call.as_json:
        print_json([asdict(one) for one in reports])
    else:
        if not (verbose or quiet):
            import_lines.print_file_reports(reports)
        import_lines.print_total(reports)
        if report:
            import_lines.print_import_report(reports)
    if any(one.errors for one in reports):
        raise typer.Exit(1)


def _find_transcripts() -> list[FoundTranscripts]:
    if found := find_installed_transcripts():
        return found
    raise NegativeAnswerError("no agent has left transcripts in its usual folders: name a PATH")


def _wanted_files(found: list[FoundTranscripts]) -> list[WantedFile]:
    return [file for one in found for file in one.wanted_files]


def _choose_files(paths: list[Path]) -> tuple[list[WantedFile], list[FileReport]]:
    """Return the files to import, named or below named folders, and reports of invalid ones."""
    files: list[WantedFile] = []
    refused: list[FileReport] = []
    for path in paths:
        try:
            files += list_wanted_files(path)
        except ImportFileError as error:
            if len(paths) == 1:
                raise
            # The other files have reports, so this one has one too.
            refused.append(FileReport(path=str(path), errors=[str(error)]))
    return files, refused
