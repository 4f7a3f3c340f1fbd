"""Every transcript of every format is imported whole, verified, and written back as it was."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest
from essences import essence_of
from reading_rules import check_keys, check_read
from transcripts import import_file, manifest, name_of, real, samples

import cutbank
from cutbank import FileReport, SessionStore, export, verify
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart


def by_format() -> Iterator[Any]:
    """The transcripts of each format, the samples apart from the real ones."""
    for kind, paths in (("samples", samples()), ("real", real())):
        for name, found in groupby(sorted(paths), key=lambda path: name_of(path).split("/")[0]):
            yield pytest.param(list(found), id=f"{kind}-{name}")


@pytest.mark.parametrize("paths", list(by_format()))
def test_a_transcript_is_read_imported_verified_and_written_back(paths: list[Path]) -> None:
    for path in paths:
        (found,) = (one for one in FORMATS.values() if one.recognizes(TranscriptSource(path)))
        check_keys(check_read(found, path))
        with cutbank.open(":memory:") as store, TemporaryDirectory() as folder:
            report = import_file(store, path)
            check_report(report)
            check_manifest(report, manifest().get(path))
            assert import_file(store, path).added == 0
            assert verify(store).is_ok
            if found.write or found.write_folder:
                check_round_trip(store, report, found, path, Path(folder))


def check_report(report: FileReport) -> None:
    """Every entry ended in one way, and each that was not imported is explained."""
    assert report.complete
    assert sum(report.ended.values()) == report.entries > 0
    assert report.ended.keys() <= {"imported", "skipped", "unknown", "error"}
    assert sum(report.skipped.values()) >= report.ended.get("skipped", 0)
    assert sum(report.unknown.values()) >= report.ended.get("unknown", 0)
    assert len(report.errors) >= report.ended.get("error", 0)


def check_manifest(report: FileReport, row: dict[str, str] | None) -> None:
    counted = {
        "tool_calls": report.tool_calls,
        "tool_results": report.tool_results,
        "compactions": report.compactions,
    }
    assert row is None or counted == {name: int(row[name]) for name in counted}


def check_round_trip(
    store: SessionStore, report: FileReport, found: Format, path: Path, folder: Path
) -> None:
    """Check that what is exported has the same keys, and all that the agent needs to go on."""
    essence = essence_of(found.name)
    again: list[Any] = []
    keys: set[str] = set()
    stored = [store.session(key, create=False) for key in report.sessions]
    for session in (one for one in stored if one.info.forked_from is None):
        # Some formats know a session by its file's name alone.
        name = quote(session.key, safe="")
        target = folder / f"{name}{found.suffix if found.write else ''}"
        assert export(session, found.name, target).lost == {}
        again += essence(target)
        steps = found.read(TranscriptSource(target))
        keys |= {step.key for step in steps if isinstance(step, SessionStart)}
    assert keys == set(report.sessions)
    assert sorted(again, key=repr) == sorted(essence(path), key=repr)


def test_every_format_has_samples() -> None:
    assert {name_of(path).split("/")[0] for path in samples()} == FORMATS.keys()
