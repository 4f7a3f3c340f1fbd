"""Somebody who has never seen cutbank sees in a minute what it is for."""

from pathlib import Path

import pytest

from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo leaves behind goes where the tests clean up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


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
