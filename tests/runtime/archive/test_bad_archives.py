"""An archive that is not as cutbank wrote it is refused in one line, before anything is stored."""

import gzip
import json
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from story_of_archives import archived, everything, restored, tell
from wrong_types import WRONG

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.runtime.archive.packing import ArchivePacker, ArchiveUnpacker
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.storage.event_log.event_mapper import ZstdCompressor, dump_json
from cutbank.adapters.storage.event_log.stored_row import compute_keyed_hash

Parts = tuple[str, dict[str, Any], tuple[bytes, ...]]
Record = tuple[dict[str, Any], tuple[bytes, ...]]
Change = Callable[[dict[str, Any], tuple[bytes, ...]], Record | None]
"""Other fields and contents of a record; None for no such record."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with cutbank.open(":memory:") as store:
        tell(store)
        path = tmp_path_factory.mktemp("archive") / "good.cutbank"
        return archived(store, path).read_bytes()


@pytest.fixture(scope="module")
def empty() -> Any:
    with cutbank.open(":memory:") as store:
        yield store


def parts(archive: bytes) -> list[Parts]:
    return [
        (it.kind, it.fields, it.blobs) for it in ArchiveUnpacker(BytesIO(archive)).read_records()
    ]


def packed(records: list[Parts]) -> bytes:
    """The records with a digest that fits them: as somebody would write it who means harm."""
    out = BytesIO()
    packer = ArchivePacker(out)
    for kind, fields, blobs in records:
        packer.write_record(kind, fields, *blobs)
    packer.close()
    return out.getvalue()


def refusal(store: SessionStore, content: bytes, folder: Path) -> str:
    """The line in which it was refused, after which nothing is there."""
    before = everything(store)
    path = folder / "bad.cutbank"
    path.write_bytes(content)
    (report,) = import_path(store, path)
    (line,) = report.errors
    assert "\n" not in line
    assert (report.complete, report.sessions, report.added) == (False, [], 0)
    assert everything(store) == before
    return line


def forged(archive: bytes, kind: str, change: Change, at: int = 0) -> bytes:
    """The archive with the n-th record of that kind changed, or without it."""
    records = parts(archive)
    number = [number for number, (name, *_) in enumerate(records) if name == kind][at]
    _, fields, blobs = records[number]
    there = change(dict(fields), blobs)
    records[number : number + 1] = [(kind, *there)] if there else []
    return packed(records)


def fields(**other: Any) -> Change:
    return lambda fields, blobs: (fields | other, blobs)


def contents(*other: bytes | None) -> Change:
    """Other contents of a record; None leaves one as it is."""
    return lambda fields, blobs: (
        fields,
        tuple(one if new is None else new for one, new in zip_longest(blobs, other[: len(blobs)])),
    )


def test_packing_again_what_was_read_gives_the_same_archive(archive: bytes) -> None:
    assert packed(parts(archive)) == archive


TRUNCATED, POSSIBLE = "truncated", "the sizes of its contents are not possible"


def damaged(archive: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield files that are no archives, and why they are refused."""
    text = gzip.decompress(archive)
    for share in (0.01, 0.3, 0.7, 0.999):
        yield archive[: int(len(archive) * share)], TRUNCATED
    for end in (text.rindex(b'["end"'), text.rindex(b'["event"'), len(text) - 1):
        yield gzip.compress(text[:end]), TRUNCATED
    questions = [text.index(b"question", int(len(text) * share)) for share in (0.1, 0.3, 0.5)]
    for at, reason in (*((at, "changed") for at in questions), (text.index(b"a title"), "digest")):
        changed = bytearray(text)
        changed[at] ^= 1
        yield gzip.compress(changed), reason
    yield archive + gzip.compress(b"more"), "something follows its end"
    for other in (b"", b"words", b'{"type": "user"}\n', b"[1, 2, 3]\n", b'["a", {}, []]\n\n'):
        yield gzip.compress(other), ""
    begin = text.split(b"\n")[0] + b"\n\n"
    zeros = b'["body",{},[1000000000]]\n' + b"0" * 100_000_000
    yield gzip.compress(begin + zeros), "200 times its size"
    for size in (-1, 1 << 40, 1.5, True, "1", None):
        odd = json.dumps(["family", {"sessions": 1}, [size]]).encode()
        yield gzip.compress(begin + odd + b"\n"), POSSIBLE


def test_a_damaged_file_is_refused(empty: SessionStore, archive: bytes, tmp_path: Path) -> None:
    for content, words in damaged(archive):
        assert words in refusal(empty, content, tmp_path)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), flipped=st.integers(1, 255))
def test_any_byte_of_the_file_may_be_wrong(
    empty: SessionStore, archive: bytes, tmp_path: Path, at: float, flipped: int
) -> None:
    content = bytearray(archive)
    content[min(int(at * len(content)), len(content) - 1)] ^= flipped
    path = tmp_path / "bad.cutbank"
    path.write_bytes(content)
    before = everything(empty)

    (report,) = import_path(empty, path, namespace="flipped")

    # Some bytes of gzip's own headers say nothing: then it is what it was.
    if report.errors:
        assert len(report.errors) == 1
        assert everything(empty) == before
    else:
        assert report.entries == sum(kind == "event" for kind, _, _ in parts(archive))


