"""Prints reports of imported files."""

from collections import Counter
from collections.abc import Iterable

from ...runtime.importing.file_import import NOT_A_TRANSCRIPT, UNCHANGED
from ...transcripts.reports import FileReport
from .printing import format_count, print_table, print_text, print_wrapped

MAX_PROBLEMS = 5


def print_file_report(report: FileReport) -> None:
    """Print a line for a file and for each of its problems; nothing if it was skipped."""
    names = ", ".join(report.sessions[:3]) + (" ..." if len(report.sessions) > 3 else "")
    if report.format and not report.passed:
        added, entries = (
            format_count(report.added, "new block"),
            format_count(report.entries, "entry"),
        )
        where = f" in {names}" if names else ""
        print_text(f"{report.path}: {report.format}, {added} of {entries}{where}")
    for kind, count in report.unknown.items():
        print_text(f"    {count:,} of the unknown type {kind} are kept as notes")
    for error in report.errors:
        print_text(f"    {error}" if report.format else error)
    if report.format and not report.complete:
        print_text("    it was not read to its end: import it again to go on")


def print_file_reports(reports: list[FileReport]) -> None:
    """Print one file's report, or a table of formats and the first problems of several files."""
    read = [report for report in reports if not report.passed]
    if len(read) < 2:
        for report in read:
            print_file_report(report)
        return
    of_formats: dict[str, list[FileReport]] = {}
    for report in read:
        of_formats.setdefault(report.format or "(unknown)", []).append(report)
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
            for name, its in of_formats.items()
        ],
    )
    broken = [report for report in read if not report.complete and report.format]
    errors = [error for report in read for error in report.errors]
    if errors or broken:
        print_text()
    for error in errors[:MAX_PROBLEMS]:
        print_wrapped(error, "    ")
    if len(errors) > MAX_PROBLEMS:
        print_text(
            f"... and {format_count(len(errors) - MAX_PROBLEMS, 'more error')}: -v shows all"
        )
    for report in broken:
        print_wrapped(f"{report.path} was not read to its end: import it again to go on", "    ")


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
    """Print the number of redacted secrets, if any."""
    if secrets := sum(len(places) for one in reports for places in one.redacted.values()):
        print_text(f"{format_count(secrets, 'secret')} left out (--report says where)")


def print_import_report(reports: Iterable[FileReport]) -> None:
    """Print by format what each kind of entry became."""
    of_formats: dict[str, list[FileReport]] = {}
    for report in reports:
        if report.format and not report.passed:
            of_formats.setdefault(report.format, []).append(report)
    if of_formats:
        print_text()
        print_table(
            ("format", "files", "entries", "imported", "skipped", "unknown", "error"),
            [(name, len(its), *_sum_outcomes(its)) for name, its in of_formats.items()],
        )
    for name, its in of_formats.items():
        _print_skipped(name, its)
        _print_unknown(name, its)
        _print_errors(name, its)
        _print_redacted(name, its)


def _sum_outcomes(reports: list[FileReport]) -> list[int]:
    outcomes = ("imported", "skipped", "unknown", "error")
    ended = sum((Counter(report.ended) for report in reports), Counter[str]())
    return [sum(report.entries for report in reports), *(ended[one] for one in outcomes)]


def _print_skipped(name: str, reports: list[FileReport]) -> None:
    skipped = sum((Counter(report.skipped) for report in reports), Counter[str]())
    if skipped:
        print_text(f"\n{name}: skipped, for")
        for reason, count in skipped.most_common():
            print_text(f"  {count:>9,}  {reason}")


def _print_unknown(name: str, reports: list[FileReport]) -> None:
    unknown = sum((Counter(report.unknown) for report in reports), Counter[str]())
    first: dict[str, str] = {}
    for report in reports:
        first = report.unknown_at | first
    if unknown:
        print_text(f"\n{name}: of unknown types, kept as notes; the first of each")
        for kind, count in unknown.most_common():
            print_text(f"  {count:>9,}  {kind}  {first[kind]}")


def _print_errors(name: str, reports: list[FileReport]) -> None:
    errors = [error for report in reports for error in report.errors]
    if errors:
        print_text(f"\n{name}: errors")
        for error in errors:
            print_text(f"  {error}")


def _print_redacted(name: str, reports: list[FileReport]) -> None:
    if any(report.redacted for report in reports):
        print_text(f"\n{name}: secrets that were left out")
        for report in reports:
            for kind, places in report.redacted.items():
                for place, count in Counter(places).items():
                    print_text(f"  {count:>9,}  {kind}  {place}")
