"""Somebody who has never seen cutbank sees in a minute what it is for."""

import json
from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run

pytestmark = on_sqlite  # the demo has a file of its own


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo leaves behind goes where the tests clean up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_demo_compacts_recalls_and_verifies(run: Run, file: Path) -> None:
    answer = run("demo")

    assert answer.code == 0
    assert len(answer.out.splitlines()) <= 80
    for word in ("before", "after", "recall", "as before it left", "Verify", "sha256"):
        assert word in answer.out
    assert "NOT" not in answer.out
    assert not file.exists(), "the demo has a database of its own"


def test_the_demo_answers_in_json(run: Run, tmp_path: Path) -> None:
    answer = run("demo", "--json", "--db", tmp_path / "x.db")

    tour = answer.json
    assert answer.code == 0
    assert tour["database"] == str(tmp_path / "x.db")
    assert tour["before"]["tokens"] > 150_000 > tour["after"]["tokens"]
    assert tour["compaction"]["compacted"]
    assert sum(kind["blocks"] for kind in tour["left"]["kinds"].values()) > 100
    assert tour["recalled"]
    assert all(one["original"] for one in tour["recalled"])
    assert tour["verify"]["ok"]
    with open_store(tmp_path / "x.db") as store:
        view = store.session(tour["session"], create=False).view()
        assert view.tokens == tour["after"]["tokens"]


def test_a_second_demo_on_one_database_says_what_there_is(run: Run, tmp_path: Path) -> None:
    run("demo", "--db", tmp_path / "x.db")

    again = run("demo", "--db", tmp_path / "x.db")

    assert again.code == 0
    assert "since the last compaction" in again.out
    assert "recall" in again.out


def test_a_session_too_small_to_compact_is_said_to_be(run: Run, tmp_path: Path) -> None:
    entry = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "small",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "isSidechain": False,
        "message": {"role": "user", "content": "Is the bank cut?"},
    }
    transcript = tmp_path / "small.jsonl"
    transcript.write_text(json.dumps(entry) + "\n", encoding="utf-8")

    answer = run("demo", transcript)
    in_json = run("demo", transcript, "--json").json

    assert answer.code == 0
    assert "small: nothing to compact" in answer.out
    assert "recall" in answer.out
    assert list(in_json["too_small"]) == ["small"]
    assert in_json["compaction"] is None


def test_a_file_without_a_session_is_answered_with_no(run: Run, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear river,", encoding="utf-8")

    assert run("demo", letter).code == 1
