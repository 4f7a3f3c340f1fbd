"""A database that is not as cutbank wrote it is refused in one line, before anything is stored."""

# ruff: noqa: S608 - constant text

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from story_of_archives import archived, everything, restored, tell
from transcripts import import_path

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.storage.event_log.event_mapper import (
    ZstdCompressor,
    compute_keyed_hash,
    dump_json,
)
from cutbank.adapters.storage.event_log.log_tables import Batch

Forge = Callable[[sqlite3.Connection], object]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with cutbank.open(":memory:") as store:
        tell(store)
        path = tmp_path_factory.mktemp("archive") / "good.cutbank"
        return archived(store, path).read_bytes()


@pytest.fixture(scope="module")
def empty() -> Iterator[SessionStore]:
    with cutbank.open(":memory:") as store:
        yield store


def refusal(store: SessionStore, path: Path) -> str:
    """The line in which it was refused, after which nothing is there."""
    before = everything(store)
    (report,) = import_path(store, path)
    (line,) = report.errors
    assert "\n" not in line
    assert line.startswith(str(path))
    assert (report.complete, report.sessions, report.added) == (False, [], 0)
    assert everything(store) == before
    return line


def forged(archive: bytes, folder: Path, forge: Forge | str) -> Path:
    """The archive after somebody changed it who knows SQL."""
    path = folder / "forged.cutbank"
    path.write_bytes(archive)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER stored_events_are_immutable")
        connection.execute("DROP TRIGGER stored_events_are_kept")
        connection.executescript(forge) if isinstance(forge, str) else forge(connection)
        connection.commit()
    return path


