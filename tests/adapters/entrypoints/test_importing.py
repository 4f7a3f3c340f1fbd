"""Transcripts can be imported, and the database proved and copied."""

import json
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.reports import FileReport
from cutbank.adapters.session_store import open_store

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
