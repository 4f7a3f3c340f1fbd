"""Implements `import`: reads other agents' transcripts into sessions, once or as they grow."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from ....domain.errors import ImportFileError, InvalidSettingError, NegativeAnswerError
from ...runtime.importing.file_import import UNCHANGED, WantedFile
from ...runtime.importing.importer import (
    FoundTranscripts,
    find_installed_transcripts,
    import_files,
    list_hints,
    list_wanted_files,
)
from ...runtime.importing.live_file import FileNews
from ...runtime.importing.transcript_follower import TranscriptFollower
from ...runtime.importing.transcript_import import ImportOptions
from ...transcripts.reports import FileReport
from ..command_line.printing import (
    INDENT,
    format_count,
    pick,
    print_json_line,
    print_list,
    print_note,
    print_rows,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_store
from ..command_line.verbs import Answer, Invocation, argument, flag, option


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
    no_sources: bool = flag("--no-sources", "Do not keep the files' bytes beside the sessions."),
    follow: bool = flag("--follow", "Keep importing new lines, until interrupted."),
    verbose: bool = flag("--verbose -v", "Each file, and all that is wrong in it."),
    quiet: bool = flag("--quiet -q", "No progress, and only files with errors."),
) -> Answer | None:
    if redact:
        from ...transcripts.redaction.secret_kinds import list_secret_kinds  # noqa: PLC0415 - regular expressions by the dozen

        list_secret_kinds()  # report a missing dependency before anything is opened
    for name, is_given in {"--again": again, "--jobs": jobs}.items():
        if follow and is_given:
            raise InvalidSettingError(f"--follow takes no {name}")
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
            return Answer([_found_to_json(one) for one in found])
        _confirm_import(found)
    if follow:
        manner = ImportOptions(call.namespace, redact, not no_sources)
        folders = dict.fromkeys(Path(folder) for one in found for folder in one.folders)
        _follow_paths(call, paths or [*folders], manner, reports=report, quiet=quiet)
        return None
    manner = ImportOptions(call.named, redact, not no_sources)
    reports: list[FileReport] = []
    try:
        with (
            open_call_store(call, creates=True) as store,
            show_progress("importing", wanted=not quiet) as progress,
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
    return Answer(
        [asdict(one) for one in reports],
        partial(print_totals, reports, is_listed=verbose or quiet, is_full=report),
        is_good=not any(one.errors for one in reports),
    )


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
        "newest": datetime.fromtimestamp(found.newest, UTC).isoformat(),
    }


def _confirm_import(every: Sequence[FoundTranscripts]) -> None:
    """Ask whether to import everything. Raises NegativeAnswerError if the answer is no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NegativeAnswerError(
            f"{_format_total(every)} found, and nothing read: --yes imports them"
        )
    print_rows([_found_to_json(found) for found in every])
    if not typer.confirm(f"\nImport {_format_total(every)}?"):
        print_text("nothing was read")
        raise typer.Exit(1)


def _format_total(every: Sequence[FoundTranscripts]) -> str:
    files = sum(len(found.files) for found in every)
    size = sum(found.bytes for found in every)
    names = ", ".join(found.format for found in every)
    return f"{format_count(files, 'transcript')} of {names} ({size / 1e6:,.1f} MB)"


def _follow_paths(
    call: Invocation, paths: list[Path], options: ImportOptions, *, reports: bool, quiet: bool
) -> None:
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

    # A slow import that only `--follow` needs.
    from ...runtime.idle.foreground import StopSignals  # noqa: PLC0415 - start-up time

    with open_call_store(call, creates=True) as store, StopSignals() as signals:
        follower = TranscriptFollower(
            store,
            paths,
            options=options,
            heard=print_news,
            imported=print_import,
        )
        follower.follow(signals.stopped, print_start)
    every = list(follower.reports.values())
    if not call.as_json and (reports or any(one.redacted for one in every)):
        print_totals(every, is_listed=True, is_full=reports)
    blocks, errors = (format_count(counts[name], name) for name in ("new block", "error"))
    print_note(f"{blocks} in {format_count(len(sessions), 'session')}, {errors}")


