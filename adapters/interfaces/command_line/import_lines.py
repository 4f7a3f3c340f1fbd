"""What `import` says of the files that it read, in lines."""

from collections import Counter
from collections.abc import Iterable

from ...runtime.importing.file_import import NOT_A_TRANSCRIPT, UNCHANGED
from ...transcripts.reports import FileReport
from .printing import counted, say, say_folded, say_table

FIRST = 5
"""How many errors are named, where not all are wanted."""


def say_file(report: FileReport) -> None:
    """A file in a line, and what is wrong in it in one each; nothing where it was passed over."""
    names = ", ".join(report.sessions[:3]) + (" ..." if len(report.sessions) > 3 else "")
    if report.format and not report.passed:
        added, entries = counted(report.added, "new block"), counted(report.entries, "entry")
        where = f" in {names}" if names else ""
        say(f"{report.path}: {report.format}, {added} of {entries}{where}")
    for kind, count in report.unknown.items():
        say(f"    {count:,} of the unknown type {kind} are kept as notes")
    for error in report.errors:
        say(f"    {error}" if report.format else error)
    if report.format and not report.complete:
        say("    it was not read to its end: import it again to go on")


def say_files(reports: list[FileReport]) -> None:
    """One file as `say_file` does; of more, a table of their formats and the first problems."""
    read = [report for report in reports if not report.passed]
    if len(read) < 2:
        for report in read:
            say_file(report)
        return
    of_formats: dict[str, list[FileReport]] = {}
    for report in read:
        of_formats.setdefault(report.format or "(unknown)", []).append(report)
    say_table(
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
        say()
    for error in errors[:FIRST]:
        say_folded(error, "    ")
    if len(errors) > FIRST:
        say(f"... and {counted(len(errors) - FIRST, 'more error')}: -v shows all")
    for report in broken:
        say_folded(f"{report.path} was not read to its end: import it again to go on", "    ")


def say_total(reports: list[FileReport]) -> None:
    """All files in a line, and what was passed over in one each."""
    read = [report for report in reports if not report.passed]
    if len(read) > 1:
        added = sum(report.added for report in read)
        sessions = {name for report in read for name in report.sessions}
        errors = sum(len(report.errors) for report in read)
        blocks = f"{counted(added, 'new block')} in {counted(len(sessions), 'session')}"
        say(f"{counted(len(read), 'file')}: {blocks}, {counted(errors, 'error')}")
    passed = Counter(report.passed for report in reports)
    if count := passed[UNCHANGED]:
        said = "has not changed since it was" if count == 1 else "have not changed since they were"
        say(f"{counted(count, 'file')} {said} imported (--again reads all)")
    if count := passed[NOT_A_TRANSCRIPT]:
        said = "is not a transcript" if count == 1 else "are not transcripts"
        say(f"{counted(count, 'file')} {said}")
    say_secrets(reports)


def say_secrets(reports: Iterable[FileReport]) -> None:
    """How many were left out, if any was."""
    if secrets := sum(len(places) for one in reports for places in one.redacted.values()):
        say(f"{counted(secrets, 'secret')} left out (--report says where)")


def say_report(reports: Iterable[FileReport]) -> None:
    """What became of the entries, format by format."""
    of_formats: dict[str, list[FileReport]] = {}
    for report in reports:
        if report.format and not report.passed:
            of_formats.setdefault(report.format, []).append(report)
    if of_formats:
        say()
        say_table(
            ("format", "files", "entries", "imported", "skipped", "unknown", "error"),
            [(name, len(its), *_ended(its)) for name, its in of_formats.items()],
        )
    for name, its in of_formats.items():
        _say_skipped(name, its)
        _say_unknown(name, its)
        _say_errors(name, its)
        _say_redacted(name, its)


def _ended(reports: list[FileReport]) -> list[int]:
    outcomes = ("imported", "skipped", "unknown", "error")
    ended = sum((Counter(report.ended) for report in reports), Counter[str]())
    return [sum(report.entries for report in reports), *(ended[one] for one in outcomes)]


def _say_skipped(name: str, reports: list[FileReport]) -> None:
    skipped = sum((Counter(report.skipped) for report in reports), Counter[str]())
    if skipped:
        say(f"\n{name}: skipped, for")
        for reason, count in skipped.most_common():
            say(f"  {count:>9,}  {reason}")


def _say_unknown(name: str, reports: list[FileReport]) -> None:
    unknown = sum((Counter(report.unknown) for report in reports), Counter[str]())
    first: dict[str, str] = {}
    for report in reports:
        first = report.unknown_at | first
    if unknown:
        say(f"\n{name}: of unknown types, kept as notes; the first of each")
        for kind, count in unknown.most_common():
            say(f"  {count:>9,}  {kind}  {first[kind]}")


def _say_errors(name: str, reports: list[FileReport]) -> None:
    errors = [error for report in reports for error in report.errors]
    if errors:
        say(f"\n{name}: errors")
        for error in errors:
            say(f"  {error}")


def _say_redacted(name: str, reports: list[FileReport]) -> None:
    if any(report.redacted for report in reports):
        say(f"\n{name}: secrets that were left out")
        for report in reports:
            for kind, places in report.redacted.items():
                for place, count in Counter(places).items():
                    say(f"  {count:>9,}  {kind}  {place}")
