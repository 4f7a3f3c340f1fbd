"""Every transcript of every format is imported whole, verified, and written back as it was."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from essences import essence_of
from transcripts import NO_SESSIONS, SESSIONS, manifest, name_of, real, samples

from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognise
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.reports import FileReport

EVERY = [pytest.param(path, id=name_of(path)) for path in [*samples(), *real()]]
MADE = [name for name, one in FORMATS.items() if one.write or one.write_folder]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def imported(store: SessionStore, path: Path) -> FileReport:
    (report,) = import_path(store, path)
    return report


@pytest.mark.parametrize("path", EVERY)
def test_exactly_one_format_recognises_it(path: Path) -> None:
    found = [one.name for one in FORMATS.values() if one.recognises(Source(path))]

    assert len(found) == 1


@pytest.mark.parametrize("path", EVERY)
def test_every_entry_is_accounted_for_and_nothing_is_added_by_importing_it_again(
    store: SessionStore, path: Path
) -> None:
    report = imported(store, path)
    again = imported(store, path)

    assert report.complete
    assert sum(report.ended.values()) == report.entries > 0
    assert report.ended.keys() <= {"imported", "skipped", "unknown", "error"}
    assert sum(report.skipped.values()) >= report.ended.get("skipped", 0)
    assert sum(report.unknown.values()) >= report.ended.get("unknown", 0)
    assert len(report.errors) >= report.ended.get("error", 0)
    assert again.added == 0
    assert verify(store).ok


@pytest.mark.parametrize("path", EVERY)
def test_round_trip(store: SessionStore, path: Path, tmp_path: Path) -> None:
    """What the agent needs to go on is the same in what is exported as in what was imported."""
    found = recognise(Source(path))
    assert found
    if not (found.write or found.write_folder):
        pytest.skip(f"{found.name} is only read")
    essence = essence_of(found.name)
    report = imported(store, path)
    stored = [store.session(key, create=False) for key in report.sessions]
    sessions = [one for one in stored if one.forked_from is None]

    again: dict[str, Any] = {}
    for session in sessions:
        # Some formats know a session by its file's name alone.
        name = quote(session.key, safe="")
        target = tmp_path / f"{name}{found.suffix if found.write else ''}"
        assert export(session, found.name, target).lost == {}
        again |= essence(target)

    expected = essence(path)
    assert again.keys() == expected.keys() == {session.key for session in sessions}
    for key, entries in expected.items():
        assert again[key] == entries, key


@pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)
@pytest.mark.parametrize("path", [pytest.param(path, id=name_of(path)) for path in manifest()])
def test_the_manifest_counts_the_same(store: SessionStore, path: Path) -> None:
    row = manifest()[path]

    (report,) = import_path(store, path)

    counted = {
        "tool_calls": report.tool_calls,
        "tool_results": report.tool_results,
        "compactions": report.compactions,
    }
    assert counted == {name: int(row[name]) for name in counted}
    assert report.complete


@pytest.mark.parametrize("name", MADE)
def test_every_format_that_is_written_has_samples(name: str) -> None:
    found = {one.name for path in samples() if (one := recognise(Source(path)))}

    assert name in found
