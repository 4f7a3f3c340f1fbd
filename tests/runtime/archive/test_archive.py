"""An archive holds sessions whole, and gives them back as they were stored."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agent_talk import talk
from clock import Clock
from databases import asked
from story_of_archives import KEEPS_LITTLE, LIMIT, archived, everything, restored, rows, tell

import cutbank
from cutbank import Block, CompactionOptions, ExportError, SessionStore, verify
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.storage.event_log.event_mapper import decompress_any
from cutbank.adapters.storage.event_log.log_tables import ImportRow


@pytest.fixture
def told(store: SessionStore) -> SessionStore:
    tell(store)
    return store


@pytest.fixture
def elsewhere(tmp_path: Path, clock: Clock) -> Iterator[SessionStore]:
    with cutbank.open(tmp_path / "elsewhere.db", clock=clock) as store:
        yield store


EVERY = ["agent", "alone", "main", "main/branch", "twig"]


def open_earlier(folder: Path) -> SessionStore:
    dump = max(Path(__file__).parents[2].glob("storage/golden/*.sql"))
    with closing(sqlite3.connect(folder / "golden.db")) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    return cutbank.open(folder / "golden.db")


def open_compressed(folder: Path) -> SessionStore:
    store = cutbank.open(folder / "small.db", compress=True)
    talk(store.session("main"), 3)
    store.session("main").append(Block.user("large " * 5_000))
    return store


def open_packed_well(_: Path) -> SessionStore:
    store = cutbank.open(":memory:")
    store.session("main").append(Block.user("x" * 20_000_000))
    return store


@pytest.mark.parametrize("opens", [open_earlier, open_compressed, open_packed_well])
def test_a_store_of_any_kind_is_restored_as_it_was(
    elsewhere: SessionStore, tmp_path: Path, opens: Callable[[Path], SessionStore]
) -> None:
    with opens(tmp_path) as store:
        report = restored(elsewhere, archived(store, tmp_path / "all.cutbank"))

        assert report.errors == []
        assert rows(elsewhere) == rows(store)
    assert verify(elsewhere).is_ok


def test_what_is_restored_equals_what_was_stored(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    path, before = archived(told, tmp_path / "all.cutbank"), rows(told)

    report = restored(elsewhere, path)
    again, at_home = restored(elsewhere, path), restored(told, path)

    assert (report.errors, report.complete) == ([], True)
    assert (again.added, again.errors, at_home.added, at_home.errors) == (0, [], 0, [])
    assert rows(elsewhere) == before
    assert everything(elsewhere) == everything(told)
    assert verify(elsewhere).is_ok
    assert sorted(report.sessions) == EVERY
    recorder = elsewhere.events.recorder
    events = [recorder.select_events(one.originator_id) for one in recorder.select_streams()]
    assert report.entries == report.imported == sum(map(len, events))


def test_an_archive_goes_from_one_database_to_the_other_and_back(
    told: SessionStore, elsewhere: SessionStore, postgres_database: str, tmp_path: Path
) -> None:
    first = archived(told, tmp_path / "first.cutbank")
    with cutbank.open(postgres_database) as between:
        restored(between, first)
        second = archived(between, tmp_path / "second.cutbank")
    restored(elsewhere, second)

    assert rows(elsewhere) == rows(told)


# What goes along


def test_a_session_takes_its_forks_along_and_no_other_session(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    restored(elsewhere, archived(told, tmp_path / "main.cutbank", "main"))

    assert rows(elsewhere) == rows(told, "main", "main/branch", "twig")


def test_a_fork_takes_along_what_it_shares_of_its_parents_and_no_more(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    report = restored(elsewhere, archived(told, tmp_path / "twig.cutbank", "twig"))

    assert report.errors == []
    assert verify(elsewhere).is_ok
    for key in ("main", "main/branch"):
        fork = told.session("main/branch" if key == "main" else "twig").info.forked_from
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


def test_sessions_can_be_restored_into_another_namespace(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    elsewhere.session("main").append(Block.user("mine"))
    told.events.save(imports=[ImportRow("default", "a source", "codex", "alone", 7, True)])
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
    (row,) = elsewhere.events.recorder.select_imports("theirs", "alone")
    assert (row.source, row.bytes) == ("a source", 7)
    subjects = {name for (name,) in asked(elsewhere, "SELECT name FROM subjects")}
    assert {"theirs/main", "somebody", "default/main"} <= subjects


def test_what_differs_from_what_is_there_is_refused_in_one_line(
    told: SessionStore, tmp_path: Path
) -> None:
    def another(here: SessionStore) -> None:
        here.session("alone", subject="me").append(Block.user("mine"))

    def secret(here: SessionStore) -> None:
        here.session("another", subject="somebody").append(Block.user("mine"))

    def went_on(here: SessionStore) -> None:
        restored(here, early)
        main, options = here.session("main"), CompactionOptions(lineage="of mine")
        main.compact(KEEPS_LITTLE, limit=LIMIT, options=options)

    early = archived(told, tmp_path / "early.cutbank")
    talk(told.session("main"), 3)
    late = archived(told, tmp_path / "late.cutbank")
    for prepare, words in (
        (another, "'alone' is there already, and differs from #1 of its log on"),
        (secret, "'somebody' is known here by another secret"),
        (went_on, "'main' is there already, and it went on both there and in the file"),
    ):
        with cutbank.open(":memory:") as here:
            prepare(here)
            before = everything(here)

            report = restored(here, late)

            (line,) = report.errors
            assert words in line
            assert "restore " in line
            assert (report.complete, report.sessions, report.added) == (False, [], 0)
            assert everything(here) == before


# Writing


def test_a_file_that_is_there_is_not_written_over(told: SessionStore, tmp_path: Path) -> None:
    path = tmp_path / "mine.cutbank"
    path.write_text("mine")

    with pytest.raises(ExportError, match="is there already"):
        archived(told, path)

    assert path.read_text() == "mine"


def test_a_damaged_log_is_not_archived(told: SessionStore, tmp_path: Path) -> None:
    assert told.name
    with closing(sqlite3.connect(told.name)) as connection:
        connection.execute("DROP TRIGGER stored_events_are_kept")
        connection.execute("DELETE FROM stored_events WHERE originator_version = 7")
        connection.commit()

    with pytest.raises(ExportError, match="#7 is missing"):
        archived(told, tmp_path / "all.cutbank")

    assert not list(tmp_path.glob("*.cutbank*"))


def test_large_contents_are_in_it_once_and_other_sessions_are_not(
    store: SessionStore, tmp_path: Path
) -> None:
    words = "".join(f"{number} bottles\n" for number in range(20_000))
    for _ in range(5):
        store.session("main").append(Block.user(words))
    store.session("another").append(Block.user("a secret plan"))

    path = archived(store, tmp_path / "all.cutbank", "main")

    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        ((body,),) = connection.execute("SELECT content FROM bodies").fetchall()
    assert decompress_any(body) == words.encode()
    assert b"a secret plan" not in content
    assert b"default/another" not in content


def test_it_is_a_database_that_opens_and_a_database_in_use_is_one_too(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    path = archived(told, tmp_path / "all.cutbank")
    assert sorted(one.name for one in tmp_path.glob("*all.cutbank*")) == ["all.cutbank"]
    with cutbank.open(path) as opened:
        assert verify(opened).is_ok
        assert rows(opened) == rows(told)
    told.session("main").append(Block.user("not yet in its file"))

    report = restored(elsewhere, Path(told.name))

    assert (report.errors, report.format) == ([], "cutbank-archive")
    assert rows(elsewhere) == rows(told)


def test_it_can_be_written_to_an_open_file(
    told: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "out.db"
    with path.open("wb") as out:
        report = cutbank.export(told.session("alone"), "cutbank-archive", out)

    assert (report.path, report.bytes) == (None, path.stat().st_size)
    assert restored(elsewhere, path).sessions == ["alone"]


# Verbs


def test_the_verbs_export_and_import_it(
    told: SessionStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, copy, here = tmp_path / "all.cutbank", str(tmp_path / "copy.db"), ["--db", told.name]

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([*words])
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    for words in (
        ("main", "--all", "--to", "cutbank-archive"),
        ("main", "alone", "--to", "claude-code"),
        ("nobody", "--to", "cutbank-archive"),
    ):
        code, _, err = run("export", *words, "--out", str(path), *here)
        assert (code != 0, len(err.strip().splitlines()), path.exists()) == (True, 1, False)
    some = ("main", "alone", "--sub-agents", "--out", str(tmp_path / "some.cutbank"))
    for named in (some, ("--all", "--out", str(path))):
        code, out, _ = run("export", *named, "--to", "cutbank-archive", "--json", *here)
        assert (code, sorted(json.loads(out)["sessions"])) == (0, EVERY)
    assert json.loads(out)["bytes"] == path.stat().st_size
    code, out, _ = run("import", str(path), "--json", "--db", copy)
    assert (code, sorted(json.loads(out)[0]["sessions"])) == (0, EVERY)
    with cutbank.open(copy) as other:
        assert rows(other) == rows(told)


def test_a_fork_of_a_deleted_session_takes_along_what_it_shares(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    talk(store.session("main"), 12)
    store.session("main").compact(KEEPS_LITTLE, limit=LIMIT)
    fork = store.session("main").fork("fork")
    talk(store.session("main"), 2)
    store.delete("main")
    talk(store.session("main"), 3)
    view = fork.view()

    report = restored(elsewhere, archived(store, tmp_path / "fork.cutbank", "fork"))

    assert (report.errors, report.sessions) == ([], ["fork"])
    assert [session.key for session in elsewhere.sessions()] == ["fork"]
    assert elsewhere.session("fork").view() == view
    assert verify(elsewhere).violations == []
    for session in (elsewhere.session("main"), store.session("main")):
        session.append(Block.user("each has a session of that name of its own"))
    again = restored(elsewhere, archived(store, tmp_path / "again.cutbank", "fork"))
    assert (again.errors, again.added) == ([], 0)


def test_what_was_deleted_does_not_come_back_by_an_archive(
    store: SessionStore, tmp_path: Path
) -> None:
    talk(store.session("main"), 3)
    archive = archived(store, tmp_path / "main.cutbank", "main")
    for forget in (store.delete, store.erase):
        forget("main")

        report = restored(store, archive)

        (error,) = report.errors
        assert "session 'main' was deleted there: restore it into another namespace" in error
        assert store.sessions() == []
    assert restored(store, archive, namespace="another").errors == []
    assert verify(store).violations == []