BOMB = ZstdCompressor().compress(b"[" * 100_000_000)
UNKNOWN = "is not an event that this cutbank knows"
NEWER = "newer cutbank (archive version 2, this one reads up to 1)"
FORGED: list[tuple[str, Change, int, str]] = [
    ("cutbank-archive", fields(version=2), 0, NEWER),
    ("event", fields(topic="cutbank:OfTheFuture"), 5, UNKNOWN),
    ("event", fields(topic="os:system"), 5, UNKNOWN),
    ("event", fields(topic="cutbank:Event"), 5, UNKNOWN),
    ("event", fields(topic=""), 5, UNKNOWN),
    ("event", contents(BOMB), 0, "unpacks to more than any event"),
    ("body", contents(b"another content"), 0, "a content of it was changed"),
    ("body", lambda *_: None, 0, "cannot be read"),
    ("session", fields(key="another"), 0, "is not a stream of the session 'another'"),
    # A state that the events do not make:
    ("event", contents(None, b"{}"), 20, ""),
    ("event", contents(None, b"[]"), 20, ""),
    ("event", contents(None, b'{"turn": "x"}'), 20, ""),
    ("event", contents(None, b"nonsense"), 20, ""),
]


def test_a_record_that_was_forged_is_refused(
    empty: SessionStore, archive: bytes, tmp_path: Path
) -> None:
    for kind, change, at, words in FORGED:
        assert words in refusal(empty, forged(archive, kind, change, at), tmp_path)


def test_an_event_whose_fields_are_wrong_is_refused_whatever_its_digest_says(
    empty: SessionStore, archive: bytes, tmp_path: Path
) -> None:
    records = parts(archive)
    secrets = {
        it["name"]: bytes.fromhex(it["secret"]) for kind, it, _ in records if kind == "subject"
    }
    at = next(
        at for at, (_, it, _) in enumerate(records) if it.get("topic") == "cutbank:BlockAppended"
    )
    kind, fields, (state, carried) = records[at]
    changes: list[dict[str, Any]] = [
        {"block": {"kind": "user", "text": 5}},
        {"block": {"kind": "nonsense", "text": "words"}},
        {"timestamp": "yesterday"},
        {"bodies": [[["block", "text"], "str", "00"]]},
        {"bodies": 5},
    ]
    for change in changes:
        forged = dump_json({**json.loads(state), **change})
        digest = compute_keyed_hash(forged, secrets[fields["subject"]]).hex()
        records[at] = (kind, {**fields, "digest": digest}, (forged, carried))

        assert "cannot be read" in refusal(empty, packed(records), tmp_path)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_field_may_hold_anything(
    empty: SessionStore, archive: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    """Refused in one line, or all of it stored, where the field says nothing."""
    records = parts(archive)
    at = data.draw(st.integers(0, len(records) - 1))
    kind, fields, blobs = records[at]
    if fields:
        name = data.draw(st.sampled_from(sorted(fields)))
        value = data.draw(st.sampled_from([*WRONG, "\ud800", "a\0b"]))
        records[at] = (kind, {**fields, name: value}, blobs)
    match data.draw(st.sampled_from(["as it is", "twice", "not at all", "without contents"])):
        case "twice":
            records.insert(at, records[at])
        case "not at all":
            del records[at]
        case "without contents":
            records[at] = (*records[at][:2], ())
        case _:
            pass
    path = tmp_path / "odd.cutbank"
    path.write_bytes(packed(records))
    with cutbank.open(":memory:") as store:
        report = restored(store, path)

        if report.errors:
            assert len(report.errors) == 1
            assert "\n" not in report.errors[0]
            assert not report.complete
            assert store.sessions() == []
        else:
            assert report.complete


def test_names_are_never_paths(tmp_path: Path) -> None:
    with cutbank.open(":memory:") as store:
        store.session("../../outside", subject="/etc/passwd").append(Block.user("words"))
        path = archived(store, tmp_path / "names.cutbank")
    before = sorted(tmp_path.rglob("*"))

    with cutbank.open(":memory:") as store:
        assert restored(store, path).sessions == ["../../outside"]

    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_that_changes_between_its_two_readings_is_not_stored(
    archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "good.cutbank"
    path.write_bytes(archive)
    records = parts(archive)
    at = next(at for at, (_, it, _) in enumerate(records) if it.get("key") == "one")
    records[at] = ("key", {**records[at][1], "key": "another"}, ())

    with cutbank.open(":memory:") as store:
        adopt = store.events.recorder.names.adopt

        def overwrite(name: str, secret: bytes) -> bytes:
            path.write_bytes(packed(records))
            return adopt(name, secret)

        monkeypatch.setattr(store.events.recorder.names, "adopt", overwrite)
        (report,) = import_path(store, path)

        assert "it was changed while it was read" in report.errors[0]
        assert not report.complete
        assert "main" not in {one.key for one in store.sessions()}
