"""A kept source is read again by today's reader, and only what it sees otherwise is named."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk, text
from transcripts import import_file, import_path

from cutbank import (
    Block,
    ImportFileError,
    InvalidSettingError,
    SessionStore,
    StorageError,
    StoredSession,
    export,
    reread,
    verify,
)
from cutbank.adapters.transcripts.formats import catalog
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import Append, ImportStep

from .conftest import write


def talk() -> Talk:
    told = Talk()
    for number in range(3):
        told.user(f"question {number}")
        told.says(f"m{number}", text(f"answer {number}"))
    return told


@pytest.fixture
def path(folder: Path) -> Path:
    return write(folder, f"{SESSION}.jsonl", talk())


@pytest.fixture
def old_reader(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let an older reader read, which cuts what is said on line 4, until the function is called."""
    today = catalog.FORMATS["claude-code"]

    def read(source: TranscriptSource) -> Iterator[ImportStep]:
        for step in today.read(source):
            if isinstance(step, Append) and step.block.origin and step.block.origin.line == 4:
                cut = step.block.model_copy(update={"text": "answer"})
                yield replace(step, block=cut)
            else:
                yield step

    monkeypatch.setitem(catalog.FORMATS, "claude-code", replace(today, read=read))
    return lambda: monkeypatch.setitem(catalog.FORMATS, "claude-code", today)


def imported(store: SessionStore, path: Path) -> StoredSession:
    return store.session(import_file(store, path).sessions[0], create=False)


def test_the_same_reader_sees_the_same_and_changes_nothing(store: SessionStore, path: Path) -> None:
    session = imported(store, path)
    session.append(Block.user("added here"))
    before = store.events.recorder.max_notification_id()

    report = reread(session)

    assert (report.blocks, report.changed, report.errors) == (6, [], [])
    assert report.files == [str(path.resolve())]
    assert store.events.recorder.max_notification_id() == before


def test_a_better_reader_is_named_by_line_with_both_readings(
    store: SessionStore, path: Path, old_reader: Callable[[], None]
) -> None:
    session = imported(store, path)
    session.pop()  # retracted here, which the source did not do
    old_reader()

    report = reread(session)

    first, second = report.changed
    assert (report.blocks, first.line, second.line) == (4, 4, 6)
    assert first.file == str(path.resolve())
    ((was,), (now,)) = first.before, first.now
    assert was.handle == now.handle
    assert now.characters - was.characters == len(" 1")
    assert (second.before[0].retracted, second.now[0].retracted) == (True, False)


def test_a_new_reading_is_taken_over_by_the_same_name_in_another_namespace(
    store: SessionStore, path: Path, old_reader: Callable[[], None], tmp_path: Path
) -> None:
    session = imported(store, path)
    old_reader()

    report = reread(session, into="better")

    new = store.session(SESSION, namespace="better", create=False)
    assert (report.into, report.sessions) == ("better", [SESSION])
    assert [one.block.text for one in new.blocks()][3] == "answer 1"
    assert [one.block.text for one in session.blocks()][3] == "answer"
    export(new, "claude-code", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == path.read_bytes()
    assert verify(store).is_ok
    with pytest.raises(ImportFileError, match=rf"^better holds a session {SESSION} already"):
        reread(session, into="better")
    with pytest.raises(InvalidSettingError, match=r"^default holds .* itself"):
        reread(session, into="default")


def test_what_was_not_kept_is_refused(store: SessionStore, path: Path) -> None:
    own = store.session("own")
    own.append(Block.user("never imported"))
    list(import_path(store, path, keep_sources=False))
    session = store.session(SESSION, create=False)

    with pytest.raises(ImportFileError, match=r"^own has no source of its own"):
        reread(own)
    with pytest.raises(ImportFileError, match=r"was imported without keeping it"):
        reread(session)


def test_a_damaged_source_is_refused_and_nothing_is_taken_over(
    store: SessionStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = imported(store, path)
    recorder = type(store.events.recorder)
    monkeypatch.setattr(recorder, "select_segment", lambda _self, _digest: b"damaged")

    with pytest.raises(StorageError, match=r"is damaged"):
        reread(session, into="better")

    assert [one.namespace for one in store.sessions()] == ["default"]
