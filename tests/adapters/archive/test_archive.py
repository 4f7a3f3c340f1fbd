"""An archive holds sessions whole, and gives them back as they were stored."""

import gzip
import sqlite3
from io import BytesIO
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk, text
from databases import asked, on_sqlite
from story_of_archives import KEEPS_LITTLE, LIMIT, archived, everything, restored, rows, talk

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.archive.archive_writer import write_archive
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.domain.errors import ExportError
from cutbank.projections.audit.sent_view import Proof


def test_what_is_restored_equals_what_was_stored(
    told: SessionStore, other: SessionStore, tmp_path: Path
) -> None:
    before = rows(told)

    report = restored(other, archived(told, tmp_path / "all.cutbank"))

    assert report.errors == []
    assert report.complete
    assert rows(other) == before
    assert everything(other) == everything(told)
    assert verify(other).ok
    assert sorted(report.sessions) == ["agent", "alone", "main", "main/branch", "twig"]
    assert (
        report.entries
        == report.imported
        == sum(
            len(other.events.recorder.select_events(one.originator_id))
            for one in other.events.recorder.select_streams()
        )
    )


def test_what_calls_were_sent_is_proved_in_what_was_restored(
    told: SessionStore, other: SessionStore, tmp_path: Path
) -> None:
    session = told.session("main", create=False)
    served = session.view()
    session.append(Block.assistant("the last answer"))
    session.record_call(served, call_id="call 4", renderer="anthropic/1")
    fork = session.fork("late")
    before = [session.audited_call(number) for number in range(1, calls_of(session) + 1)]

    restored(other, archived(told, tmp_path / "all.cutbank"))

    again = other.session("main", create=False)
    for number, call in enumerate(before, start=1):
        found = again.audited_call(number)
        assert (found.shown, found.request()) == (call.shown, call.request())
    proved = [call for call in before if call.shown.proof is Proof.PROVED]
    assert len(proved) == 3
    of_fork = other.session("late", create=False).audited_call(calls_of(fork))
    assert of_fork.shown == before[-1].shown


def calls_of(session: StoredSession) -> int:
    return len(session.call_index.calls())


@on_sqlite
def test_an_archive_goes_from_one_database_to_the_other_and_back(
    told: SessionStore, elsewhere: SessionStore, postgres_database: str, tmp_path: Path
) -> None:
    first = archived(told, tmp_path / "first.cutbank")
    with cutbank.open(postgres_database) as between:
        restored(between, first)
        second = archived(between, tmp_path / "second.cutbank")
    restored(elsewhere, second)

    assert second.read_bytes() == first.read_bytes()
    assert rows(elsewhere) == rows(told)


def test_a_database_of_an_earlier_version_is_restored_as_it_was(
    golden: Path, elsewhere: SessionStore, tmp_path: Path
) -> None:
    with cutbank.open(golden) as old:
        before = rows(old)
        path = archived(old, tmp_path / "old.cutbank")

    report = restored(elsewhere, path)

    assert report.errors == []
    assert rows(elsewhere) == before
    assert verify(elsewhere).ok


def test_what_is_compressed_stays_compressed(elsewhere: SessionStore, tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "small.db", compress=True) as small:
        talk(small.session("main"), 3)
        small.session("main").append(Block.user("large " * 5_000))
        path = archived(small, tmp_path / "small.cutbank")
        before = rows(small)

    restored(elsewhere, path)

    assert rows(elsewhere) == before


def test_importing_it_again_adds_nothing(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    path = archived(told, tmp_path / "all.cutbank")
    restored(elsewhere, path)
    before = everything(elsewhere)

    again = restored(elsewhere, path)
    at_home = restored(told, path)

    assert (again.added, again.errors, at_home.added, at_home.errors) == (0, [], 0, [])
    assert everything(elsewhere) == before


@on_sqlite
def test_the_same_sessions_give_the_same_bytes(told: SessionStore, tmp_path: Path) -> None:
    first, second = archived(told, tmp_path / "1"), archived(told, tmp_path / "2")

    assert first.read_bytes() == second.read_bytes()


@on_sqlite
def test_an_archive_can_be_written_to_an_open_file(told: SessionStore, tmp_path: Path) -> None:
    out = BytesIO()

    report = write_archive(told.sessions(), out)

    assert report.path is None
    assert report.bytes == len(out.getvalue())
    assert out.getvalue() == archived(told, tmp_path / "all.cutbank").read_bytes()


# What goes along


@on_sqlite
def test_a_session_takes_its_forks_along_and_no_other_session(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "main.cutbank", "main"))

    keys = ("main", "main/branch", "twig")
    assert [one.key for one in elsewhere.sessions()] == sorted(keys)
    assert rows(elsewhere) == rows(told, *keys)


