"""An export is whole or not there, and never lies where nobody asked for it."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from cutbank import Block, StoredSession
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.transcripts.formats import catalog
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.outgoing import OutgoingSession
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import ImportStep
from cutbank.domain.errors import ExportError


def _reads_nothing(_: TranscriptSource) -> Iterator[ImportStep]:
    return iter(())


def _one(name: str, **how: object) -> Format:
    return Format(name, "a test's", lambda _: False, _reads_nothing, **how)  # type: ignore[arg-type]


def _keys(outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_loss("colours", 2)
    yield outgoing.key.encode()
    yield b"!"


def _breaks(outgoing: OutgoingSession) -> Iterator[bytes]:
    yield outgoing.key.encode()
    raise OSError(28, "No space left on device")


def _folder(outgoing: OutgoingSession) -> Iterator[tuple[str, bytes]]:
    yield "a/one", outgoing.key.encode()
    yield "two", b"2"


def _escapes(_: OutgoingSession) -> Iterator[tuple[str, bytes]]:
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


def test_what_is_there_already_is_never_written_over(
    session: StoredSession, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(b"mine")

    with pytest.raises(ExportError, match="is there already: name a new one"):
        export(session, "keys", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("breaks", "No space left on device"), ("escapes", "would lie outside")],
)
def test_a_write_that_breaks_or_leaves_the_folder_leaves_nothing_behind(
    session: StoredSession, tmp_path: Path, name: str, reason: str
) -> None:
    place = tmp_path / "exports"
    place.mkdir()

    with pytest.raises(ExportError, match=reason):
        export(session, name, place / "out")

    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "out", "reason"),
    [
        ("folder", BytesIO(), "a folder of files: name a new folder with --out"),
        ("read-only", BytesIO(), "'read-only' is only read.*keys"),
        ("nonsense", BytesIO(), "'nonsense' is not known.*keys"),
        ("keys", Path("nowhere/out"), "is not a folder: make it first"),
    ],
)
def test_what_cannot_be_written_is_refused(
    session: StoredSession, name: str, out: Path | BytesIO, reason: str
) -> None:
    with pytest.raises(ExportError, match=reason):
        export(session, name, out)
