"""Sessions go out in the formats of others: the answer to a pipe, the report to standard error."""

import json
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.reports import ExportReport

from .conftest import PROGRAM, Refusals, Run, act_as_terminal, answered_wrongly

FULL = Path("/dev/full")


@pytest.fixture(autouse=True)
def _talk(run: Run) -> None:
    run("append", "s", "Is the bank cut?")


def test_a_session_goes_to_standard_output_and_its_report_beside_it(run: Run) -> None:
    answer = run("export", "s", "--to", "openai-chat")

    assert json.loads(answer.out) == [{"role": "user", "content": "Is the bank cut?"}]
    assert answer.err.startswith("s: the log as openai-chat, ")


def test_on_a_terminal_an_export_does_nothing_but_show(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as_terminal(monkeypatch)
    run("append", "s", "Is the bank\x9b2J cut\u202e?")

    assert "\\x9b2J cut\\u202e" in run("export", "s", "--to", "openai-chat").out


def test_a_new_file_is_written_and_reported(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    answer = run("export", "s", "--to", "anthropic", "--view", "--out", out, "--json")

    assert list(answer.json) == [field.name for field in fields(ExportReport)]
    assert answer.json["bytes"] == out.stat().st_size
    assert (answer.json["of"], answer.json["lost"]) == ("view", {})


WRONG: Refusals = [
    (["--to", "runes"], "the format 'runes' is not known: choose one of claude-code"),
    (["--to", "aider-history"], "the format 'aider-history' is only read"),
    (["--to", "codex", "--lineage", "none"], "has no lineage 'none' (there is: main)"),
    (["--to", "openhands-v1"], "is a folder of files: name a new folder with --out"),
    (["--to", "openai-chat", "--json"], "name a file for the session with --out"),
    (["--to", "openai-chat", "--out", "there.json"], "there.json is there already"),
    (["--to", "openai-chat", "--out", "no/out.json"], "no is not a folder: make it first"),
    (["--to", "cutbank-archive", "--view"], "an archive holds the log"),
    (["--to", "openai-chat", "--all"], "name the sessions to write, or say --all"),
]


def test_what_cannot_be_written_is_refused_in_a_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.json").write_text("mine")

    assert not answered_wrongly(run, WRONG, "export", "s")
    assert Path("there.json").read_text() == "mine"
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_in_a_line(address: str) -> None:
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
