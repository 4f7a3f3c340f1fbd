"""Implements `import`: reads other agents' transcripts into sessions, once or as they grow."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import typer

from ....domain.errors import ImportFileError, InvalidSettingError
from ...runtime.following.live_file import FileNews
from ...runtime.following.transcript_follower import TranscriptFollower
from ...runtime.importing.file_import import ImportOptions, WantedFile
from ...runtime.importing.importer import import_files, list_wanted_files
from ...runtime.importing.transcript_discovery import (
    FoundTranscripts,
    find_installed_transcripts,
    list_hints,
)
from ...transcripts.reports import FileReport
from ..command_line.printing import (
    format_count,
    pick,
    print_json,
    print_json_line,
    print_note,
    print_rows,
    print_text,
    shorten_home,
    show_progress,
)
from ..command_line.sessions import open_call_store
from ..command_line.verbs import Invocation, NegativeAnswerError, argument, flag, option
from .import_reports import print_file, print_totals


def import_(
    call: Invocation,
    paths: list[Path] | None = argument(
        "PATH", "Transcripts, or folders of them; else those that are found on this machine.", None
    ),
    *,
    yes: bool = flag("--yes -y", "Import everything found, without asking."),
    again: bool = flag("--again", "Read files that have not changed as well."),
    report: bool = flag("--report", "Say at the end what became of all entries."),
    jobs: int | None = option("--jobs -j N", "Processes; else one for each core.", min=1, max=64),
    redact: bool = flag("--redact", "Replace secrets before anything is stored."),
    follow: bool = flag("--follow", "Keep importing new lines, until interrupted."),
    verbose: bool = flag("--verbose -v", "Each file, and all that is wrong in it."),
    quiet: bool = flag("--quiet -q", "No progress, and only files with errors."),
) -> None:
    """Import transcripts. Of those imported before, only what is new."""
    if redact:
        from ...transcripts.redaction.secret_kinds import list_secret_kinds  # noqa: PLC0415 - regular expressions by the dozen

        list_secret_kinds()  # report a missing dependency before anything is opened
    if follow:
        if not paths:
            raise InvalidSettingError("--follow needs a PATH: a folder whose files are followed")
        for name, is_given in {"--again": again, "--jobs": jobs, "--yes": yes}.items():
            if is_given:
                raise InvalidSettingError(f"--follow takes no {name}")
        _follow_paths(call, paths, redacts=redact, reports=report, quiet=quiet)
        return
    for path in paths or ():
        if not path.exists():
            raise ImportFileError(f"{path} does not exist")
    if not (paths or quiet or call.as_json):
        for hint in list_hints():
            print_note(hint)
    found = [] if paths else find_installed_transcripts()
    if not (paths or found):
        raise NegativeAnswerError("no agent has left transcripts in its usual folders: name a PATH")
    if found and not yes:
        if call.as_json:
            print_json([_found_to_json(one) for one in found])
            return
        _confirm_import(found)
    manner = ImportOptions(call.named, redact)
    reports: list[FileReport] = []
    try:
        with (
            open_call_store(call, creates=True) as store,
            show_progress("importing", in_bytes=True, wanted=not quiet) as progress,
        ):
            files, refused = _choose_files(paths or [])
            files += [file for one in found for file in one.wanted_files]
            every = import_files(
                store, files, manner, progress=progress, skip_unchanged=not again, jobs=jobs
            )
            with closing(every):
                for one in chain(refused, every):
                    reports.append(one)
                    if not call.as_json and (verbose or (quiet and one.errors)):
                        print_file(one)
    except KeyboardInterrupt:
        print_note("what was read is kept: import it again to go on")
        raise
    if call.as_json:
        print_json([asdict(one) for one in reports])
    else:
        print_totals(reports, is_listed=verbose or quiet, is_full=report)
    if any(one.errors for one in reports):
        raise typer.Exit(1)


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


def _found_to_json(found: FoundTranscripts) -> dict[str, Any]:
    return {
        **pick(found, "format folders"),
        "files": len(found.files),
        **pick(found, "sessions bytes"),
        "newest": _newest_time(found).isoformat(),
    }


def _confirm_import(every: Sequence[FoundTranscripts]) -> None:
    """Ask whether to import everything. Raises NegativeAnswerError if the answer is no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NegativeAnswerError(
            f"{_format_total(every)} found, and nothing read: --yes imports them"
        )
    rows: list[dict[str, object]] = [
        {
            "agent": found.format,
            "files": len(found.files),
            "sessions": found.sessions,
            "MB": f"{found.bytes / 1e6:,.1f}",
            "newest": f"{_newest_time(found):%Y-%m-%d}",
            "in": ", ".join(map(shorten_home, found.folders)),
        }
        for found in every
    ]
    print_rows(rows)
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


def _follow_paths(
    call: Invocation, paths: list[Path], *, redacts: bool, reports: bool, quiet: bool
) -> None:
    stop = Event()
    sessions: set[str] = set()
    whole: list[str] = []
    counts = Counter[str]()

    def print_news(news: FileNews) -> None:
        sessions.update(news.sessions)
        counts.update({"new block": news.added, "error": len(news.errors)})
        if call.as_json:
            print_json_line(asdict(news))
        elif news.errors or not quiet:
            print_file(news)
        sys.stdout.flush()  # show it immediately

    def print_import(report: FileReport) -> None:
        whole.append(report.format or "")
        parts = (tuple(report.sessions), report.entries, report.added, tuple(report.errors))
        print_news(FileNews(report.path, whole[-1], *parts))

    def print_start() -> None:
        if whole:
            formats = ", ".join(dict.fromkeys(whole))
            files = format_count(len(whole), "transcript")
            print_note(f"{files} of {formats} imported, and not followed")
        print_note(f"following {', '.join(map(str, paths))}: Ctrl-C ends it")

    with open_call_store(call, creates=True) as store, _stop_on_signals(stop):
        follower = TranscriptFollower(
            store,
            paths,
            namespace=call.namespace,
            heard=print_news,
            imported=print_import,
            redacts=redacts,
        )
        follower.follow(stop, print_start)
    every = list(follower.reports.values())
    if not call.as_json and (reports or any(one.redacted for one in every)):
        print_totals(every, is_listed=True, is_full=reports)
    blocks, errors = (format_count(counts[name], name) for name in ("new block", "error"))
    print_note(f"{blocks} in {format_count(len(sessions), 'session')}, {errors}")


@contextmanager
def _stop_on_signals(stop: Event) -> Iterator[None]:
    """Set `stop` on the first signal, so that the current file is finished; a second one kills."""

    def receive(number: int, _frame: FrameType | None) -> None:
        # The handlers stay, because the other signal may have arrived as well.
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
