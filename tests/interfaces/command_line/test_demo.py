"""The demo shows what cutbank is for, over a sample that is a transcript like any other."""

import json
import runpy
from pathlib import Path

import pytest

from cutbank.adapters.interfaces.sample import write_sample
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo leaves behind goes where the tests clean up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_demo_answers_in_json(run: Run, tmp_path: Path) -> None:
    answer = run("demo", "--json", "--db", tmp_path / "x.db")

    tour = answer.json
    assert (answer.code, tour["errors"]) == (0, 0)
    assert tour["database"] == str(tmp_path / "x.db")
    assert tour["before"]["tokens"] > 150_000 > tour["after"]["tokens"]
    assert tour["compaction"]["compacted"]
    assert sum(kind["blocks"] for kind in tour["left"]["kinds"].values()) > 100
    assert tour["recalled"]
    assert all(one["original"] for one in tour["recalled"])
    assert tour["verify"]["ok"]
    with open_store(tmp_path / "x.db") as store:
        session = store.session(tour["session"], create=False)
        assert session.view().tokens == tour["after"]["tokens"]
        assert not session.log.state.open_calls
        assert len(session.recall(search="never touch the migrations folder")) > 0


def test_the_demo_compacts_recalls_and_verifies_and_a_second_one_says_what_there_is(
    run: Run, file: Path, tmp_path: Path
) -> None:
    answer = run("demo", "--db", tmp_path / "x.db")
    again = run("demo", "--db", tmp_path / "x.db")

    assert answer.code == again.code == 0
    assert len(answer.out.splitlines()) <= 80
    for word in ("before", "after", "recall", "as before it left", "Verify", "sha256"):
        assert word in answer.out
    assert "NOT" not in answer.out
    assert "since the last compaction" in again.out
    assert not file.exists(), "the demo has a database of its own"


def test_the_shipped_file_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scripts = tmp_path / "session.jsonl", Path(__file__).parents[3] / "scripts"
    monkeypatch.syspath_prepend(scripts)

    write_sample(path)

    content = path.read_bytes()
    assert content == runpy.run_path(str(scripts / "make_sample.py"))["make_sample"]()
    assert b"\r" not in content
    entries = [json.loads(line) for line in content.splitlines()]
    seen = [None]
    for entry in entries:
        if "uuid" in entry:
            assert entry["parentUuid"] in seen
            seen.append(entry["uuid"])
