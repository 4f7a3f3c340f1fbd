"""What holds of every reading of every file, whatever its bytes."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

from transcripts import import_path

import cutbank
from cutbank import SessionStore, export, verify
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.json_lines import MAX_LINE_BYTES
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    SessionStart,
)

STEPS = frozenset(get_args(ImportStep))
SECONDS = 60
"""A reading that takes as long hangs: what is read here are small files."""


def check_told(path: Path, longest: int = MAX_LINE_BYTES) -> Format | None:
    """Telling the format never fails; says which it is."""
    source = TranscriptSource(path, longest=longest)
    for one in FORMATS.values():
        one.recognizes(source)
    return recognize_format(TranscriptSource(path, longest=longest))


def check_read(found: Format, path: Path, longest: int = MAX_LINE_BYTES) -> list[ImportStep]:
    steps: list[ImportStep] = []
    most = 1_000 + 20 * TranscriptSource(path).size
    try:
        for step in found.read(TranscriptSource(path, longest=longest)):
            assert type(step) in STEPS, step
            steps.append(step)
            assert len(steps) < most, f"{found.name} goes on and on"
    except OSError:
        pass  # what cannot be read is not read on, and the import says so
    else:
        check_offsets(found, path, steps, longest)
    check_entries(steps)
    return steps


def check_entries(steps: list[ImportStep]) -> None:
    """Blocks have a session, and an origin."""
    begun = False
    for step in steps:
        match step:
            case SessionStart(key=key):
                assert isinstance(key, str)
                assert key
                begun = True
            case Append(block=block):
                assert begun, "a block has a session"
                assert block.origin, "a block without one counts as added after the import"
            case _:
                pass


def check_offsets(found: Format, path: Path, steps: list[ImportStep], longest: int) -> None:
    """A file of lines ends an entry at each line that is not blank, and goes forward."""
    if found.begin_reading is None:
        return
    ends = [line.end for line in TranscriptSource(path, longest=longest).read_lines()]
    assert [step.offset for step in steps if isinstance(step, EntryEnd)] == ends


def check_keys(steps: list[ImportStep]) -> None:
    """Where the source's ids are its own, no two appends to a session have one name."""
    session = ""
    named: set[tuple[str, str]] = set()
    for step in steps:
        match step:
            case SessionStart(key=key):
                session = key
            case Append(key=key):
                assert (session, key) not in named, step
                named.add((session, key))
            case _:
                pass


def check_imported(path: Path) -> None:
    """What is imported is verified, is added once, and can be exported in its own format."""
    with cutbank.open(":memory:") as store:
        (report,) = import_path(store, path)
        if report.format is None:
            assert report.errors
            assert not store.sessions()
            return
        assert sum(report.ended.values()) == report.entries
        assert report.complete or report.errors
        assert verify(store).violations == []
        if report.complete:
            (again,) = import_path(store, path)
            assert again.added == 0, report.errors
            _check_exported(store, FORMATS.get(report.format))


def _check_exported(store: SessionStore, found: Format | None) -> None:
    if found is None or found.write is None:
        return
    for session in store.sessions():
        if session.info.forked_from is None:
            export(session, found.name, BytesIO())


@contextmanager
def in_time() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise AssertionError(f"nothing was read for {SECONDS} seconds")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
