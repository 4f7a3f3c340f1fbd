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


@pytest.fixture
def session(session: StoredSession, monkeypatch: pytest.MonkeyPatch) -> StoredSession:
    """Return a session with one block, for formats that only these tests know."""
    writers = {"keys": keys, "breaks": breaks, "read-only": None}
    for name, write in writers.items():
        one = Format(name, "a test's", lambda _: False, lambda _: iter(()), write=write)
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


@pytest.mark.parametrize(
    ("name", "out", "reason"),
    [
        ("keys", "mine", "is there already: name a new one"),
        ("keys", "nowhere/out", "is not a folder: make it first"),
        ("breaks", "out", "No space left on device"),
        ("read-only", "out", "only sessions that came in it can be written; choose.*keys"),
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
