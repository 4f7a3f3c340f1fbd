"""Prints reports of imported files."""

from collections import Counter
from collections.abc import Iterable

from ...runtime.following.live_file import FileNews
from ...runtime.importing.file_import import NOT_A_TRANSCRIPT, UNCHANGED
from ...transcripts.reports import FileReport
from ..command_line.printing import format_count, print_list, print_table, print_text

MAX_PROBLEMS = 5


def print_file_report(report: FileReport) -> None:
    """Print a line for a file and for each of its problems; nothing if it was skipped."""
    names = ", ".join(report.sessions[:3]) + (" ..." if len(report.sessions) > 3 else "")
    if report.format and not report.passed:
        where = f" in {names}" if names else ""
        print_text(f"{report.path}: {report.format}, {format_added_blocks(report)}{where}")
    for kind, count in report.unknown.items():
        print_text(f"    {count:,} of the unknown type {kind} are kept as notes")
    for error in report.errors:
        print_text(f"    {error}" if report.format else error)
    if report.format and not report.complete:
        print_text("    it was not read to its end: import it again to go on")


def format_added_blocks(report: FileReport | FileNews) -> str:
    """Return e.g. `2 new blocks of 3 entries`."""
    return f"{format_count(report.added, 'new block')} of {format_count(report.entries, 'entry')}"


def print_file_reports(reports: list[FileReport]) -> None:
    """Print one file's report, or a table of formats and the first problems of several files."""
    read = [report for report in reports if not report.passed]
    if len(read) < 2:
        for report in read:
            print_file_report(report)
        return
    print_table(
        ("format", "files", "sessions", "new blocks", "kept as notes", "errors"),
        [
            (
                name,
                len(its),
                len({session for report in its for session in report.sessions}),
                sum(report.added for report in its),
                sum(sum(report.unknown.values()) for report in its),
                sum(len(report.errors) for report in its),
            )
            for name, its in _group_by_format(read, "(unknown)").items()
        ],
    )
    broken = [report for report in read if not report.complete and report.format]
    errors = [error for report in read for error in report.errors]
    again = "was not read to its end: import it again to go on"
    print_list("errors", errors, MAX_PROBLEMS, ": -v shows all")
    print_list("unfinished", [f"{report.path} {again}" for report in broken], None)


def print_total(reports: list[FileReport]) -> None:
    """Print a line for all files, and one for each group of skipped files."""
    read = [report for report in reports if not report.passed]
    if len(read) > 1:
        added = sum(report.added for report in read)
        sessions = {name for report in read for name in report.sessions}
        errors = sum(len(report.errors) for report in read)
        blocks = f"{format_count(added, 'new block')} in {format_count(len(sessions), 'session')}"
        print_text(f"{format_count(len(read), 'file')}: {blocks}, {format_count(errors, 'error')}")
    passed = Counter(report.passed for report in reports)
    if count := passed[UNCHANGED]:
        said = "has not changed since it was" if count == 1 else "have not changed since they were"
        print_text(f"{format_count(count, 'file')} {said} imported (--again reads all)")
    if count := passed[NOT_A_TRANSCRIPT]:
        said = "is not a transcript" if count == 1 else "are not transcripts"
        print_text(f"{format_count(count, 'file')} {said}")
    print_secrets(reports)


def print_secrets(reports: Iterable[FileReport]) -> None:
    if secrets := sum(len(places) for one in reports for places in one.redacted.values()):
        print_text(f"{format_count(secrets, 'secret')} left out (--report says where)")


def print_import_report(reports: Iterable[FileReport]) -> None:
    read = [report for report in reports if report.format and not report.passed]
    groups = _group_by_format(read, "")
    if groups:
        print_text()
        print_table(
            ("format", "files", "entries", "imported", "skipped", "unknown", "error"),
            [(name, len(its), *_sum_outcomes(its)) for name, its in groups.items()],
        )
    for name, its in groups.items():
        skipped = sum((Counter(report.skipped) for report in its), Counter[str]())
        _print_counts(f"{name}: skipped, for", skipped.most_common())
        unknown = sum((Counter(report.unknown) for report in its), Counter[str]())
        first: dict[str, str] = {}
        for report in its:
            first = report.unknown_at | first
        _print_counts(
            f"{name}: of unknown types, kept as notes; the first of each",
            [(f"{kind}  {first[kind]}", count) for kind, count in unknown.most_common()],
        )
        errors = [error for report in its for error in report.errors]
        print_list(f"{name}: errors", errors, None)
        secrets = [
            (f"{kind}  {place}", count)
            for report in its
            for kind, places in report.redacted.items()
            for place, count in Counter(places).items()
        ]
        _print_counts(f"{name}: secrets that were left out", secrets)


def _group_by_format(reports: Iterable[FileReport], unknown: str) -> dict[str, list[FileReport]]:
    groups: dict[str, list[FileReport]] = {}
    for report in reports:
        groups.setdefault(report.format or unknown, []).append(report)
    return groups


def _sum_outcomes(reports: list[FileReport]) -> list[int]:
    outcomes = ("imported", "skipped", "unknown", "error")
    ended = sum((Counter(report.ended) for report in reports), Counter[str]())
    return [sum(report.entries for report in reports), *(ended[one] for one in outcomes)]


def _print_counts(heading: str, counts: list[tuple[str, int]]) -> None:
    print_list(heading, [f"{count:>9,}  {what}" for what, count in counts], None)
