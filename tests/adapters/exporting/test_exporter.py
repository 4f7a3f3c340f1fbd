"""An export is whole or not there, and never lies where nobody asked for it."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from cutbank import Block, StoredSession
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.transcripts.formats import catalog
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.outgoing import Outgoing
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Step
from cutbank.domain.errors import ExportError


def _reads_nothing(_: Source) -> Iterator[Step]:
    return iter(())


def _one(name: str, **how: object) -> Format:
    return Format(name, "a test's", lambda _: False, _reads_nothing, **how)  # type: ignore[arg-type]


def _keys(outgoing: Outgoing) -> Iterator[bytes]:
    outgoing.lose("colours", 2)
    yield outgoing.key.encode()
    yield b"!"


def _breaks(outgoing: Outgoing) -> Iterator[bytes]:
    yield outgoing.key.encode()
    raise OSError(28, "No space left on device")


def _folder(outgoing: Outgoing) -> Iterator[tuple[str, bytes]]:
    yield "a/one", outgoing.key.encode()
    yield "two", b"2"


def _escapes(_: Outgoing) -> Iterator[tuple[str, bytes]]:
    yield "../outside", b"evil"


@pytest.fixture(autouse=True)
def _formats(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (
        _one("keys", write=_keys),
        _one("breaks", write=_breaks),
        _one("folder", write_folder=_folder),
        _one("escapes", write_folder=_escapes),
        _one("read-only"),
    ):
        monkeypatch.setitem(catalog.FORMATS, one.name, one)


@pytest.fixture(autouse=True)
def _said(session: StoredSession) -> None:
    session.append(Block.user("go"))


def test_a_file_holds_what_was_written_and_the_report_what_was_lost(
    session: StoredSession, tmp_path: Path
) -> None:
    report = export(session, "keys", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"a session!"
    assert (report.bytes, report.of, report.lost) == (10, "log", {"colours": 2})
    assert report.path == str(tmp_path / "out")


def test_an_open_file_is_written_to_as_it_is(session: StoredSession) -> None:
    out = BytesIO()

    report = export(session, "keys", out, view=True)

    assert out.getvalue() == b"a session!"
    assert (report.path, report.of) == (None, "view")


def test_a_folder_holds_its_files(session: StoredSession, tmp_path: Path) -> None:
    report = export(session, "folder", tmp_path / "out")

    assert (tmp_path / "out" / "a" / "one").read_bytes() == b"a session"
    assert report.bytes == 10


def test_a_folder_needs_a_place(session: StoredSession) -> None:
    with pytest.raises(ExportError, match="a folder of files: name a new folder with --out"):
        export(session, "folder", BytesIO())


def test_what_is_there_already_is_never_written_over(
    session: StoredSession, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(b"mine")

    with pytest.raises(ExportError, match="is there already: name a new one"):
        export(session, "keys", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"mine"


def test_a_write_that_breaks_leaves_nothing_behind(session: StoredSession, tmp_path: Path) -> None:
    place = tmp_path / "exports"
    place.mkdir()

    with pytest.raises(ExportError, match="No space left on device"):
        export(session, "breaks", place / "out")

    assert list(place.iterdir()) == []


def test_nothing_is_written_outside_the_folder(session: StoredSession, tmp_path: Path) -> None:
    place = tmp_path / "exports"
    place.mkdir()

    with pytest.raises(ExportError, match="would lie outside"):
        export(session, "escapes", place / "out")

    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", ["read-only", "nonsense"])
def test_a_format_that_cannot_be_written_is_refused_and_others_are_named(
    session: StoredSession, name: str, tmp_path: Path
) -> None:
    with pytest.raises(
        ExportError, match=r"'(read-only' is only read|nonsense' is not known).*keys"
    ):
        export(session, name, tmp_path / "out")


def test_a_folder_that_is_not_there_is_named(session: StoredSession, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is no folder: make it first"):
        export(session, "keys", tmp_path / "nowhere" / "out")
