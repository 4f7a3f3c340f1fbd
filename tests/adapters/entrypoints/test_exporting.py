"""Sessions go out in the formats of others: the answer to a pipe, the report to whoever asked."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from databases import on_sqlite

import cutbank
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.reports import ExportReport
from cutbank.domain.errors import ExportError, ImportFileError

from .conftest import Run

PROGRAM = [
    sys.executable,
    "-c",
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
]
FULL = Path("/dev/full")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program is called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def talk(run: Run) -> None:
    run("append", "s", "Is the bank cut?")


@on_sqlite
def test_a_session_goes_to_standard_output_and_its_report_beside_it(run: Run, talk: None) -> None:
    answer = run("export", "s", "--to", "openai-chat")

    assert json.loads(answer.out) == [{"role": "user", "content": "Is the bank cut?"}]
    assert answer.err.startswith("s: the log as openai-chat, ")


@on_sqlite
def test_on_a_terminal_an_export_does_nothing_but_show(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("append", "s", "Is the bank\x9b2J cut\u202e?")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    answer = run("export", "s", "--to", "openai-chat")

    assert "\\x9b2J cut\\u202e" in answer.out


@on_sqlite
def test_a_new_file_is_written_and_reported(run: Run, talk: None, tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    answer = run("export", "s", "--to", "anthropic", "--view", "--out", out, "--json")

    assert list(answer.json) == [field.name for field in fields(ExportReport)]
    assert answer.json["bytes"] == out.stat().st_size
    assert (answer.json["of"], answer.json["lost"]) == ("view", {})


@on_sqlite
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "runes"], "the format 'runes' is not known: choose one of claude-code"),
        (["--to", "aider-history"], "the format 'aider-history' is only read"),
        (["--to", "codex", "--lineage", "none"], "has no lineage 'none' (there is: main)"),
        (["--to", "openhands-v1"], "is a folder of files: name a new folder with --out"),
        (["--to", "openai-chat", "--json"], "name a file for the session with --out"),
        (["--to", "openai-chat", "--out", "there.json"], "there.json is there already"),
        (["--to", "openai-chat", "--out", "no/out.json"], "no is no folder: make it first"),
        (["--to", "cutbank-archive", "--view"], "an archive holds the log"),
        (["--to", "openai-chat", "--all"], "name the sessions to write, or say --all"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_line(
    run: Run,
    talk: None,
    words: list[str],
    message: str,
    folder: Path,
) -> None:
    (folder / "there.json").write_text("mine")

    answer = run("export", "s", *words)

    assert answer.code == 2
    assert message in answer.err
    assert (folder / "there.json").read_text() == "mine"
    assert not list(folder.glob("*.part"))


@on_sqlite
def test_a_session_that_is_not_there_is_refused(run: Run, talk: None) -> None:
    answer = run("export", "other", "--to", "openai-chat")

    assert (answer.code, answer.out) == (2, "")


@on_sqlite
def test_whoever_reads_a_pipe_may_stop(run: Run, address: str) -> None:
    for _ in range(3):
        run("append", "s", "long " * 100_000)
    command = [*PROGRAM, "--db", address, "export", "s", "--to", "openai-chat"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout
        assert program.stderr
        program.stdout.read(10)
        program.stdout.close()
        said = program.stderr.read()

    assert program.returncode == 141
    assert b"Traceback" not in said


@on_sqlite
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_in_a_line(run: Run, talk: None, address: str) -> None:
    command = [*PROGRAM, "--db", address, "export", "s", "--to", "openai-chat"]

    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@on_sqlite
def test_formats_are_listed_with_what_can_be_done_with_them(run: Run) -> None:
    told = {one["name"]: one for one in run("formats", "--json").json}

    assert told.keys() == {*FORMATS, "cutbank-archive"}
    assert told["aider-history"]["write"] is False
    assert told["openhands-v1"]["folder"] is True
    assert told["codex"]["follow"] is True
    shown = run("formats").out
    assert all(name in shown for name in told)


@on_sqlite
def test_a_shell_is_offered_the_formats_that_can_be_written(address: str) -> None:
    words = "cutbank export s --to open"
    environ = os.environ | {
        "_CUTBANK_COMPLETE": "complete_bash",
        "COMP_WORDS": words.replace(" ", "\n"),
    }

    done = subprocess.run(
        PROGRAM, env=environ | {"COMP_CWORD": "4"}, capture_output=True, check=True
    )

    offered = done.stdout.decode().split()
    assert {"openai-chat", "openai-responses", "openhands-v1"} <= set(offered)


def test_python_says_the_same(tmp_path: Path) -> None:
    out = tmp_path / "talk.json"
    with cutbank.open(tmp_path / "c.db") as store:
        session = store.session("s")
        session.append(cutbank.Block.user("hi"))
        report = session.export("openai-chat", out)
        (back,) = store.import_(out, namespace="other")

        assert (report.of, report.lost, report.bytes) == ("log", {}, out.stat().st_size)
        assert (back.format, back.added) == ("openai-chat", 1)
        with pytest.raises(ExportError, match="there already"):
            session.export("openai-chat", str(out))
        with pytest.raises(ImportFileError):
            store.import_(tmp_path / "nowhere")
