"""What holds of every reading of every file, whatever its bytes."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import cutbank
from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognise
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.json_lines import LONGEST
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Begin,
    EntryRead,
    Problem,
    Skipped,
    Step,
    Unknown,
)

STEPS = frozenset(get_args(Step))
SECONDS = 60
"""A reading that takes as long hangs: what is read here are small files."""
NEEDED = {"imported": (), "skipped": (Skipped,), "unknown": (Unknown,), "error": (Problem,)}
"""Which step an entry has at least that ended in this way."""


def check_told(path: Path, longest: int = LONGEST) -> Format | None:
    """Telling the format never fails; says which it is."""
    source = Source(path, longest=longest)
    for one in FORMATS.values():
        one.recognises(source)
    return recognise(Source(path, longest=longest))


def check_read(found: Format, path: Path, longest: int = LONGEST) -> list[Step]:
    """The steps of a reading, which are as they must be."""
    steps: list[Step] = []
    most = 1_000 + 20 * Source(path).size
    try:
        for step in found.read(Source(path, longest=longest)):
            assert type(step) in STEPS, step
            steps.append(step)
            assert len(steps) < most, f"{found.name} goes on and on"
    except OSError:
        pass  # what cannot be read is not read on, and the import says so
    else:
        check_offsets(found, path, steps, longest)
    check_entries(steps)
    return steps


def check_entries(steps: list[Step]) -> None:
    """Each entry ends once, in one of the ways, and says why; blocks have a session."""
    begun = False
    inside: list[Step] = []
    for step in steps:
        match step:
            case EntryRead(outcome=outcome):
                assert outcome in NEEDED, step
                for needed in NEEDED[outcome]:
                    assert any(isinstance(one, needed) for one in inside), (step, inside)
                inside = []
            case Begin(key=key):
                assert isinstance(key, str)
                assert key
                begun = True
                inside.append(step)
            case Append():
                assert begun, "a block has a session"
                inside.append(step)
            case _:
                inside.append(step)


def check_offsets(found: Format, path: Path, steps: list[Step], longest: int) -> None:
    """A file of lines ends an entry at each line that is not blank, and goes forward."""
    if found.begin is None:
        return
    ends = [line.end for line in Source(path, longest=longest).lines()]
    assert [step.offset for step in steps if isinstance(step, EntryRead)] == ends


def check_keys(steps: list[Step]) -> None:
    """Where the source's ids are its own, no two appends to a session have one name."""
    session = ""
    named: set[tuple[str, str]] = set()
    for step in steps:
        match step:
            case Begin(key=key):
                session = key
            case Append(key=key) | Aside(key=key) | Unknown(key=key):
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
    if found is None:
        return
    for session in store.sessions():
        if found.write and session.forked_from is None:
            export(session, found.name, BytesIO())
        elif found.write_folder and session.forked_from is None:
            with TemporaryDirectory() as folder:
                export(session, found.name, Path(folder, "out"))


@contextmanager
def in_time() -> Iterator[None]:
    """Fails where reading hangs."""

    def ring(*_: Any) -> None:
        raise AssertionError(f"nothing was read for {SECONDS} seconds")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
