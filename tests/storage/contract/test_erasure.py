"""A deleted session is as if never written; of an erased one, no file holds a byte of content."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from databases import asked, connected_to
from log_rows import Change
from transcripts import import_path

import cutbank
from cutbank import (
    Block,
    ConflictError,
    CutbankError,
    NotFoundError,
    SessionStore,
    StorageError,
    StoredSession,
    ToolCall,
    ToolResult,
    verify,
)
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.storage.databases import postgres_recorder
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

LARGE = "planted-body " * 2_000
POLICY = ReserveHeadroom(reserve_tokens=300, keep_tokens=300, summary_tokens=300)
LIMIT = 3_000


def fill(session: StoredSession, word: str = "planted") -> None:
    """Say the word in everything that a session may hold."""
    session.configure(
        title=f"{word}-title",
        system_prompt=f"{word}-system",
        tools=[{"name": f"{word}-tool"}],
        request_settings={"stop": f"{word}-setting"},
    )
    session.append(Block.user(f"{word}-prompt"), key=f"{word}-key")
    for number in range(4):
        call = f"{word}-call-{number}"
        session.append(
            Block.assistant(f"{word}-answer " * 100),
            ToolCall(tool_call_id=call, name="read", arguments={"path": f"{word}-path"}),
            ToolResult(tool_call_id=call, content=f"{word}-result " * 2_000),
        )
        session.append(Block.user(f"go on {word} {number}"))
    session.append(Block.user(LARGE.replace("planted", word)), Block.note(f"{word}-note"))
    session.records.put(f"{word}-record", {"state": f"{word}-value"})
    # Compression stores random bytes as they are, and so the word in them.
    session.records.put("bytes", os.urandom(9_000) + f"{word}-bytes".encode())
    session.compact(POLICY, limit=LIMIT)


def list_raw_files(store: SessionStore, database: str, engine: str) -> Iterator[tuple[str, bytes]]:
    """Every file of the store, and of PostgreSQL every table as it is on disk."""
    name = store.read_models.name
    if engine == "sqlite":
        for path in Path(database).parent.iterdir():
            if path.is_file():
                yield path.name, path.read_bytes()
    else:
        for path in Path(name).parent.glob(f"{Path(name).name}*"):
            yield path.name, path.read_bytes()
        with connected_to(database) as server:
            server.execute("CHECKPOINT")
            (folder,) = server.execute("SHOW data_directory").fetchone() or ("",)
            tables = server.execute(
                "SELECT relname, pg_relation_filepath(pg_class.oid) FROM pg_class,"
                " pg_namespace AS of"
                " WHERE relfilenode <> 0 AND nspname = current_schema()"
                " AND (relnamespace = of.oid OR pg_class.oid IN"
                " (SELECT reltoastrelid FROM pg_class WHERE relnamespace = of.oid))"
            ).fetchall()
        for table, file in tables:
            yield table, Path(folder, file).read_bytes()


def find_word(store: SessionStore, database: str, engine: str, word: str = "planted") -> list[str]:
    return [name for name, raw in list_raw_files(store, database, engine) if word.encode() in raw]


def test_a_dry_run_says_what_an_erasure_removes_and_changes_nothing(store: SessionStore) -> None:
    fill(store.session("x"))
    store.delete("x")
    fill(store.session("x"))
    store.session("x").fork("fork").append(Block.user("more"))
    rows = asked(store, "SELECT count(*), sum(length(state)) FROM stored_events")

    said = store.erase("x", forks=True, dry_run=True)

    assert asked(store, "SELECT count(*), sum(length(state)) FROM stored_events") == rows
    assert len(store.sessions()) == 2
    done = store.erase("x", forks=True)
    assert (said.is_dry_run, said.sessions) == (True, done.sessions)
    assert (said.content.events, said.content.bytes) == (done.content.events, done.content.bytes)


def test_a_deleted_session_is_as_if_never_written(store: SessionStore) -> None:
    session = store.session("x")
    fill(session)
    store.read_models.catch_up()
    rows = asked(store, "SELECT count(*) FROM stored_events")

    store.delete("x", by="a person", reason="asked to")

    assert store.sessions() == []
    assert store.search("planted") == []
    assert store.costs().rows == []
    with pytest.raises(NotFoundError, match="no session 'x'"):
        store.session("x", create=False)
    for use in (session.view, lambda: session.append(Block.user("more")), lambda: session.info):
        with pytest.raises(NotFoundError, match="session 'x' was deleted"):
            use()
    again = store.session("x")
    assert again.append(Block.user("again"), key="planted-key") == (3, 3, False)
    assert [entry.block for entry in again.view().entries] == [Block.user("again")]
    assert again.records.get("planted-record") is None
    assert [hit.session for hit in store.search("again")] == ["x"]
    assert store.read_models.rebuild_reason is None
    assert verify(store).violations == []
    assert asked(store, "SELECT count(*) FROM stored_events") > rows  # the log keeps it


def test_forks_keep_what_they_share_and_name_it_as_theirs(store: SessionStore) -> None:
    session = store.session("x")
    fill(session)
    first, second = session.fork("first"), session.fork("second", at=8)
    first.append(Block.user("pebble"))
    views = {fork.key: fork.view() for fork in (first, second)}
    found = {key: len(store.search("planted", session=key)) for key in views}

    store.delete(session)

    for fork in (first, second):
        assert fork.view() == views[fork.key]
        assert len(store.search("planted", session=fork.key, limit=99)) >= 1
        assert fork.recall(search="planted-prompt")
    assert len(store.search("planted", session="second")) == found["second"]
    assert {hit.session for hit in store.search("planted", limit=99)} == {"first"}
    assert verify(store).violations == []
    store.delete(first)
    assert {hit.session for hit in store.search("planted", limit=99)} == {"second"}
    assert len(store.search("planted", session="second")) == found["second"]
    store.delete(second)
    assert store.search("planted") == []
    models = store.read_models
    for table in ("sessions", "blocks", "compactions", "lineages", "inherited", "blocks_fts"):
        assert models.file.fetch_rows(f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608
    models.rebuild()
    assert store.search("planted") == []
    assert verify(store).violations == []


def test_of_an_erased_session_no_file_holds_a_byte(
    store: SessionStore, database: str, engine: str, tmp_path: Path
) -> None:
    session, other = store.session("x"), store.session("y")
    fill(session)
    fill(other, "kept")
    store.search("planted")
    assert find_word(store, database, engine)
    view = other.view()
    skeleton = asked(store, "SELECT originator_version, topic, tokens, digest FROM stored_events")

    report = store.erase("x", by="a person", reason="asked to")

    assert find_word(store, database, engine) == []
    assert report.sessions == [("default", "x")]
    assert report.content.bytes > len(LARGE)
    assert report.content.bodies == 3
    kept = asked(store, "SELECT originator_version, topic, tokens, digest FROM stored_events")
    assert sorted(skeleton) == sorted(set(kept) & set(skeleton))
    assert verify(store).violations == []
    assert (store.session("y").view(), len(store.search("kept", limit=99))) != (view, 0)
    assert store.session("y").view() == view
    assert store.read_models.rebuild_reason is None
    assert store.session("x").append(Block.user("again")).first == 3


def test_a_body_that_another_session_of_the_subject_has_stays(store: SessionStore) -> None:
    one, other = store.session("x", subject="alice"), store.session("y", subject="alice")
    one.append(Block.user(LARGE), Block.user(f"{LARGE} of one"))
    other.append(Block.user(LARGE))

    report = store.erase("x")

    assert report.content.bodies == 1
    assert other.recall(3)[0].block == Block.user(LARGE)
    assert verify(store).violations == []


def test_all_about_a_subject_goes_at_once(store: SessionStore, database: str, engine: str) -> None:
    for key in ("x", "y", "z"):
        fill(store.session(key, subject="alice"))
    store.session("x").fork("of x").append(Block.user("planted"))
    store.delete("z")
    store.session("bob's").append(Block.user("pebble"))
    store.search("planted")

    report = store.erase(subject="alice", by="a person")

    assert report.sessions == [("default", name) for name in ("of x", "x", "y", "z")]
    assert find_word(store, database, engine) == []
    assert [session.key for session in store.sessions()] == ["bob's"]
    assert verify(store).violations == []
    with pytest.raises(NotFoundError, match="nothing about the subject 'alice'"):
        store.erase(subject="alice")
    with pytest.raises(NotFoundError, match="no session is about the subject 'no one'"):
        store.erase(subject="no one")


def test_a_source_goes_with_its_session(
    store: SessionStore, database: str, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "sources").mkdir()
    transcript = tmp_path / "sources" / "5e551011-0000-4000-8000-000000000000.jsonl"
    write_sample(transcript)
    list(import_path(store, transcript))
    key = transcript.stem
    assert asked(store, "SELECT count(*) FROM source_segments") != [(0,)]
    store.delete(key)
    assert asked(store, "SELECT count(*) FROM imports") == [(0,)]

    (again,) = import_path(store, transcript)  # the name is free, and so is the file

    assert again.added > 0
    assert store.erase(key).content.segments >= 1
    assert asked(store, "SELECT count(*) FROM source_segments") == [(0,)]
    assert verify(store).violations == []


def test_a_session_that_a_fork_shares_is_erased_with_it_or_not_at_all(store: SessionStore) -> None:
    session = store.session("x")
    session.append(Block.user("planted"))
    fork = session.fork("f")

    with pytest.raises(ConflictError, match="the fork 'f' shares positions 1 to 3"):
        store.erase("x")

    assert session.view() == store.session("x").view()
    assert store.erase("x", forks=True).sessions == [("default", "f"), ("default", "x")]
    with pytest.raises(NotFoundError):
        fork.view()


def test_an_erased_event_is_never_changed_again_and_others_never(
    store: SessionStore, change: Change
) -> None:
    store.session("x").append(Block.user("planted"))
    store.session("y").append(Block.user("kept"))
    store.erase("x")

    for statement in (
        "UPDATE stored_events SET state = digest",
        "UPDATE stored_events SET tokens = 7 WHERE tokens > 0",
        "DELETE FROM stored_events",
    ):
        with pytest.raises(Exception, match="the log is immutable"):
            change(statement)


def test_verify_says_what_is_gone_without_an_erasure(store: SessionStore, change: Change) -> None:
    store.session("x").append(Block.user("planted"))
    store.erase("x")

    change("UPDATE deleted_streams SET erased = NULL")

    assert {one.what for one in verify(store).violations} == {
        "its content is gone, and no erasure says so"
    }


def test_what_is_there_after_an_erasure_is_found(store: SessionStore, change: Change) -> None:
    store.session("x").append(Block.user("planted"))
    store.delete("x")

    change("UPDATE deleted_streams SET erased = (1 = 1)")

    found = {one.what for one in verify(store).violations}
    assert "its content is there, although it was erased" in found


def test_a_compaction_of_a_deleted_session_is_refused(store: SessionStore) -> None:
    session = store.session("x")
    fill(session)
    session.append(Block.user("more " * 3_000))

    class Deleting:
        name = "deleting"

        def summarize(self, _: cutbank.Material, /) -> cutbank.Draft:
            store.delete("x")
            store.session("x").append(Block.user("again"))
            return cutbank.Draft(text="A summary of what was planted.")

    options = cutbank.CompactionOptions(summarizers=[Deleting()])

    with pytest.raises(NotFoundError, match="was deleted while it was compacted"):
        session.compact(POLICY, limit=LIMIT, options=options)

    assert store.session("x").log.lineages == []
    assert verify(store).violations == []


def test_another_process_cannot_use_what_was_deleted(
    store: SessionStore, database: str, tmp_path: Path
) -> None:
    session = store.session("x")
    session.append(Block.user("one"), key="first")
    with cutbank.open(database) as other:
        theirs = other.session("x")
        assert theirs.view().entries
        store.delete("x")

        with pytest.raises(NotFoundError):
            theirs.append(Block.user("two"), key="first")
        for use in (
            theirs.view,
            lambda: theirs.fork("f"),
            lambda: cutbank.export(theirs, "openai-chat", tmp_path / "out.json"),
        ):
            with pytest.raises(NotFoundError):
                use()
        assert not (tmp_path / "out.json").exists()
        store.session("x").append(Block.user("three"))
        assert theirs.append(Block.user("two"), key="first") == (4, 4, False)
        store.session("y").append(Block.user("z"))
        with pytest.raises(ConflictError):
            other.session("y").fork("x")
    assert verify(store).violations == []


def test_the_same_session_is_deleted_by_one_of_many(store: SessionStore, database: str) -> None:
    store.session("x").append(Block.user("planted"))
    ended: list[bool] = []

    def delete() -> None:
        with cutbank.open(database) as other:
            try:
                other.delete("x")
                ended.append(True)
            except NotFoundError:
                ended.append(False)

    threads = [threading.Thread(target=delete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ended) == [False, False, False, True]
    assert verify(store).violations == []


def test_backups_and_archives_that_still_hold_it_are_named(
    store: SessionStore, engine: str, database: str, tmp_path: Path
) -> None:
    session = store.session("x")
    fill(session)
    (tmp_path / "backups").mkdir()
    copy, archive = tmp_path / "backups" / "copy.db", tmp_path / "backups" / "x.cutbank"
    store.backup(copy)
    cutbank.export(session, "cutbank-archive", archive)
    settings = cutbank.Settings(
        maintenance=cutbank.MaintenanceSettings(backup_folder=str(tmp_path / "backups"))
    )
    store.apply_settings(settings)

    report = store.erase("x")

    assert report.still_in == [str(copy), str(archive)]
    for path in (copy, archive):
        with cutbank.open(path) as other:
            other.erase("x")
            assert verify(other).violations == []
        assert b"planted" not in path.read_bytes()


def test_bad_input_changes_nothing(store: SessionStore) -> None:
    store.session("x").append(Block.user("planted"))
    before = asked(store, "SELECT count(*) FROM stored_events")

    for wrong in (
        lambda: store.delete("x", "missing"),
        lambda: store.erase("missing"),
        lambda: store.erase("x", subject="default/x"),
        store.erase,
    ):
        with pytest.raises(CutbankError) as refused:
            wrong()
        assert "\n" not in str(refused.value)
        assert not isinstance(refused.value, StorageError)

    assert asked(store, "SELECT count(*) FROM stored_events") == before


def test_a_deletion_may_be_part_of_a_batch_and_an_erasure_not(store: SessionStore) -> None:
    store.session("x").append(Block.user("planted"))
    with suppress(ConnectionError), store.batch():
        store.delete("x")
        store.session("x").append(Block.user("again"))
        raise ConnectionError
    assert [entry.block for entry in store.session("x").view().entries] == [Block.user("planted")]

    with store.batch():
        store.delete("x")
        store.session("x").append(Block.user("again"))
    assert [entry.block for entry in store.session("x").view().entries] == [Block.user("again")]

    with pytest.raises(StorageError, match="cannot be part of a batch"), store.batch():
        store.erase("x")
    assert verify(store).violations == []


def test_a_fork_that_left_before_an_erased_session_began_goes_on(
    store: SessionStore, database: str
) -> None:
    session = store.session("x")
    session.append(Block.user("kept"))
    between = session.fork("between", at=3)
    between.append(Block.user("planted " * 200))
    fork = between.fork("f", at=3)
    view = fork.view()

    report = store.erase("between")

    assert report.sessions == [("default", "between")]
    assert fork.view() == view
    with cutbank.open(database) as again:
        assert again.session("f", create=False).view() == view
    assert verify(store).violations == []


@pytest.mark.parametrize("engine", ["postgres"])
def test_an_erasure_waits_for_a_server_s_older_transactions(
    store: SessionStore, database: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store.session("x"))
    monkeypatch.setattr(postgres_recorder, "READER_SECONDS", 0.0)

    with connected_to(database) as reader, reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT pg_current_snapshot()")  # which locks no table
        with pytest.raises(StorageError, match=r"is being read .* end that program, and open it"):
            store.erase("x")
    store.close()

    monkeypatch.undo()
    with cutbank.open(database) as again:
        assert find_word(again, database, engine) == []
        assert verify(again).is_ok
