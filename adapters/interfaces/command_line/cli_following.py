"""Import that goes on: what agents write is stored as they write it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import FrameType

from ...runtime.following.follower import Follower
from ...runtime.following.live_file import News
from ...transcripts.reports import FileReport
from . import import_lines
from .database import opened_store
from .invocation import Invocation
from .printing import counted, remark, say, say_json_line


def follow_paths(
    call: Invocation,
    paths: list[Path],
    *,
    redacts: bool = False,
    reports: bool = False,
    quiet: bool = False,
) -> None:
    """Follow transcripts, and those below folders, until a signal says to stop."""
    stop = Event()
    sessions: set[str] = set()
    whole: list[str] = []
    added = errors = 0

    def heard(news: News) -> None:
        nonlocal added, errors
        sessions.update(news.sessions)
        added += news.added
        errors += len(news.errors)
        if call.as_json:
            say_json_line(asdict(news))
        elif news.errors or not quiet:
            _say_news(news)
        sys.stdout.flush()  # somebody reads along

    def imported(report: FileReport) -> None:
        whole.append(report.format or "")
        heard(_news_of(report))

    def ready() -> None:
        if whole:
            formats = ", ".join(dict.fromkeys(whole))
            remark(f"{counted(len(whole), 'transcript')} of {formats} imported, and not followed")
        remark(f"following {', '.join(map(str, paths))}: Ctrl-C ends it")

    with opened_store(call, creates=True) as store, _stopped_by_signals(stop):
        follower = Follower(
            store,
            paths,
            namespace=call.namespace,
            heard=heard,
            imported=imported,
            redacts=redacts,
        )
        follower.follow(stop, ready)
    every = list(follower.reports.values())
    if not call.as_json:
        import_lines.say_secrets(every)
        if reports:
            import_lines.say_report(every)
    blocks = f"{counted(added, 'new block')} in {counted(len(sessions), 'session')}"
    remark(f"{blocks}, {counted(errors, 'error')}")


@contextmanager
def _stopped_by_signals(stop: Event) -> Iterator[None]:
    """What is being stored is finished first. A second signal ends the program as usual."""
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


def _news_of(report: FileReport) -> News:
    return News(
        path=report.path,
        format=report.format or "",
        sessions=tuple(report.sessions),
        entries=report.entries,
        added=report.added,
        errors=tuple(report.errors),
    )


def _say_news(news: News) -> None:
    """A file in a line, and what is wrong in it in one each."""
    names = ", ".join(news.sessions[:3]) + (" ..." if len(news.sessions) > 3 else "")
    added, entries = counted(news.added, "new block"), counted(news.entries, "entry")
    anew = ", written anew" if news.again else ""
    say(f"{news.path}: {news.format}{anew}, {added} of {entries} in {names}")
    for error in news.errors:
        say(f"    {error}")