def damaged(archive: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield files that are no archives, and why they are refused."""
    for share in (0.3, 0.7, 0.999):
        yield archive[: int(len(archive) * share)], "damaged"
    yield archive[:100], ""
    yield gzip.compress(b'["cutbank-archive",{"version":1},[]]'), "an earlier cutbank"
    yield archive.replace(b"a title", b"A title"), "its content was changed"
    yield archive.replace(b"question 3", b"question 4"), "its content was changed"
    yield archive.replace(b"a large result", b"A large result", 1), "a body of it was changed"


def test_a_damaged_file_is_refused(empty: SessionStore, archive: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.cutbank"
    for content, words in damaged(archive):
        path.write_bytes(content)
        assert words in refusal(empty, path)


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

    # Some bytes say nothing, or nothing that matters: then all of it is there.
    assert report.complete == (not report.errors)
    if report.errors:
        assert len(report.errors) == 1
        assert everything(empty) == before


BOMB = ZstdCompressor().compress(b"[" * 100_000_000).hex()
UNKNOWN = "this cutbank does not know such events"
FIRST = "WHERE originator_version = 1 AND subject = 1"
STATE = "the state stored with it"
MAIN = (
    "originator_id = (SELECT originator_id FROM streams WHERE session = 'main' AND lineage IS NULL)"
)
AT_20 = f"WHERE {MAIN} AND originator_version = 20"
LATER = f"originator_version = 1000 + originator_version WHERE {MAIN} AND originator_version > 40"
A_FORK = "WHERE CAST(state AS TEXT) LIKE '%fork%'"
FORGED: list[tuple[str, str]] = [
    ("PRAGMA user_version = 99", "was written by a newer cutbank"),
    ("PRAGMA application_id = 7", "no known transcript format"),
    ("UPDATE topics SET topic = 'cutbank:OfTheFuture' WHERE id = 3", UNKNOWN),
    ("UPDATE topics SET topic = 'os:system' WHERE id = 3", UNKNOWN),
    ("UPDATE topics SET topic = 'cutbank:Event' WHERE id = 3", UNKNOWN),
    (f"UPDATE stored_events SET state = x'{BOMB}' {FIRST}", ""),
    ("UPDATE bodies SET content = x'00'", ""),
    ("DELETE FROM bodies", "is missing from the database"),
    ("DELETE FROM subjects", "is missing from the database"),
    ("UPDATE subjects SET secret = x'00'", "its content was changed"),
    (
        "UPDATE streams SET session = 'other' WHERE session = 'alone'",
        "was deleted, or never",
    ),
    ("UPDATE streams SET lineage = 'other' WHERE lineage = 'what if'", "does not begin"),
    (f"DELETE FROM stored_events WHERE {MAIN} AND originator_version = 7", "#7 is missing"),
    (f"DELETE FROM stored_events WHERE {MAIN} AND originator_version > 9", ""),
    (f"UPDATE stored_events SET {LATER}", ""),
    # A state that the events do not make:
    (f"UPDATE stored_events SET carried = '{{}}' {AT_20}", STATE),
    (f"UPDATE stored_events SET carried = '[]' {AT_20}", STATE),
    (f"UPDATE stored_events SET carried = 'x' {AT_20}", STATE),
    (f"UPDATE stored_events SET carried = '{{\"turn\": 7}}' {A_FORK}", STATE),
]


@pytest.mark.parametrize(("change", "words"), FORGED)
def test_a_row_that_was_forged_is_refused(
    empty: SessionStore, archive: bytes, tmp_path: Path, change: str, words: str
) -> None:
    assert words in refusal(empty, forged(archive, tmp_path, change))


def test_an_event_whose_fields_are_wrong_is_refused_whatever_its_digest_says(
    empty: SessionStore, archive: bytes, tmp_path: Path
) -> None:
    changes: list[dict[str, Any]] = [
        {"block": {"kind": "user", "text": 5}},
        {"block": {"kind": "nonsense", "text": "words"}},
        {"timestamp": "yesterday"},
        {"bodies": [[["block", "text"], "str", "00"]]},
        {"bodies": 5},
    ]
    for change in changes:

        def forge(log: sqlite3.Connection, change: dict[str, Any] = change) -> None:
            event, state, secret = log.execute(
                "SELECT notification_id, state, secret FROM stored_events"
                " JOIN subjects ON subject = subjects.id JOIN topics ON topics.id"
                " = stored_events.topic WHERE topics.topic = 'cutbank:BlockAppended'"
            ).fetchone()
            other = dump_json({**json.loads(state), **change})
            log.execute(
                "UPDATE stored_events SET state = ?, digest = ? WHERE notification_id = ?",
                (other, compute_keyed_hash(other, secret), event),
            )

        assert "cannot " in refusal(empty, forged(archive, tmp_path, forge))


def test_names_are_never_paths(tmp_path: Path) -> None:
    with cutbank.open(":memory:") as store:
        store.session("../../outside", subject="/etc/passwd").append(Block.user("words"))
        path = archived(store, tmp_path / "names.cutbank")
    before = sorted(tmp_path.rglob("*"))

    with cutbank.open(":memory:") as store:
        assert restored(store, path).sessions == ["../../outside"]

    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_can_be_left_out_of_a_database(archive: bytes, tmp_path: Path) -> None:
    pytest.importorskip("detect_secrets")
    path = tmp_path / "good.cutbank"
    path.write_bytes(archive)
    with cutbank.open(":memory:") as store:
        (report,) = import_path(store, path, redact=True)

        assert "import it without --redact" in report.errors[0]
        assert store.sessions() == []


def test_a_failure_leaves_nothing_of_a_family_and_what_others_wrote_is_said(
    archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "good.cutbank"
    path.write_bytes(archive)
    with cutbank.open(tmp_path / "here.db") as store:
        insert = store.events.recorder.insert_all

        def overtaken(batches: Iterator[Batch]) -> None:
            with cutbank.open(tmp_path / "here.db") as other:
                other.session("main").append(Block.user("faster"))
            insert(batches)

        monkeypatch.setattr(store.events.recorder, "insert_all", overtaken)
        (report,) = import_path(store, path)

        assert "others wrote to its sessions meanwhile: import it again" in report.errors[0]
        assert not report.complete
        assert not {"main/branch", "twig"} & {one.key for one in store.sessions()}
        said = store.session("main", create=False).view().entries
        assert {entry.text for entry in said} == {"faster"}
