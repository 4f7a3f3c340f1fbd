"""Implements `import --follow`: stores transcripts as agents write them."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import FrameType

from ...runtime.following.live_file import FileNews
from ...runtime.following.transcript_follower import TranscriptFollower
from ...transcripts.reports import FileReport
from ..command_line.printing import format_count, print_json_line, print_note, print_text
from ..command_line.sessions import open_call_store
from ..command_line.verbs import Invocation
from .import_reports import print_import_report, print_secrets


def follow_paths(
    call: Invocation,
    paths: list[Path],
    *,
    redacts: bool = False,
    reports: bool = False,
    quiet: bool = False,
) -> None:
    """Follow transcripts, and those below folders, until a signal."""
    stop = Event()
    sessions: set[str] = set()
    whole: list[str] = []
    added = errors = 0

    def print_file_news(news: FileNews) -> None:
        nonlocal added, errors
        sessions.update(news.sessions)
        added += news.added
        errors += len(news.errors)
        if call.as_json:
            print_json_line(asdict(news))
        elif news.errors or not quiet:
            _print_news(news)
        sys.stdout.flush()  # show it immediately

    def note_import(report: FileReport) -> None:
        whole.append(report.format or "")
        print_file_news(
            FileNews(
                path=report.path,
                format=report.format or "",
                sessions=tuple(report.sessions),
                entries=report.entries,
                added=report.added,
                errors=tuple(report.errors),
            )
        )

    def ready() -> None:
        if whole:
            formats = ", ".join(dict.fromkeys(whole))
            print_note(
                f"{format_count(len(whole), 'transcript')} of {formats} imported, and not followed"
            )
        print_note(f"following {', '.join(map(str, paths))}: Ctrl-C ends it")

    with open_call_store(call, creates=True) as store, _stop_on_signals(stop):
        follower = TranscriptFollower(
            store,
            paths,
            namespace=call.namespace,
            heard=print_file_news,
            imported=note_import,
            redacts=redacts,
        )
        follower.follow(stop, ready)
    every = list(follower.reports.values())
    if not call.as_json:
        print_secrets(every)
        if reports:
            print_import_report(every)
    blocks = f"{format_count(added, 'new block')} in {format_count(len(sessions), 'session')}"
    print_note(f"{blocks}, {format_count(errors, 'error')}")


@contextmanager
def _stop_on_signals(stop: Event) -> Iterator[None]:
    """Set `stop` on a signal, so that the current file is finished. A second signal kills the
    program.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            restore()
            os.kill(os.getpid(), number)
        stop.set()

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()


def _print_news(news: FileNews) -> None:
    names = ", ".join(news.sessions[:3]) + (" ..." if len(news.sessions) > 3 else "")
    added, entries = format_count(news.added, "new block"), format_count(news.entries, "entry")
    anew = ", rewritten" if news.again else ""
    print_text(f"{news.path}: {news.format}{anew}, {added} of {entries} in {names}")
    for error in news.errors:
        print_text(f"    {error}")
