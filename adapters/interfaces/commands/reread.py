"""Implements `reread`: what today's reader makes of a source that was kept."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial

from ...runtime.importing.reread import ChangedEntry, ReadBlock, RereadReport
from ...runtime.importing.reread import reread as reread_session
from ..command_line.options import FULL, SESSION
from ..command_line.printing import format_count, print_list, print_rows, print_text
from ..command_line.sessions import open_call_session
from ..command_line.verbs import Answer, Invocation, option

_MAX_ENTRIES = 20


def reread(
    call: Invocation,
    session: str = SESSION,
    *,
    into: str | None = option("--into NAMESPACE", "Store the new reading there, by the same name."),
    full: bool = FULL,
) -> Answer:
    """The session stays as it is; without --into nothing is stored."""
    with open_call_session(call, session) as found:
        report = reread_session(found, into=into)
    return Answer(asdict(report), partial(_print_report, report, None if full else _MAX_ENTRIES))


def _print_report(report: RereadReport, most: int | None) -> None:
    for line in _list_totals(report):
        print_text(line)
    hint = ": --full lists all"
    rows = [_make_row(entry, report) for entry in report.changed]
    print_rows(rows, "read otherwise than before", most, hint)
    print_list("not read", report.errors, most, hint)


def _list_totals(report: RereadReport) -> Iterator[str]:
    files = format_count(len(report.files), "file")
    lines = format_count(len(report.changed), "entry")
    blocks = format_count(report.blocks, "block")
    yield f"{report.session}: {files} read again: {blocks} as before, {lines} read otherwise"
    if report.into is not None:
        names = ", ".join(f"{report.into}/{key}" for key in report.sessions)
        yield f"stored as {names}"


def _make_row(entry: ChangedEntry, report: RereadReport) -> dict[str, object]:
    return {
        "session": entry.session if len(report.sessions) > 1 else "",
        "file": entry.file if len(report.files) > 1 else "",
        "line": entry.line,
        "before": _format_blocks(entry.before),
        "now": _format_blocks(entry.now),
    }


def _format_blocks(blocks: Iterable[ReadBlock]) -> str:
    return ", ".join(
        f"{block.kind} {block.handle} of {format_count(block.characters, 'character')}"
        + (", retracted" if block.retracted else "")
        for block in blocks
    )
