"""Transcripts can be imported, and the database proved and copied."""

import json
import sqlite3
from contextlib import closing
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.transcripts.reports import FileReport

from .conftest import Run


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "transcripts" / "one.jsonl"
    path.parent.mkdir()
    shared = {"sessionId": "s-1", "cwd": "/srv", "version": "2.1.0", "isSidechain": False}
    shared |= {"timestamp": "2026-01-01T00:00:00.000Z", "userType": "external"}
    said = {"role": "user", "content": "Is the bank cut?"}
    answered = {
        "id": "m1",
        "role": "assistant",
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": "By the river."}],
    }
    entries = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": said, **shared},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": answered, **shared},
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def test_import_reports_each_file(run: Run, transcript: Path) -> None:
    answer = run("import", transcript, "--json")

    (report,) = answer.json
    assert answer.code == 0
    assert list(report) == [field.name for field in fields(FileReport)]
    assert report["sessions"] == ["s-1"]
    assert (report["entries"], report["added"], report["complete"]) == (2, 2, True)
    assert "By the river." in run("show", "s-1").out


def test_a_folder_is_imported_once(run: Run, transcript: Path) -> None:
    first = run("import", transcript.parent)

    again = run("import", transcript.parent, "--json").json

    assert "2 new blocks" in first.out
    assert again[0]["added"] == 0


def test_import_goes_into_the_namespace_that_is_named(run: Run, transcript: Path) -> None:
    run("import", transcript, "--namespace", "mine")

    assert run("sessions", "--json").json[0]["namespace"] == "mine"


def test_an_error_in_a_file_is_answered_with_no(run: Run, transcript: Path) -> None:
    with transcript.open("a", encoding="utf-8") as file:
        file.write("{no json\n")

    answer = run("import", transcript)

    assert answer.code == 1
    assert "one.jsonl:3" in answer.out
    assert "not read: not JSON" in run("show", "s-1").out
    assert "not read: not JSON" in run("recall", "s-1", "--search", "{no json").out
    assert "refused" in run("search", "no json").out


