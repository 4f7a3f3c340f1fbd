"""The commands and the code on the pages about transcripts run."""

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest
from transcripts import SAMPLES

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main

DOCS = Path(__file__).parents[1] / "docs"
KEY = "7b1e2c3d-4f5a-4b6c-8d7e-9f0a1b2c3d4e"


def commands() -> list[str]:
    """What stands on a line by itself; following, which goes on until it is told to stop, apart."""
    found = [
        command.strip()
        for page in ("importing.md", "exporting.md")
        for command in re.findall(r"(?m)^    (cutbank [^#\n]*)", (DOCS / page).read_text("utf-8"))
    ]
    return [command for command in found if "--follow" not in command]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which Claude Code has left a session."""
    projects = tmp_path / ".claude" / "projects"
    projects.mkdir(parents=True)
    (projects / f"{KEY}.jsonl").write_bytes((SAMPLES / "claude-code" / f"{KEY}.jsonl").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUTBANK_DB", str(tmp_path / "log.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, home: Path) -> int:
    """The exit code of a command of the pages; its output is not redirected."""
    named = {"PATH": str(home / ".claude" / "projects"), "SESSION": KEY}
    words = shlex.split(command.partition(" > ")[0])
    with pytest.raises(SystemExit) as exited:
        main([named.get(word, word) for word in words[1:]])
    assert isinstance(exited.value.code, int)
    return exited.value.code


def test_there_are_commands_on_both_pages() -> None:
    verbs = {command.split()[1] for command in commands()}
    assert verbs == {"import", "export"}


@pytest.mark.parametrize("command", commands())
def test_a_command_runs(command: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "--redact" in command:
        pytest.importorskip("detect_secrets", reason="the extra redact is not installed")
    if " export " in command:
        run("cutbank import PATH", home)
        capsys.readouterr()

    code = run(command, home)

    said = capsys.readouterr()
    assert said.out or said.err
    asks = command == "cutbank import"  # and nobody is there to be asked
    assert code == (1 if asks else 0), said.err
    assert "Traceback" not in said.err


def test_the_code_runs(home: Path) -> None:
    page = (DOCS / "exporting.md").read_text("utf-8")
    code = re.findall(r"In Python:\n\n((?:    .*\n)+)", page)
    with cutbank.open("sessions.db") as store:
        session = store.session("s")
        session.append(cutbank.Block.user("Is the bank cut?"))
        exec(dedent(code[0]), {"session": session})  # noqa: S102

    assert (home / "view.json").exists()
