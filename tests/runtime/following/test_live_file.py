"""A file that grows is read as it grows; whatever becomes of it, nothing is lost or doubled."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import SESSION, Talk, text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept_sources import kept_bytes
from transcripts import import_path, name_of, samples

import cutbank
from cutbank import SessionStore, verify
from cutbank.adapters.runtime.exporter import make_outgoing
from cutbank.adapters.runtime.importing.live_file import FileNews, LiveFile
from cutbank.adapters.transcripts.formats.catalog import recognize_format
from cutbank.adapters.transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
)
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.domain.blocks import AnyBlock


def talk() -> Talk:
    """A talk with calls, a message on several lines, a compaction and a title."""
    told = Talk()
    told.user("go")
    told.says("m1", text("I look"), output=1)
    told.calls("m1", "t1", output=9)
    told.result("t1", "a.txt")
    told.says("m2", text("done \u00e9"), output=5)
    told.boundary()
    told.summary()
    told.user("on")
    told.says("m3", text("and on"), output=6)
    told.entries.append({"type": "ai-title", "aiTitle": "Going on", "sessionId": SESSION})
    return told


RAW = talk().raw()
LINES = RAW.splitlines(keepends=True)
TEXTS = ["go", "I look", '{"command":"ls"}', "a.txt", "done \u00e9", "on"]


def stored(store: SessionStore) -> dict[str, Any]:
    """All that the store holds of each session, but the order of what models were asked."""
    held: dict[str, Any] = {}
    for stream in store.events.recorder.select_streams("default"):
        session = store.session(stream.session, create=False)
        parts = list(make_outgoing(session, lineage="recorded").read_parts())
        calls = [part.call for part in parts if isinstance(part, OutgoingCall)]
        blocks = [part for part in parts if isinstance(part, OutgoingBlock)]
        held[session.key] = (
            session.info.title,
            [unlocated(part.block) for part in blocks if not part.is_retracted],
            [
                (part.summary.text, len(part.boundary.kept))
                for part in parts
                if isinstance(part, OutgoingCompaction) and part.summary
            ],
            {call.call_id: (call.usage, call.stop_reason, call.model) for call in calls},
        )
    return held


def unlocated(block: AnyBlock) -> AnyBlock:
    """The block without its place in the kept source, which depends on when it was read."""
    nowhere = {"segment": None, "span": None}
    origin = block.origin and block.origin.model_copy(update=nowhere)
    return block.model_copy(update={"origin": origin})


@dataclass
class Live:
    """A file that grows, and the store into which it is read."""

    store: SessionStore
    path: Path
    file: LiveFile

    def write(self, *lines: bytes) -> None:
        self.path.write_bytes(b"".join(lines))

    def append(self, *lines: bytes) -> None:
        with self.path.open("ab") as more:
            more.writelines(lines)

    def news(self) -> list[FileNews]:
        return [*self.file.advance(), *self.file.settle()]

    def stored(self) -> Any:
        return stored(self.store)[SESSION]

    def texts(self) -> list[str]:
        return [block.text for block in self.stored()[1] if block.kind != "note"]


@pytest.fixture
def live(store: SessionStore, tmp_path: Path) -> Iterator[Live]:
    path = tmp_path / f"{SESSION}.jsonl"
    with closing(LiveFile(store, path)) as file:
        yield Live(store, path, file)


def test_the_last_line_and_its_call_are_read_where_the_file_rests(live: Live) -> None:
    live.write(RAW[:-1])
    list(live.file.advance())
    title, *_, calls = live.stored()
    assert (title, "m3" in calls) == (None, False)
    list(live.file.settle())

    title, *_, calls = live.stored()
    assert (title, calls["m3"][0].output) == ("Going on", 6)


def test_a_compaction_without_its_summary_yet_is_nothing_wrong(live: Live) -> None:
    live.write(*LINES[:6])
    told = live.news()
    live.write(RAW)
    told += live.news()

    assert [error for one in told for error in one.errors] == []
    assert live.stored()[2] == [("what was said so far", 0)]


def test_a_file_that_was_replaced_is_read_to_its_end_and_the_new_one_from_its_beginning(
    live: Live,
) -> None:
    live.write(*LINES[:1])
    live.news()

    live.append(LINES[1])
    live.path.rename(live.path.with_suffix(".old"))
    live.write(*LINES[2:5])
    told = live.news()

    assert live.texts() == TEXTS[:5]
    assert told[-1].again


def test_a_file_that_was_written_anew_at_its_full_length_is_read_again(live: Live) -> None:
    live.write(RAW)
    live.news()
    other = talk()
    other.entries[0] |= {"uuid": "x1", "message": {"role": "user", "content": "no"}}

    with live.path.open("r+b") as same:
        same.write(other.raw())
    (told,) = live.news()

    assert told.again
    assert "no" in live.texts()
    assert live.texts().count("done \u00e9") == 1


def test_a_line_that_is_too_long_is_passed_over_to_its_end(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = {"longest": 1_000, "redact": None}
    monkeypatch.setattr(TranscriptSource.__init__, "__kwdefaults__", longest)
    live.write(LINES[0])
    live.news()

    live.append(b'"', b"x" * 1_100)
    (told,) = live.news()
    live.append(b'"\n', LINES[1])
    live.news()

    assert live.texts() == TEXTS[:2]
    assert [error.rpartition(": ")[2] for error in told.errors] == ["longer than 1,000 bytes"]


def test_a_result_waits_for_its_call_though_the_file_rests_before_it(live: Live) -> None:
    told = Talk()
    told.user("go")
    told.calls("m1", "t1")
    told.result("t1", "early")
    told.says("m2", text("done"))
    first, call, result, *rest = told.raw().splitlines(keepends=True)

    live.write(first, result)
    live.news()
    assert live.texts() == ["go"]
    live.append(call, *rest)
    live.news()

    assert live.texts()[2:] == ["early", "done"]
    assert not live.store.search("refused")


def test_a_call_is_closed_once_a_model_went_on_without_its_result(live: Live) -> None:
    told = Talk()
    told.user("go")
    told.calls("m1", "t1")
    told.user("and hurry")
    live.write(told.raw())
    live.news()
    open_calls = live.store.session(SESSION).log.state.open_calls
    assert list(open_calls) == ["t1"]  # it may still be at work

    told.says("m2", text("I stopped it"))
    live.write(told.raw())
    live.news()
    assert not live.store.session(SESSION).log.state.open_calls


def test_what_cannot_be_followed_yet_is_let_go(live: Live) -> None:
    live.write(b'{"nothing": "known"}\n')

    assert (live.news(), live.file.report) == ([], None)


def check_followed(path: Path, raw: bytes, changes: list[tuple[int, str]]) -> None:
    """Follow a file that grows to these lengths, and compare with one import of all of it."""
    with cutbank.open(":memory:") as store, cutbank.open(":memory:") as once:
        file = LiveFile(store, path)
        for end, change in [*sorted(changes), (len(raw), "")]:
            path.write_bytes(raw[:end])
            match change:
                case "rests":
                    list(file.settle())
                case "restart":
                    file.close()  # whoever followed was killed
                    file = LiveFile(store, path)
                case "written anew":
                    path.with_suffix(".new").write_bytes(raw[:end])
                    path.with_suffix(".new").rename(path)
                case "cut off":
                    os.truncate(path, end // 2)
                case "gone":
                    path.unlink()
                case _:
                    pass
            list(file.advance())
            assert path.exists() or file.report is None
        list(file.end())
        list(import_path(once, path))
        list(import_path(store, path))  # which closes the calls that nobody will answer

        assert stored(store) == stored(once), path
        assert kept_bytes(store, path) == raw
        assert verify(store).is_ok


CHANGES = st.sampled_from(["", "rests", "restart", "written anew", "cut off", "gone"])


@settings(max_examples=25)
@example([(len(LINES[0]), ""), (len(LINES[0]) + len(LINES[1]), "rests")])
@given(st.lists(st.tuples(st.integers(1, len(RAW) - 1), CHANGES), max_size=12))
def test_whatever_becomes_of_a_file_its_end_is_what_one_import_would_have_stored(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, str]]
) -> None:
    check_followed(tmp_path_factory.mktemp("followed") / f"{SESSION}.jsonl", RAW, changes)


def test_every_sample_that_grows_ends_as_one_import_of_it(tmp_path: Path) -> None:
    for sample in samples():
        found = recognize_format(TranscriptSource(sample))
        if found and found.begin_reading:
            folder = tmp_path / name_of(sample).replace("/", "-")
            folder.mkdir()
            raw = sample.read_bytes()
            changes = [(end, "" if end % 3 else "rests") for end in range(150, len(raw), 700)]
            check_followed(folder / sample.name, raw, changes)


def test_a_session_that_is_deleted_while_it_is_followed_does_not_come_back(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    said = talk()
    path.write_bytes(said.raw())
    with closing(LiveFile(store, path)) as live:
        list(live.advance())
        assert [session.key for session in store.sessions()] == [SESSION]
        store.erase(SESSION)
        said.user("And what came after?")
        path.write_bytes(said.raw())

        news = [*live.advance(), *live.end()]

    errors = [error for one in news for error in one.errors]
    assert len(errors) == 1
    assert f"session '{SESSION}' was deleted while it was read" in errors[0]
    assert store.sessions() == []
    assert verify(store).violations == []
