"""The program as it is called: its words in, its code and its output out."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import cutbank
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.runtime.sessions.session_store import open_store

PROGRAM = [sys.executable, "-m", "cutbank"]


@dataclass(frozen=True)
class Answer:
    """What came of one command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Answer]


@pytest.fixture
def address(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the database, which the environment names; it does not exist yet."""
    monkeypatch.setenv("CUTBANK_DB", database)
    return database


@pytest.fixture
def file(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database's file, which is never made where the database is a server's."""
    # Whatever a test forgets to name must not end up in the home of who runs it.
    for name in ("DATA", "STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "test.db"


@pytest.fixture
def run(file: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process."""

    def running(*words: str | Path) -> Answer:
        # A program may change its environment, which ends with it.
        with patch.dict(os.environ), pytest.raises(SystemExit) as exited:
            main([str(word) for word in words])
        said = capsys.readouterr()
        assert isinstance(exited.value.code, int)
        return Answer(exited.value.code, said.out, said.err)

    return running


@pytest.fixture
def talk(address: str, file: Path) -> Path:
    """A session `talk`: two turns, a tool call, and a note; #3 to #11."""
    with open_store(address) as store:
        store.session("talk", title="About a file", source="claude-code").append(
            cutbank.Block.user("Read a.py, please."),
            cutbank.Block.thinking("It may be long."),
            cutbank.ToolCall(tool_call_id="c1", name="read", arguments={"path": "a.py"}),
            cutbank.ToolResult(tool_call_id="c1", content="print('sandstone')\n" * 3),
            cutbank.Block.assistant("It prints sandstone."),
            cutbank.Block.note("Not sent to a model."),
            cutbank.Block.user("Now b.py."),
            cutbank.ToolCall(tool_call_id="c2", name="read", arguments={"path": "b.py"}),
        )
    return file


@pytest.fixture
def long_talk(address: str, file: Path) -> Path:
    """A session `long` of 12 turns with 1,000 tokens each: user blocks at #3, #6, #9, ..."""
    with open_store(address) as store:
        session = store.session("long")
        for turn in range(12):
            session.append(
                cutbank.Block.user(f"Question {turn}: " + "why is the river brown? " * 20),
                cutbank.Block.assistant(f"Answer {turn}: " + "silt, silt and more silt. " * 140),
            )
    return file


def act_as_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the program take its output for a terminal without colors."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)


Refusals = list[tuple[list[str], str]]
"""Words of command lines, each with what its refusal says."""


def answered_wrongly(run: Run, rows: Refusals, *before: str) -> list[tuple[list[str], str, Answer]]:
    """Return the rows that are not refused in one line with exit code 2 that says the text."""
    wrong = []
    for words, said in rows:
        answer = run(*before, *words)
        is_refused = answer.code == 2 and said in answer.err
        is_refused &= said in answer.json["error"] if "--json" in words else answer.out == ""
        if not (is_refused and answer.err.startswith("cutbank: ") and answer.err.count("\n") == 1):
            wrong.append((words, said, answer))
    return wrong
