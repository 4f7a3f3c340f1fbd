"""Every transcript of every format is imported whole, verified, kept, and exported as it came."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from kept_sources import kept_bytes, named_lines
from reading_rules import check_keys, check_read
from transcripts import import_file, manifest, name_of, real, samples

import cutbank
from cutbank import FileReport, SessionStore, export, verify
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource, unpack_files


def by_format() -> Iterator[Any]:
    """The transcripts of each format, the samples apart from the real ones."""
    for kind, paths, marks in (("samples", samples(), ()), ("real", real(), pytest.mark.slow)):
        for name, found in groupby(sorted(paths), key=lambda path: name_of(path).split("/")[0]):
            yield pytest.param(list(found), id=f"{kind}-{name}", marks=marks)


@pytest.mark.parametrize("paths", list(by_format()))
def test_a_transcript_is_read_imported_verified_kept_and_exported_as_it_came(
    paths: list[Path],
) -> None:
    for path in paths:
        (found,) = (one for one in FORMATS.values() if one.recognizes(TranscriptSource(path)))
        check_keys(check_read(found, path))
        with cutbank.open(":memory:") as store, TemporaryDirectory() as folder:
            report = import_file(store, path)
            check_report(report)
            check_manifest(report, manifest().get(path))
            assert import_file(store, path).added == 0
            assert verify(store).is_ok
            check_source(store, report, Path(folder))


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


def check_source(store: SessionStore, report: FileReport, folder: Path) -> None:
    """Check that the file is kept, that each block names its line, and that it goes out again."""
    path = Path(report.path)  # of a folder, the one below it that is a transcript
    kept = kept_bytes(store, path)
    assert (dict(unpack_files(kept)) if path.is_dir() else kept) == read_files(path)
    lines = kept.split(b"\n")
    for key in report.sessions:
        for number, line in named_lines(store.session(key, create=False)):
            assert line.rstrip(b"\n") == lines[number - 1]
    assert report.format
    every = [store.session(key, create=False) for key in report.sessions]
    roots = [one for one in every if one.log.parent is None and one.info.forked_from is None]
    if FORMATS[report.format].begin_reading or len(roots) == 1:
        export(every[0], report.format, folder / "out")
        assert read_files(folder / "out") == read_files(path)


def read_files(path: Path) -> Any:
    if path.is_file():
        return path.read_bytes()
    files = (file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def test_every_format_has_samples() -> None:
    assert {name_of(path).split("/")[0] for path in samples()} == FORMATS.keys()