def test_a_file_of_no_known_format_is_answered_with_no(run: Run, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear river,", encoding="utf-8")

    answer = run("import", letter, "--json")

    assert answer.code == 1
    assert answer.json[0]["format"] is None


def test_one_empty_folder_does_not_keep_the_others_out(
    run: Run, transcript: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    both = run("import", empty, transcript, "--json")

    assert both.code == 1
    assert [bool(report["errors"]) for report in both.json] == [True, False]
    assert run("import", empty).code == 2


def test_a_path_that_does_not_exist_keeps_all_out(run: Run, transcript: Path, file: Path) -> None:
    assert run("import", transcript, transcript.with_name("two.jsonl")).code == 2
    assert not file.exists()


def test_verify_proves_what_is_stored(run: Run, long_talk: Path) -> None:
    run("compact", "long", "--set", "keep_tokens=1000")

    verdict = run("verify", "--json").json

    assert (verdict["ok"], verdict["violations"]) == (True, [])
    assert (verdict["sessions"], verdict["boundaries"]) == (1, 1)
    assert verdict["positions"] > 24
    assert "all is well" in run("verify", "long").out


@on_sqlite
def test_a_violation_is_answered_with_no(run: Run, talk: Path) -> None:
    with closing(sqlite3.connect(talk)) as damaged, damaged:
        damaged.execute("DROP TRIGGER stored_events_are_immutable")
        damaged.execute(
            "UPDATE stored_events SET state ="
            " CAST(replace(CAST(state AS TEXT), 'sandstone', 'limestone') AS BLOB)"
            " WHERE originator_version = 7"
        )
    damaged.close()

    answer = run("verify", "--json")

    assert answer.code == 1
    assert answer.json["ok"] is False
    assert answer.json["violations"][0]["rule"] == "log"
    assert "violation" in run("verify").out


def test_a_backup_is_a_whole_database(run: Run, talk: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"

    answer = run("backup", copy, "--json")

    assert answer.json["bytes"] == copy.stat().st_size
    with open_store(copy) as store:
        assert [session.key for session in store.sessions()] == ["talk"]


def test_a_backup_never_writes_over_a_file(run: Run, talk: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear river,", encoding="utf-8")

    assert run("backup", tmp_path / "letter.txt").code == 2
    assert (tmp_path / "letter.txt").read_text(encoding="utf-8") == "Dear river,"


# What has not changed


def test_a_file_that_has_not_changed_is_passed_over(run: Run, transcript: Path) -> None:
    run("import", transcript)

    (report,) = run("import", transcript, "--json").json

    assert (report["passed"], report["complete"]) == ("unchanged", True)
    assert (report["entries"], report["sessions"]) == (0, ["s-1"])
    assert "1 file has not changed" in run("import", transcript).out


def test_a_file_is_the_same_however_it_is_named(
    run: Run, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", transcript)
    monkeypatch.chdir(transcript.parent)

    assert "1 file has not changed" in run("import", transcript.name).out


def test_again_reads_it_all_the_same(run: Run, transcript: Path) -> None:
    run("import", transcript)

    (report,) = run("import", transcript, "--again", "--json").json

    assert (report["passed"], report["entries"], report["added"]) == (None, 2, 0)


def test_a_file_that_was_rewritten_at_the_same_size_is_read(run: Run, transcript: Path) -> None:
    run("import", transcript)
    text = transcript.read_text(encoding="utf-8")
    transcript.write_text(text.replace("u2", "u3").replace("river", "ocean"), encoding="utf-8")

    (report,) = run("import", transcript, "--json").json

    assert (report["passed"], report["added"]) == (None, 1)


def test_what_is_wrong_with_a_file_is_said_each_time(run: Run, transcript: Path) -> None:
    with transcript.open("a", encoding="utf-8") as file:
        file.write("{no json\n")

    first, again = run("import", transcript), run("import", transcript)

    assert (first.code, again.code) == (1, 1)
    assert "one.jsonl:3" in again.out


# What is no transcript


def test_in_a_folder_other_files_are_no_errors(run: Run, transcript: Path) -> None:
    (transcript.parent / "package.json").write_text('{"name": "bank"}', encoding="utf-8")
    (transcript.parent / "README.md").write_text("# Bank", encoding="utf-8")

    answer = run("import", transcript.parent)

    assert answer.code == 0
    assert "2 files are not transcripts" in answer.out
    assert "package.json" not in answer.out


@pytest.mark.parametrize("name", ["package.json", "broken.jsonl"])
def test_a_file_that_is_named_or_has_lines_is_an_error(
    run: Run, transcript: Path, name: str
) -> None:
    other = transcript.with_name(name)
    other.write_text('{"name": "bank"}', encoding="utf-8")

    named = run("import", other)
    below = run("import", transcript.parent)

    assert named.code == 1
    assert "no known transcript format" in named.out
    assert below.code == (1 if name.endswith(".jsonl") else 0)


# The report


def test_the_report_says_what_became_of_all_entries(run: Run, transcript: Path) -> None:
    with transcript.open("a", encoding="utf-8") as file:
        file.write('{"type": "hologram", "uuid": "u3", "parentUuid": "u2", "sessionId": "s-1"}\n')
        file.write('{"type": "progress", "uuid": "u4", "parentUuid": "u3", "sessionId": "s-1"}\n')
        file.write("{no json\n")

    answer = run("import", transcript, "--report")

    rows = [line.split() for line in answer.out.splitlines()]
    assert ["claude-code", "1", "5", "2", "1", "1", "1"] in rows
    assert f"hologram  {transcript}:3" in answer.out
    assert f"{transcript}:5: " in answer.out.split("errors")[-1]


def test_json_says_where_the_first_of_each_unknown_type_is(run: Run, transcript: Path) -> None:
    with transcript.open("a", encoding="utf-8") as file:
        for number in (3, 4):
            entry = {"type": "hologram", "uuid": f"u{number}", "sessionId": "s-1"}
            file.write(json.dumps(entry) + "\n")

    (report,) = run("import", transcript, "--json").json

    assert report["unknown"] == {"hologram": 2}
    assert report["unknown_at"] == {"hologram": f"{transcript}:3"}


def test_quiet_says_the_total_and_what_is_wrong(run: Run, transcript: Path) -> None:
    other = transcript.with_name("two.jsonl")
    other.write_text(transcript.read_text(encoding="utf-8").replace("s-1", "s-2"), encoding="utf-8")

    answer = run("import", transcript.parent, "--quiet")

    assert answer.out.splitlines() == ["2 files: 4 new blocks in 2 sessions, 0 errors"]


# Finding


@pytest.fixture
def at_home(transcript: Path, tmp_path: Path) -> Path:
    """The transcript as an agent leaves it in its home; `run` has made `tmp_path` the home."""
    place = tmp_path / ".claude" / "projects" / "-srv" / "s-1.jsonl"
    place.parent.mkdir(parents=True)
    transcript.rename(place)
    return place


def test_without_a_terminal_nothing_is_read_unless_told_to(
    run: Run, at_home: Path, file: Path
) -> None:
    answer = run("import")

    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert "1 transcript of claude-code" in answer.err
    assert not file.exists()


def test_yes_imports_what_is_found(run: Run, at_home: Path) -> None:
    answer = run("import", "--yes")

    assert answer.code == 0
    assert f"{at_home}: claude-code, 2 new blocks" in answer.out
    assert "1 file has not changed" in run("import", "--yes").out


def test_json_lists_what_is_found_and_reads_nothing(run: Run, at_home: Path, file: Path) -> None:
    (found,) = run("import", "--json").json

    assert found.pop("newest").startswith("20")
    assert found == {
        "format": "claude-code",
        "folders": [str(at_home.parents[1])],
        "files": 1,
        "sessions": 1,
        "bytes": at_home.stat().st_size,
    }
    assert not file.exists()


def test_json_and_yes_import(run: Run, at_home: Path) -> None:
    (report,) = run("import", "--json", "--yes").json

    assert (report["path"], report["added"]) == (str(at_home), 2)


def test_where_no_agent_was_nothing_is_found(run: Run) -> None:
    for words in (("--yes",), (), ("--json",)):
        answer = run("import", *words)

        assert answer.code == 1
        assert "name a PATH" in answer.err


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_it_lists_and_asks(
    run: Run, at_home: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    answer = run("import")

    assert answer.code == code
    assert "claude-code" in answer.out
    assert "Import 1 transcript of claude-code" in answer.out
    assert ("2 new blocks" in answer.out) == (code == 0)


@pytest.mark.parametrize("option", [("--again",), ("--yes",), ("--jobs", "2")])
def test_following_takes_no_option_that_it_would_not_heed(
    run: Run, transcript: Path, option: tuple[str, ...]
) -> None:
    answer = run("import", transcript, "--follow", *option)

    assert answer.code == 2
    assert f"--follow takes no {option[0]}" in answer.err


def test_of_an_agent_that_must_export_it_is_said_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "opencode").mkdir(parents=True)

    assert "`opencode export SESSION > FILE`" in run("import").err
    assert run("import", "--json").err.count("\n") == 1
