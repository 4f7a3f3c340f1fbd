"""Prints what became of imported files."""

from collections import Counter
from collections.abc import Iterable

from ...runtime.following.live_file import FileNews
from ...runtime.importing.file_import import UNCHANGED
from ...transcripts.reports import FileReport
from ..command_line.printing import INDENT, format_count, print_list, print_rows, print_text

MAX_ERRORS = 5


def print_file(file: FileReport | FileNews) -> None:
    """Print a line for a file that was read, and one for each of its problems."""
    report = file if isinstance(file, FileReport) else None
    if file.format and not (report and report.passed):
        rewritten = ", rewritten" if isinstance(file, FileNews) and file.again else ""
        blocks = f"{format_count(file.added, 'new block')} of {format_count(file.entries, 'entry')}"
        names = ", ".join(file.sessions[:3]) + (" ..." if len(file.sessions) > 3 else "")
        where = f" in {names}" if names else ""
        print_text(f"{file.path}: {file.format}{rewritten}, {blocks}{where}")
    problems = list(file.errors)
    if report:
        problems += [f"{count:,} of unknown type {kind}" for kind, count in report.unknown.items()]
        if report.format and not report.complete:
            problems.append("it was not read to its end: import it again to go on")
    for problem in problems:
        print_text(f"{INDENT}{problem}" if file.format else problem)


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
    if is_full or (len(read) > 1 and not is_listed):
        _print_formats(read)
    if len(read) > 1:
        errors = [error for report in read for error in report.errors]
        if not (is_listed or is_full):
            print_list("errors", errors, MAX_ERRORS, ": -v shows all")
            broken = [one.path for one in read if one.format and not one.complete]
            print_list("not read to the end: import them again to go on", broken, None)
        sessions = {name for report in read for name in report.sessions}
        added = format_count(sum(report.added for report in read), "new block")
        where = format_count(len(sessions), "session")
        total = f"{added} in {where}, {format_count(len(errors), 'error')}"
        print_text(f"{format_count(len(read), 'file')}: {total}")
    for why, count in Counter(report.passed for report in every if report.passed).items():
        hint = " (--again reads all)" if why == UNCHANGED else ""
        print_text(f"{format_count(count, 'file')} passed over: {why}{hint}")
    if secrets := sum(len(places) for one in every for places in one.redacted.values()):
        print_text(f"{format_count(secrets, 'secret')} left out (--report says where)")
    if is_full:
        print_rows(_list_details(read), "what was left out, or kept as it was", None)
        print_list("errors", [error for report in read for error in report.errors], None)


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
    first: dict[tuple[str, str, str], str] = {}
    for report in reports:
        parts = {"skipped": report.skipped, "unknown": report.unknown}
        for what, found in parts.items():
            for kind, count in found.items():
                key = (report.format or "", what, kind)
                counts[key] += count
                first.setdefault(key, report.unknown_at.get(kind, "") if what == "unknown" else "")
        for kind, places in report.redacted.items():
            for place, count in Counter(places).items():
                counts[(report.format or "", "secret", f"{kind} at {place}")] += count
    return [
        {"format": key[0], "what": key[1], "kind": key[2], "count": count, "first": first.get(key)}
        for key, count in counts.most_common()
    ]
