"""An archive holds sessions whole, and gives them back as they were stored."""

import gzip
import sqlite3
from pathlib import Path

import pytest
from agent_talk import talk
from databases import asked
from story_of_archives import KEEPS_LITTLE, LIMIT, archived, everything, restored, rows

import cutbank
from cutbank import Block, CompactionOptions, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import ExportError


def test_what_is_restored_equals_what_was_stored(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    before = rows(told)

    report = restored(elsewhere, archived(told, tmp_path / "all.cutbank"))

    assert report.errors == []
    assert report.complete
    assert rows(elsewhere) == before
    assert everything(elsewhere) == everything(told)
    assert verify(elsewhere).is_ok
    assert sorted(report.sessions) == ["agent", "alone", "main", "main/branch", "twig"]
    assert (
        report.entries
        == report.imported
        == sum(
            len(elsewhere.events.recorder.select_events(one.originator_id))
            for one in elsewhere.events.recorder.select_streams()
        )
    )


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
    assert verify(elsewhere).is_ok


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


# What goes along


def test_a_session_takes_its_forks_along_and_no_other_session(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "main.cutbank", "main"))

    keys = ("main", "main/branch", "twig")
    assert [one.key for one in elsewhere.sessions()] == sorted(keys)
    assert rows(elsewhere) == rows(told, *keys)


def test_a_fork_takes_along_what_it_shares_of_its_parents_and_no_more(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    report = restored(elsewhere, archived(told, tmp_path / "twig.cutbank", "twig"))

    assert report.errors == []
    assert verify(elsewhere).is_ok
    for key in ("main", "main/branch"):
        fork = told.session("main/branch" if key == "main" else "twig").log.forked_from
        assert fork
        assert elsewhere.session(key).position == fork.position
    twig = elsewhere.session("twig", create=False)
    assert twig.view().fingerprint == told.session("twig").view().fingerprint
    assert rows(elsewhere, "twig") == rows(told, "twig")

    later = restored(elsewhere, archived(told, tmp_path / "all.cutbank"))

    assert later.errors == []
    assert rows(elsewhere) == rows(told)
    assert verify(elsewhere).is_ok


# What is there already


def test_a_longer_archive_extends_a_shorter_session(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    early = archived(told, tmp_path / "early.cutbank")
    restored(elsewhere, early)
    session = elsewhere.session("main")
    before = session.position
    talk(told.session("main"), 3)
    told.session("main").compact(KEEPS_LITTLE, limit=LIMIT)

    report = restored(elsewhere, archived(told, tmp_path / "late.cutbank"))
    shorter = restored(elsewhere, early)

    assert (report.errors, report.added) == ([], 6)
    assert (shorter.errors, shorter.added) == ([], 0)
    assert rows(elsewhere) == rows(told)
    # A store that has it open sees what was added.
    assert session.position == told.session("main").position > before
    session.append(Block.user("and on"))
    assert verify(elsewhere).is_ok


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


def test_a_session_that_went_on_in_both_places_is_refused(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "early.cutbank"))
    talk(told.session("main"), 3)
    elsewhere.session("main").compact(
        KEEPS_LITTLE, limit=LIMIT, options=CompactionOptions(lineage="of mine")
    )

    report = restored(elsewhere, archived(told, tmp_path / "late.cutbank"))

    (line,) = report.errors
    assert "'main' is there already and went on both there and in the archive" in line


def test_sessions_can_be_restored_into_another_namespace(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    elsewhere.session("main").append(Block.user("mine"))
    path = archived(told, tmp_path / "all.cutbank")

    report = restored(elsewhere, path, "theirs")
    again = restored(elsewhere, path, "theirs")

    assert (report.errors, again.errors, again.added) == ([], [], 0)
    assert verify(elsewhere).is_ok
    for one in told.sessions():
        moved = elsewhere.session(one.key, namespace="theirs", create=False)
        assert moved.position == one.position
        assert moved.view().fingerprint == one.view().fingerprint
        assert moved.log.lineages == one.log.lineages
    agent = elsewhere.session("agent", namespace="theirs", create=False)
    assert agent.log.parent
    assert agent.log.parent.namespace == "theirs"
    subjects = {name for (name,) in asked(elsewhere, "SELECT name FROM subjects")}
    assert {"theirs/main", "somebody", "default/main"} <= subjects


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


def test_a_file_that_is_there_is_not_written_over(told: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / "mine.cutbank"
    path.write_text("mine")

    with pytest.raises(ExportError, match="is there already"):
        archived(told, path)

    assert path.read_text() == "mine"


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


def test_large_contents_are_in_it_once(store: SessionStore, tmp_path: Path) -> None:
    words = "".join(f"{number} bottles\n" for number in range(20_000))
    for _ in range(5):
        store.session("main").append(Block.user(words))

    path = archived(store, tmp_path / "all.cutbank")

    assert gzip.decompress(path.read_bytes()).count(b"777 bottles") == words.count("777 bottles")


def test_what_packs_very_well_is_restored_all_the_same(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    store.session("main").append(Block.user("x" * 20_000_000))

    report = restored(elsewhere, archived(store, tmp_path / "all.cutbank"))

    assert report.errors == []
    assert rows(elsewhere) == rows(store)
