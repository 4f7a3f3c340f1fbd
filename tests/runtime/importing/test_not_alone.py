"""An import that is interrupted, or not alone, stores all of a transcript once."""

from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk
from transcripts import import_file

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.importing import transcript_import
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.reports import FileReport

from .conftest import talk_of


@pytest.fixture
def talk() -> Talk:
    """Two turns with a call each: eight entries."""
    return talk_of(SESSION, turns=2)


@pytest.fixture
def file(tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the talk's transcript, of which each block is a batch of its own."""
    monkeypatch.setattr(transcript_import, "MAX_BATCH_CHARACTERS", 10)
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_bytes(talk.raw())
    return file


def test_an_interrupted_import_is_marked_and_resumes(
    store: SessionStore, talk: Talk, file: Path
) -> None:
    def interrupt(done: int, _: int) -> None:
        if done > len(talk.raw()) // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(import_path(store, file, progress=interrupt))
    assert store.session(SESSION).log.incomplete_import == str(file)
    partial = store.session(SESSION).log.state.blocks

    report = import_file(store, file)

    assert 0 < partial < 8
    assert report.added == 8 - partial
    assert store.session(SESSION).log.incomplete_import is None
    assert len(store.session(SESSION).view().entries) == 8


def test_others_may_append_while_it_is_imported(
    store: SessionStore, file: Path, database: str
) -> None:
    with cutbank.open(database) as other:

        def meddle(_: int, __: int) -> None:
            if any(one.key == SESSION for one in other.sessions()):
                other.session(SESSION).append(Block.note("meanwhile"))

        (report,) = import_path(store, file, progress=meddle)

    assert report.added == 8
    assert report.errors == []
    assert len(store.session(SESSION).view().entries) == 8
    assert verify(store).is_ok


def test_two_that_import_the_same_file_at_once_store_it_once(
    store: SessionStore, talk: Talk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        talk.user(f"more of it, {number}" * 100)
    file.write_bytes(talk.raw())
    monkeypatch.setattr(transcript_import, "MAX_BATCH_CHARACTERS", 20_000)
    finished: list[FileReport] = []

    def heard(done: int, total: int) -> None:
        # The first one has stored a batch, and opened the session with it.
        if not finished and done > total / 2:
            with cutbank.open(store.name) as other:
                finished.append(import_file(other, file))

    (report,) = import_path(store, file, progress=heard)

    assert finished[0].complete
    assert report.complete
    assert report.errors == []
    assert report.added + finished[0].added == 58
    assert len(store.session(SESSION).recall(search="more of it")) == 50
    assert verify(store).is_ok
