"""An export is whole or not there, and never lies where nobody asked for it."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from cutbank import Block, ExportError, StoredSession, export
from cutbank.adapters.transcripts.formats import catalog
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.outgoing import OutgoingSession


def keys(outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_loss("colours", 2)
    yield outgoing.key.encode()
    yield b"!"


def breaks(outgoing: OutgoingSession) -> Iterator[bytes]:
    yield outgoing.key.encode()
    raise OSError(28, "No space left on device")


def folder(outgoing: OutgoingSession) -> Iterator[tuple[str, bytes]]:
    yield "a/one", outgoing.key.encode()
    yield "two", b"2"


def escapes(_: OutgoingSession) -> Iterator[tuple[str, bytes]]:
    yield "../outside", b"evil"


@pytest.fixture
def session(session: StoredSession, monkeypatch: pytest.MonkeyPatch) -> StoredSession:
    """Return a session with one block, for formats that only these tests know."""
    writers = {
        "keys": {"write": keys},
        "breaks": {"write": breaks},
        "folder": {"write_folder": folder},
        "escapes": {"write_folder": escapes},
        "read-only": {},
    }
    for name, how in writers.items():
        one = Format(name, "a test's", lambda _: False, lambda _: iter(()), **how)  # type: ignore[arg-type]
        monkeypatch.setitem(catalog.FORMATS, name, one)
    session.append(Block.user("go"))
    return session


def test_a_file_holds_what_was_written_and_the_report_what_was_lost(
    session: StoredSession, tmp_path: Path
) -> None:
    target, out = tmp_path / "out", BytesIO()

    report = export(session, "keys", target)
    to_open_file = export(session, "keys", out, view=True)

    assert target.read_bytes() == out.getvalue() == b"a session!"
    assert (report.path, report.bytes, report.of) == (str(target), 10, "log")
    assert report.lost == {"colours": 2}
    assert (to_open_file.path, to_open_file.of) == (None, "view")


def test_a_folder_holds_its_files(session: StoredSession, tmp_path: Path) -> None:
    report = export(session, "folder", tmp_path / "out")

    assert (tmp_path / "out" / "a" / "one").read_bytes() == b"a session"
    assert report.bytes == 10


@pytest.mark.parametrize(
    ("name", "out", "reason"),
    [
        ("keys", "mine", "is there already: name a new one"),
        ("keys", "nowhere/out", "is not a folder: make it first"),
        ("breaks", "out", "No space left on device"),
        ("escapes", "out", "would lie outside"),
        ("folder", BytesIO(), "a folder of files: name a new folder with --out"),
        ("read-only", BytesIO(), "'read-only' is only read.*keys"),
        ("nonsense", BytesIO(), "'nonsense' is not known.*keys"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(
    session: StoredSession, tmp_path: Path, name: str, out: str | BytesIO, reason: str
) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    (place / "mine").write_bytes(b"mine")

    with pytest.raises(ExportError, match=reason):
        export(session, name, place / out if isinstance(out, str) else out)

    assert list(place.iterdir()) == [place / "mine"]
    assert (place / "mine").read_bytes() == b"mine"
