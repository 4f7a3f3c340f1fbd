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


def test_import_into_a_namespace(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "alone.cutbank")
    run(capsys, "export", "alone", "--to", "cutbank-archive", "--out", out, "--db", database)

    code, _, err = run(capsys, "--namespace", "theirs", "import", out, "--db", database)

    assert code == 0, err
    with cutbank.open(database) as store:
        assert [one.key for one in store.sessions("theirs")] == ["alone"]


@pytest.mark.parametrize(
    "words",
    [
        ("export", "main", "--all", "--to", "cutbank-archive"),
        ("export", "--to", "cutbank-archive"),
        ("export", "main", "alone", "--to", "claude-code"),
        ("export", "main", "--view", "--to", "cutbank-archive"),
        ("export", "nobody", "--to", "cutbank-archive"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_line(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    out = tmp_path / "out"

    code, _, err = run(capsys, *words, "--out", str(out), "--db", database)

    assert code != 0
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()


def test_a_damaged_archive_fails_in_one_line(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all.cutbank"
    run(capsys, "export", "--all", "--to", "cutbank-archive", "--out", str(out), "--db", database)
    out.write_bytes(out.read_bytes()[:-100])

    code, said, _ = run(capsys, "import", str(out), "--db", str(tmp_path / "copy.db"))

    assert code == 1
    assert "truncated" in said
