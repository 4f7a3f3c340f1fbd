"""Folders are followed as they are written: files that grow, and files that were not there."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
from claude_code_talk import SESSION, Talk, text
from idle_processes import PROGRAM
from planted import SECRETS
from transcripts import SAMPLES, import_path

from cutbank import FileReport, ImportFileError, SessionStore
from cutbank.adapters.runtime.importing import transcript_follower
from cutbank.adapters.runtime.importing.live_file import FileNews
from cutbank.adapters.runtime.importing.transcript_follower import TranscriptFollower
from cutbank.adapters.runtime.importing.transcript_import import ImportOptions

WAITS_S = 60.0


def follower(store: SessionStore, folder: Path, **how: Any) -> TranscriptFollower:
    """A follower that is told of changes by its test, with `change`."""
    return TranscriptFollower(store, [folder], **{"heard": lambda _: None, **how})


def change(one: TranscriptFollower, path: Path) -> None:
    one.handle_changes([(2, str(path))])  # type: ignore[list-item]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


def lines(count: int, session: str = SESSION, **fields: Any) -> list[bytes]:
    talk = Talk()
    for number in range(count):
        talk.user(f"say {number}", sessionId=session, **fields)
    return talk.raw().splitlines(keepends=True)


def texts(store: SessionStore, key: str = SESSION) -> list[str]:
    return [entry.block.text for entry in store.session(key, create=False).view().entries]


def append(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


def test_what_was_imported_to_its_end_is_not_read_again_until_it_changes(
    store: SessionStore, path: Path
) -> None:
    append(path, b"".join(lines(2)))
    list(import_path(store, path))
    one = follower(store, path.parent)

    one.begin()
    assert not one.live
    append(path, lines(3)[2])
    one.handle_changes([])
    assert list(one.live) == [path.resolve()]
    one.end()

    assert texts(store) == ["say 0", "say 1", "say 2"]


def test_files_that_rest_while_others_are_written_are_read_to_their_end(
    store: SessionStore, tmp_path: Path, path: Path
) -> None:
    now = [1_000.0]
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"), output=7)
    one = follower(store, tmp_path, clock=lambda: now[0])
    one.begin()
    path.write_bytes(talk.raw())
    change(one, path)
    assert one.changed

    now[0] += 2
    other = tmp_path / "other.jsonl"
    append(other, lines(1, session="other")[0])
    change(one, other)

    assert not set(one.changed) & {path.resolve()}
    one.end()


def test_only_so_many_files_are_held_open(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_follower, "MAX_OPEN_FILES", 2)
    keys = [f"{number}1111111-2222-3333-4444-555555555555" for number in range(4)]
    for key in keys:
        (tmp_path / f"{key}.jsonl").write_bytes(lines(2, session=key)[0])
    one = follower(store, tmp_path)

    one.begin()
    assert len(one.live) == 2
    for key in keys:
        path = tmp_path / f"{key}.jsonl"
        append(path, lines(2, session=key)[1])
        change(one, path)
    one.end()

    assert [texts(store, key) for key in keys] == [["say 0", "say 1"]] * 4


def test_what_is_read_as_a_whole_is_imported_once(store: SessionStore, tmp_path: Path) -> None:
    for name in ("gemini-cli", "openhands-v1", "claude-code"):
        shutil.copytree(SAMPLES / name, tmp_path / name)
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    rounds: list[list[FileReport]] = []

    for _ in range(2):
        imported: list[FileReport] = []
        one = follower(store, tmp_path, imported=imported.append)
        one.begin()
        one.end()
        rounds.append(imported)

    assert {str(report.format) for report in rounds[0]} == {"gemini-cli", "openhands-v1"}
    assert all(report.complete for report in rounds[0])
    wrong = [report.path for report in rounds[0] if report.errors]
    assert [report.path for report in rounds[1]] == wrong  # what is wrong is said each time


def test_what_was_left_out_is_told_file_by_file(store: SessionStore, path: Path) -> None:
    pytest.importorskip("detect_secrets", reason="the extra redact is not installed")
    talk = Talk()
    talk.user(f"use {SECRETS['GitHub Token']}")
    path.write_bytes(talk.raw())

    one = follower(store, path.parent, options=ImportOptions(redacts=True))
    one.begin()
    talk.user(f"or {SECRETS['GitHub Token']}")
    path.write_bytes(talk.raw())
    change(one, path)
    one.end()

    (report,) = one.reports.values()
    assert report.redacted == {"GitHub Token": [f"{path}:1", f"{path}:2"]}
    assert texts(store) == [f"{word} [redacted: GitHub Token 1]" for word in ("use", "or")]
    again = follower(store, path.parent, options=ImportOptions(redacts=True))
    again.begin()
    assert not again.live


def test_a_file_is_let_go_whatever_stops_its_reading(store: SessionStore, path: Path) -> None:
    def refuse(news: FileNews) -> None:
        raise RuntimeError(news.path)

    append(path, lines(1)[0])
    one = follower(store, path.parent, heard=refuse)

    with pytest.raises(RuntimeError):
        one.follow(Event())
    assert all(file.report is None for file in one.live.values())


def test_what_keeps_it_from_following_is_said(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImportFileError, match="does not exist"):
        follower(store, tmp_path / "none")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(ImportFileError, match=r"cutbank\[follow\]"):
        follower(store, tmp_path).follow(Event())


# As a process


@contextmanager
def following(database: Path, *paths: Path | str) -> Iterator["subprocess.Popen[str]"]:
    """`cutbank import --follow --json` at work."""
    process = subprocess.Popen(
        [*PROGRAM, "--db", str(database), "import", "--json", "--follow", *map(str, paths)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = Timer(WAITS_S, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def wait_until_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stderr
    said = process.stderr.readline()
    assert said.startswith("following"), said + process.stderr.read()


def test_new_files_and_those_in_new_folders_are_followed_until_it_is_interrupted(
    tmp_path: Path, path: Path
) -> None:
    agent = lines(2, isSidechain=True, agentId="a1")
    below = tmp_path / SESSION / "subagents"

    with following(tmp_path / "log.db", tmp_path) as one:
        wait_until_ready(one)
        append(path, lines(1)[0])
        assert one.stdout
        assert json.loads(one.stdout.readline())["added"] == 1
        below.mkdir(parents=True)
        for line in agent:
            append(below / "agent-a1.jsonl", line)
            assert json.loads(one.stdout.readline())["added"] == 1
        one.send_signal(signal.SIGINT)
        _, said = one.communicate()

    assert one.returncode == 0
    assert said.splitlines()[-1] == "3 new blocks in 2 sessions, 0 errors"


def test_without_a_path_the_folders_of_all_agents_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    kept = [tmp_path / ".claude/projects/p/s.jsonl", tmp_path / ".codex/sessions/r.jsonl"]
    for file, line in zip(kept, lines(2), strict=True):
        file.parent.mkdir(parents=True)
        append(file, line)

    with following(tmp_path / "log.db", "--yes") as one:
        assert one.stdout
        assert [json.loads(one.stdout.readline())["added"] for _ in kept] == [1, 1]
        wait_until_ready(one)
        append(kept[0], lines(3)[2])
        assert json.loads(one.stdout.readline())["added"] == 1


def test_two_signals_at_once_end_it_without_a_traceback(tmp_path: Path, path: Path) -> None:
    append(path, lines(1)[0])
    with following(tmp_path / "log.db", tmp_path) as one:
        wait_until_ready(one)
        one.send_signal(signal.SIGINT)
        one.send_signal(signal.SIGTERM)
        _, said = one.communicate()

    assert one.returncode in {0, 143, -signal.SIGTERM, 130}
    assert "Traceback" not in said