MAX_ERRORS = 5


def print_file(file: FileReport | FileNews) -> None:
    """Print a line for a file that was read, and one for each of its problems."""
    if file.format and not getattr(file, "passed", None):
        rewritten = ", rewritten" if isinstance(file, FileNews) and file.again else ""
        blocks = f"{format_count(file.added, 'new block')} of {format_count(file.entries, 'entry')}"
        names = ", ".join(file.sessions[:3]) + (" ..." if len(file.sessions) > 3 else "")
        where = f" in {names}" if names else ""
        print_text(f"{file.path}: {file.format}{rewritten}, {blocks}{where}")
    for problem in _list_problems(file):
        print_text(f"{INDENT}{problem}" if file.format else problem)


def _list_problems(file: FileReport | FileNews) -> Iterator[str]:
    yield from file.errors
    if isinstance(file, FileReport):
        for kind, count in file.unknown.items():
            yield f"{file.unknown_at.get(kind, file.path)}: {count:,} of unknown type {kind}"
        if file.format and not file.complete:
            yield f"{file.path} was not read to its end: import it again to go on"


def print_totals(reports: Iterable[FileReport], *, is_listed: bool, is_full: bool) -> None:
    """Print the totals of all files, after a table by format if they were not listed.

    Args:
        reports: Of all files, also of those that were passed over.
        is_listed: Whether each file was printed already.
        is_full: Whether to print what became of all entries.
    """
    every = list(reports)
    read = [report for report in every if not report.passed]
    if len(read) == 1 and not is_listed:
        print_file(read[0])
    is_summed = len(read) > 1 and not is_listed
    if is_full or is_summed:
        _print_formats(read)
    if is_full:
        print_rows(_list_details(read), "what was left out, or kept as it was")
    if is_full or is_summed:
        problems = [problem for report in read for problem in _list_problems(report)]
        print_list("errors", problems, None if is_full else MAX_ERRORS, ": -v shows all")
    if len(read) > 1:
        sessions = {name for report in read for name in report.sessions}
        added = format_count(sum(report.added for report in read), "new block")
        errors = format_count(sum(len(report.errors) for report in read), "error")
        where = format_count(len(sessions), "session")
        print_text(f"{format_count(len(read), 'file')}: {added} in {where}, {errors}")
    for why, count in Counter(report.passed for report in every if report.passed).items():
        hint = " (--again reads all)" if why == UNCHANGED else ""
        print_text(f"{format_count(count, 'file')} passed over: {why}{hint}")
    if secrets := sum(len(places) for one in every for places in one.redacted.values()):
        print_text(f"{format_count(secrets, 'secret')} left out (--report says where)")


def _print_formats(reports: list[FileReport]) -> None:
    groups: dict[str, list[FileReport]] = {}
    for report in reports:
        groups.setdefault(report.format or "(unknown)", []).append(report)
    rows = []
    for name, group in groups.items():
        ended = sum((Counter(report.ended) for report in group), Counter[str]())
        row: dict[str, object] = {
            "format": name,
            "files": len(group),
            "new blocks": sum(report.added for report in group),
            "entries": sum(report.entries for report in group),
        }
        rows.append(row | {end: ended[end] for end in ("imported", "skipped", "unknown", "error")})
    print_rows(rows)


def _list_details(reports: list[FileReport]) -> list[dict[str, object]]:
    """Return a row for each reason to skip entries, each unknown type and each kind of secret."""
    counts = Counter[tuple[str, str, str]]()
    first: dict[str, str] = {}
    for report in reports:
        name = report.format or ""
        for what, found in (("skipped", report.skipped), ("unknown", report.unknown)):
            counts.update({(name, what, kind): count for kind, count in found.items()})
        for kind, places in report.redacted.items():
            counts.update((name, "secret", f"{kind} at {place}") for place in places)
        first = report.unknown_at | first
    return [
        {
            **dict(zip(("format", "what", "kind"), key, strict=True)),
            "count": count,
            "first": first.get(key[2]) if key[1] == "unknown" else None,
        }
        for key, count in counts.most_common()
    ]