@on_sqlite
def test_sub_agents_come_along_where_they_are_asked_for(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    path = archived(told, tmp_path / "main.cutbank", "main", sub_agents=True)
    restored(elsewhere, path)

    assert {one.key for one in elsewhere.sessions()} == {"main", "main/branch", "twig", "agent"}


@on_sqlite
def test_a_fork_takes_along_what_it_shares_of_its_parents_and_no_more(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    report = restored(elsewhere, archived(told, tmp_path / "twig.cutbank", "twig"))

    assert report.errors == []
    assert verify(elsewhere).ok
    for key in ("main", "main/branch"):
        fork = told.session("main/branch" if key == "main" else "twig").forked_from
        assert fork
        assert elsewhere.session(key).position == fork.position
    twig = elsewhere.session("twig", create=False)
    assert twig.view().fingerprint == told.session("twig").view().fingerprint
    assert rows(elsewhere, "twig") == rows(told, "twig")

    later = restored(elsewhere, archived(told, tmp_path / "all.cutbank"))

    assert later.errors == []
    assert rows(elsewhere) == rows(told)
    assert verify(elsewhere).ok


@on_sqlite
def test_an_import_goes_on_where_the_archive_was_made(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    talk_ = Talk()
    talk_.user("look around")
    talk_.says("m1", text("I look"))
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_bytes(talk_.raw())
    list(import_path(store, file))
    restored(elsewhere, archived(store, tmp_path / "all.cutbank"))
    talk_.user("thanks")
    file.write_bytes(talk_.raw())

    (report,) = import_path(elsewhere, file)

    assert report.added == 1
    assert rows(elsewhere).keys() == rows(store).keys()


# What is there already


def test_a_longer_archive_extends_a_shorter_session(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "early.cutbank"))
    talk(told.session("main"), 3)
    told.session("main").compact(KEEPS_LITTLE, limit=LIMIT)
    path = archived(told, tmp_path / "late.cutbank")

    report = restored(elsewhere, path)

    assert report.errors == []
    assert report.added == 6
    assert rows(elsewhere) == rows(told)
    assert verify(elsewhere).ok


@on_sqlite
def test_a_store_that_has_the_session_open_sees_what_was_added(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "early.cutbank"))
    session = elsewhere.session("main")
    before = session.position
    told.session("main").append(Block.user("more"))

    restored(elsewhere, archived(told, tmp_path / "late.cutbank"))

    assert session.position == told.session("main").position > before
    session.append(Block.user("and on"))
    assert verify(elsewhere).ok


@on_sqlite
def test_a_shorter_archive_adds_nothing(told: SessionStore, tmp_path: Path) -> None:
    path = archived(told, tmp_path / "early.cutbank")
    talk(told.session("main"), 3)
    before = rows(told)

    report = restored(told, path)

    assert (report.added, report.errors) == (0, [])
    assert rows(told) == before


@on_sqlite
def test_another_session_of_that_name_is_refused_in_one_line(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    elsewhere.session("alone", subject="me").append(Block.user("mine"))
    before = everything(elsewhere)

    report = restored(elsewhere, archived(told, tmp_path / "all.cutbank"))

    (line,) = report.errors
    assert "'alone' is there already and is another one from #1 on" in line
    assert "--namespace" in line
    assert (report.complete, report.sessions, report.added) == (False, [], 0)
    assert everything(elsewhere) == before


@on_sqlite
def test_a_session_that_went_on_in_both_places_is_refused(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "early.cutbank"))
    talk(told.session("main"), 3)
    elsewhere.session("main").compact(KEEPS_LITTLE, limit=LIMIT, lineage="of mine")

    report = restored(elsewhere, archived(told, tmp_path / "late.cutbank"))

    (line,) = report.errors
    assert "'main' is there already and went on both there and in the archive" in line


@on_sqlite
def test_sessions_can_be_restored_into_another_namespace(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    elsewhere.session("main").append(Block.user("mine"))
    path = archived(told, tmp_path / "all.cutbank")

    report = restored(elsewhere, path, "theirs")
    again = restored(elsewhere, path, "theirs")

    assert (report.errors, again.errors, again.added) == ([], [], 0)
    assert verify(elsewhere).ok
    for one in told.sessions():
        moved = elsewhere.session(one.key, namespace="theirs", create=False)
        assert moved.position == one.position
        assert moved.view().fingerprint == one.view().fingerprint
        assert moved.lineages == one.lineages
    agent = elsewhere.session("agent", namespace="theirs", create=False)
    assert agent.parent
    assert agent.parent.namespace == "theirs"
    subjects = {name for (name,) in asked(elsewhere, "SELECT name FROM subjects")}
    assert {"theirs/main", "somebody", "default/main"} <= subjects


@on_sqlite
def test_a_subject_that_is_known_by_another_secret_is_refused(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    elsewhere.session("another", subject="somebody").append(Block.user("mine"))
    before = everything(elsewhere)

    report = restored(elsewhere, archived(told, tmp_path / "all.cutbank"))

    (line,) = report.errors
    assert "'somebody' is known here by another secret" in line
    assert everything(elsewhere) == before


# Writing


@on_sqlite
def test_a_file_that_is_there_is_not_written_over(told: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / "mine.cutbank"
    path.write_text("mine")

    with pytest.raises(ExportError, match="is there already"):
        archived(told, path)

    assert path.read_text() == "mine"


@on_sqlite
def test_a_damaged_log_is_not_archived(told: SessionStore, tmp_path: Path) -> None:
    assert told.name
    connection = sqlite3.connect(told.name)
    connection.execute("DROP TRIGGER stored_events_are_kept")
    connection.execute("DELETE FROM stored_events WHERE originator_version = 7")
    connection.commit()
    connection.close()

    with pytest.raises(ExportError, match="#7 is missing"):
        archived(told, tmp_path / "all.cutbank")

    assert not list(tmp_path.glob("*.cutbank*"))


@on_sqlite
def test_large_contents_are_in_it_once(store: SessionStore, tmp_path: Path) -> None:
    words = "".join(f"{number} bottles\n" for number in range(20_000))
    for _ in range(5):
        store.session("main").append(Block.user(words))

    path = archived(store, tmp_path / "all.cutbank")

    assert gzip.decompress(path.read_bytes()).count(b"777 bottles") == words.count("777 bottles")


@on_sqlite
def test_what_packs_very_well_is_restored_all_the_same(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    store.session("main").append(Block.user("x" * 20_000_000))

    report = restored(elsewhere, archived(store, tmp_path / "all.cutbank"))

    assert report.errors == []
    assert rows(elsewhere) == rows(store)
