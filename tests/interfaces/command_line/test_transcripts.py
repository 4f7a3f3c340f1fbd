"""Transcripts can be imported, sessions exported, and the database proved and copied."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest
from claude_code_talk import Talk, text
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.reports import ExportReport, FileReport

from .conftest import PROGRAM, Refusals, Run, act_as_terminal, answered_wrongly


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "transcripts" / "one.jsonl"
    path.parent.mkdir()
    talk = Talk()
    talk.user("Is the bank cut?", sessionId="s-1")
    talk.says("m1", text("By the river."), sessionId="s-1")
    path.write_text("".join(json.dumps(one) + "\n" for one in talk.entries), encoding="utf-8")
    return path


def add_lines(path: Path, *lines: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_import_reports_each_file_of_a_namespace(run: Run, transcript: Path) -> None:
    answer = run("import", transcript, "--namespace", "mine", "--json")

    (report,) = answer.json
    assert answer.code == 0
    assert list(report) == [field.name for field in fields(FileReport)]
    assert report["sessions"] == ["s-1"]
    assert (report["entries"], report["added"], report["complete"]) == (2, 2, True)
    assert run("sessions", "--json").json[0]["namespace"] == "mine"
    assert "By the river." in run("show", "s-1", "--namespace", "mine").out


def test_what_no_block_holds_is_found_in_the_sources_and_read_again(
    run: Run, transcript: Path
) -> None:
    add_lines(transcript, '{"type": "progress", "data": "shown on the screen"}')
    run("import", transcript)

    found = run("search", "--sources", "SHOWN on", "--json")
    line = run("recall", "s-1", "--line", found.json["found"][0]["line"], "--raw")
    again = run("reread", "s-1", "--into", "better")

    (hit,) = found.json["found"]
    assert (hit["session"], hit["line"]) == ("s-1", 3)
    assert "«shown on» the screen" in run("search", "--sources", "shown on").out
    assert line.out == transcript.read_text(encoding="utf-8").splitlines(keepends=True)[2]
    assert run("search", "--sources", "nowhere").code == 1
    assert "2 blocks as before, 0 entries read otherwise" in again.out
    assert {one["namespace"] for one in run("sessions", "--json").json} == {"default", "better"}


def test_an_error_in_a_file_is_answered_with_no_each_time(run: Run, transcript: Path) -> None:
    add_lines(transcript, "{no json")

    for _ in range(2):
        answer = run("import", transcript)
        assert answer.code == 1
        assert "one.jsonl:3" in answer.out

    (hit,) = run("search", "--sources", "no json", "--json").json["found"]
    assert (hit["session"], hit["line"]) == ("s-1", 3)
    assert "{no json" in run("recall", "s-1", "--line", "3").out


def test_one_empty_folder_does_not_keep_the_others_out_and_a_wrong_path_does(
    run: Run, transcript: Path, tmp_path: Path, file: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("import", transcript, transcript.with_name("two.jsonl")).code == 2
    assert not file.exists()

    both = run("import", empty, transcript, "--json")

    assert (both.code, [bool(report["errors"]) for report in both.json]) == (1, [True, False])
    assert run("import", empty).code == 2


def test_verify_proves_what_is_stored_and_finds_what_was_changed(run: Run, talk: Path) -> None:
    sound = run("verify", "--json").json
    assert (sound["ok"], sound["violations"], sound["sessions"]) == (True, [], 1)
    assert "all is well" in run("verify", "talk").out

    with closing(sqlite3.connect(talk)) as damaged, damaged:
        damaged.execute("DROP TRIGGER stored_events_are_immutable")
        damaged.execute(
            "UPDATE stored_events SET state ="
            " CAST(replace(CAST(state AS TEXT), 'sandstone', 'limestone') AS BLOB)"
            " WHERE originator_version = 7"
        )
    answer = run("verify", "--json")

    assert (answer.code, answer.json["ok"]) == (1, False)
    assert answer.json["violations"][0]["rule"] == "log"
    assert "violation" in run("verify").out


def test_a_file_that_has_not_changed_is_passed_over_however_it_is_named(
    run: Run, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", transcript)
    monkeypatch.chdir(transcript.parent)

    (report,) = run("import", transcript, "--json").json
    (again,) = run("import", transcript, "--again", "--json").json

    assert (report["passed"], report["complete"]) == ("unchanged", True)
    assert (report["entries"], report["sessions"]) == (0, ["s-1"])
    assert "1 file passed over: unchanged (--again reads all)" in run("import", transcript.name).out
    assert (again["passed"], again["entries"], again["added"]) == (None, 2, 0)


def test_what_is_no_transcript_is_an_error_where_it_is_named_or_has_lines(
    run: Run, transcript: Path
) -> None:
    other = transcript.with_name("package.json")
    other.write_text('{"name": "bank"}', encoding="utf-8")
    named, below = run("import", other), run("import", transcript.parent)
    other.rename(transcript.with_name("broken.jsonl"))
    broken = run("import", transcript.parent, "--json")

    assert (named.code, below.code, broken.code) == (1, 0, 1)
    assert "no known transcript format" in named.out
    assert "1 file passed over: not a transcript" in below.out
    assert "package.json" not in below.out
    assert [one["format"] for one in broken.json].count(None) == 1


def test_the_report_says_what_became_of_all_entries(run: Run, transcript: Path) -> None:
    common = '"parentUuid": null, "sessionId": "s-1"}'
    unknown = f'{{"type": "hologram", "uuid": "u3", {common}'
    add_lines(transcript, unknown, f'{{"type": "progress", "uuid": "u4", {common}', "{no json")

    answer = run("import", transcript, "--report")

    rows = [line.split() for line in answer.out.splitlines()]
    assert ["claude-code", "1", "2", "5", "2", "1", "1", "1"] in rows
    assert ["claude-code", "unknown", "hologram", "1", f"{transcript}:3"] in rows
    assert f"{transcript}:5: " in answer.out.split("errors")[-1]
    assert f"{transcript}:3: 1 of unknown type hologram" in answer.out
    (report,) = run("import", transcript, "--again", "--json").json
    assert report["unknown"] == {"hologram": 1}
    assert report["unknown_at"] == {"hologram": f"{transcript}:3"}


def test_what_is_found_is_imported_when_told_to_and_on_a_terminal_it_is_asked(
    run: Run, transcript: Path, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `run` has made `tmp_path` the home, where an agent leaves its transcripts.
    place = tmp_path / ".claude" / "projects" / "-srv" / "s-1.jsonl"
    place.parent.mkdir(parents=True)
    transcript.rename(place)

    refused = run("import")
    (found,) = run("import", "--json").json

    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert "1 transcript of claude-code" in refused.err
    assert found.pop("newest").startswith("20")
    assert found.pop("folders") == [str(place.parents[1])]
    size = place.stat().st_size
    assert found == {"format": "claude-code", "files": 1, "sessions": 1, "bytes": size}
    assert not file.exists()
    with monkeypatch.context() as patch:
        act_as_terminal(patch)
        for typed, code in (("\n", 1), ("n\n", 1), ("y\n", 0)):
            patch.setattr("sys.stdin", StringIO(typed))
            patch.setattr("sys.stdin.isatty", lambda: True, raising=False)

            answer = run("import")

            assert answer.code == code
            assert "Import 1 transcript of claude-code" in answer.out
            out = " ".join(answer.out.split())
            assert (f"{place}: claude-code, 2 new blocks" in out) == (code == 0)
    (report,) = run("import", "--json", "--yes", "--again").json
    assert report["path"] == str(place)


def test_quiet_says_the_total_alone(run: Run, transcript: Path) -> None:
    other = transcript.with_name("two.jsonl")
    other.write_text(transcript.read_text(encoding="utf-8").replace("s-1", "s-2"), encoding="utf-8")

    said = run("import", transcript.parent, "--quiet").out

    assert said == "2 files: 4 new blocks in 2 sessions, 0 errors\n"


def test_where_nothing_is_found_it_is_said_what_to_do(run: Run, tmp_path: Path) -> None:
    for words in (("--yes",), (), ("--json",)):
        answer = run("import", *words)
        assert answer.code == 1
        assert "name a PATH" in answer.err
    (tmp_path / "data" / "opencode").mkdir(parents=True)

    assert "`opencode export SESSION > FILE`" in run("import").err
    assert run("import", "--json").err.count("\n") == 1


def test_a_copy_that_was_made_in_use_is_refused_until_verify_adopts_it(
    run: Run, talk: Path, tmp_path: Path
) -> None:
    copy, damaged = tmp_path / "copy.db", tmp_path / "damaged.db"
    with open_store(talk) as store:
        store.session("talk").append(cutbank.Block.user("In the file."))
        sqlite_recorder(store).datastore.writer.execute("PRAGMA wal_checkpoint")
        store.session("talk").append(cutbank.Block.user("In the log."))
        shutil.copy(talk, copy)
    content = copy.read_bytes()
    damaged.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))

    hints = "copy.db is a copy made while the database was in use", "`cutbank verify --adopt`"
    for words in (["sessions"], ["view", "talk"], ["verify"], ["append", "talk", "x"]):
        answer = run(*words, "--db", copy)

        assert (answer.code > 0, answer.out, answer.err.count("\n")) == (True, "", 1)
        assert all(hint in answer.err for hint in hints)

    assert "all is well" in run("verify", "--adopt", "--db", copy).out
    said = run("recall", "talk", "--search", "In the", "--db", copy).out
    assert ("In the file." in said, "In the log." in said) == (True, False)
    rows: Refusals = [(["--adopt", "--db", str(damaged)], "damaged.db is damaged")]
    assert not answered_wrongly(run, rows, "verify")


FULL = Path("/dev/full")


@pytest.fixture
def said(run: Run) -> None:
    run("append", "s", "Is the bank cut?")


def test_a_session_goes_to_standard_output_and_its_report_beside_it(
    run: Run, said: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run("export", "s", "--to", "openai-chat")

    assert json.loads(answer.out) == [{"role": "user", "content": "Is the bank cut?"}]
    assert answer.err.startswith("s: the log as openai-chat, ")
    act_as_terminal(monkeypatch)
    run("append", "s", "Is the bank\x9b2J cut\u202e?")
    assert "\\x9b2J cut\\u202e" in run("export", "s", "--to", "openai-chat").out


def test_a_new_file_is_written_and_reported(run: Run, said: None, tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    answer = run("export", "s", "--to", "anthropic", "--view", "--out", out, "--json")

    assert list(answer.json) == [field.name for field in fields(ExportReport)]
    assert answer.json["bytes"] == out.stat().st_size
    assert (answer.json["of"], answer.json["lost"]) == ("view", {})
    out.write_text("mine")
    there = [(["--to", "openai-chat", "--out", str(out)], "out.json is there already")]
    assert not answered_wrongly(run, there, "export", "s")
    assert out.read_text() == "mine"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_in_a_line(address: str, said: None) -> None:
    command = [*PROGRAM, "--db", address, "export", "s", "--to", "openai-chat"]

    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_formats_are_listed_with_what_can_be_done_with_them(run: Run) -> None:
    listed = {one["name"]: one for one in run("formats", "--json").json}

    assert listed.keys() == {*FORMATS, "cutbank-archive"}
    assert listed["aider-history"]["write"] is False
    assert listed["openhands-v1"]["folder"] is True
    assert listed["codex"]["follow"] is True
    shown = run("formats").out
    assert all(name in shown for name in listed)
