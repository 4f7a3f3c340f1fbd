"""An archive by the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from story_of_archives import rows, tell

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "log.db")
    with cutbank.open(path) as store:
        tell(store)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_export_all_and_import(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, copy = str(tmp_path / "all.cutbank"), str(tmp_path / "copy.db")

    told = answer(
        capsys, "export", "--all", "--to", "cutbank-archive", "--out", out, "--db", database
    )
    (report,) = answer(capsys, "import", out, "--db", copy)

    assert sorted(told["sessions"]) == sorted(report["sessions"])
    assert told["bytes"] == Path(out).stat().st_size
    assert report["complete"]
    with cutbank.open(database) as store, cutbank.open(copy) as other:
        assert rows(other) == rows(store)


def test_several_sessions_and_their_sub_agents(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "some.cutbank")
    words = ("--to", "cutbank-archive", "--out", out, "--db", database)

    told = answer(capsys, "export", "main", "alone", "--sub-agents", *words)

    assert sorted(told["sessions"]) == ["agent", "alone", "main", "main/branch", "twig"]


def test_what_cannot_be_written_is_said_in_one_line(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    for words in (
        ("main", "--all", "--to", "cutbank-archive"),
        ("--to", "cutbank-archive"),
        ("main", "alone", "--to", "claude-code"),
        ("main", "--view", "--to", "cutbank-archive"),
        ("nobody", "--to", "cutbank-archive"),
    ):
        code, _, err = run(capsys, "export", *words, "--out", str(out), "--db", database)

        assert code != 0
        assert len(err.strip().splitlines()) == 1
        assert not out.exists()
