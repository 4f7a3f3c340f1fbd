"""Everything that was ever said can be searched, and the read models made anew."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from databases import on_sqlite

from .conftest import Run


def test_search_shows_where_words_stand(run: Run, talk: Path) -> None:
    answer = run("search", "sandstone")

    assert answer.code == 0
    assert "talk #6 tool_result, turn 1" in answer.out
    assert "print('«sandstone»')" in answer.out
    assert "2 blocks" in answer.out
    assert "`cutbank recall talk" in answer.out


def test_search_answers_in_json(run: Run, talk: Path) -> None:
    (found, _) = run("search", "sandstone", "--json").json["found"]

    assert (found["session"], found["kind"], found["turn"]) == ("talk", "tool_result", 1)
    assert (found["handle"], found["position"]) == ("#6", 6)
    start, end = found["marks"][0]
    assert found["snippet"][start:end] == "sandstone"


def test_search_takes_phrases_and_limits(run: Run, talk: Path) -> None:
    assert len(run("search", "sandstone", "--limit", "1", "--json").json["found"]) == 1
    assert len(run("search", '"prints sandstone"', "--json").json["found"]) == 1
    assert len(run("search", "sandstone -print", "--json").json["found"]) == 1
    assert len(run("search", "read", "a.py", "please", "--json").json["found"]) == 1


def test_search_finds_what_was_taken_back(run: Run, talk: Path) -> None:
    run("retract", "talk", "8")

    assert run("search", "nobody", "--session", "talk").code == 0


def test_nothing_found_is_an_answer(run: Run, talk: Path) -> None:
    answer = run("search", "basalt")

    assert answer.code == 1
    assert "Nothing that was said holds 'basalt'." in answer.out
    assert run("search", "basalt", "--json").json["found"] == []


def test_a_damaged_file_is_made_anew_and_a_person_is_told(run: Run, talk: Path) -> None:
    file = Path(run("search", "sandstone", "--json").json["read_models"])
    file.write_bytes(b"\xff" * file.stat().st_size)

    answer = run("search", "sandstone", "--json")

    assert len(answer.json["found"]) == 2
    assert "was damaged" in answer.json["made_anew"]
    assert "was damaged, and is made anew" in answer.err
    assert run("search", "sandstone").err == ""


def test_rebuild_says_what_it_read(run: Run, talk: Path) -> None:
    said = run("rebuild", "--json").json

    assert said["sessions"] == 1
    assert said["blocks"] == 8
    assert said["events"] == said["position"] == 11
    assert said["bytes"] == Path(said["read_models"]).stat().st_size
    assert "made anew from 11 events: 1 session, 8 blocks" in run("rebuild").out


@on_sqlite
def test_a_log_that_is_only_read_can_be_searched(
    run: Run, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(talk.parent / "state"))

    answer = run("search", "sandstone", "--db", f"{talk.as_uri()}?mode=ro", "--json")

    assert len(answer.json["found"]) == 2
    assert not talk.with_name("test.read.db").exists()


def test_another_program_s_database_in_its_place_is_refused(run: Run, talk: Path) -> None:
    file = Path(run("search", "sandstone", "--json").json["read_models"])
    file.unlink()
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE songs (name TEXT)")

    answer = run("search", "sandstone")

    assert answer.code == 2
    assert "move it away" in answer.err
    assert run("recall", "talk", "6").code == 0
