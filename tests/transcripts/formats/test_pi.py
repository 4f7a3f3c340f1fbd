"""What each entry of a session of pi or oh-my-pi becomes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pi_talk import Talk, imported

from cutbank import SessionStore
from cutbank.adapters.transcripts.formats.catalog import recognize_format
from cutbank.adapters.transcripts.formats.pi import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    EntryEnd,
    ImportStep,
    SessionStart,
    SourceProblem,
)

Read = Callable[[Talk | bytes], list[ImportStep]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(talk: Talk | bytes) -> list[ImportStep]:
        path = tmp_path / "a.jsonl"
        path.write_bytes(talk if isinstance(talk, bytes) else talk.raw())
        return list(FORMAT.read(TranscriptSource(path)))

    return read


def of(kind: type[Any], steps: list[ImportStep]) -> list[Any]:
    return [step for step in steps if isinstance(step, kind)]


def ends(steps: list[ImportStep]) -> list[str]:
    return [step.outcome for step in of(EntryEnd, steps)]


def test_a_cleared_context_begins_anew(store: SessionStore, tmp_path: Path) -> None:
    talk = Talk()
    talk.user("before")
    old = talk.says("yes")
    talk.add("reset_boundary")
    talk.user("after")
    talk.user("beside", old)

    report = imported(store, talk.write(tmp_path / "a.jsonl"))

    home, branch = (store.session(key).view() for key in report.sessions)
    assert [entry.block.text for entry in home.entries] == ["after"]
    assert [entry.block.text for entry in branch.entries] == ["before", "yes", "beside"]


def test_branches_that_leave_one_another_without_end_are_refused(read: Read) -> None:
    talk = Talk()
    at = talk.user("begin")
    talk.says("on")
    for _ in range(300):
        at = talk.user("branch", at)
        talk.says("on")

    steps = read(talk)

    assert len({begin.key for begin in of(SessionStart, steps)}) == 201
    assert "more than 200 branches" in of(SourceProblem, steps)[0].reason
    assert len(ends(steps)) == len(talk.entries)


def test_a_session_is_told_by_its_first_lines(tmp_path: Path) -> None:
    session: dict[str, Any] = {"type": "session", "id": "s", "timestamp": "t"}
    title = {"type": "title", "v": 1, "title": ""}
    told: list[tuple[list[Any], str | None]] = [
        ([session | {"cwd": "/"}], "pi"),
        ([title, {"type": "session"}], None),
        ([title | {"pad": ""}, session | {"version": 3}], "oh-my-pi"),
        ([session | {"title": "x"}], "oh-my-pi"),
        ([session, {"type": "model_change", "model": "a/b"}], "oh-my-pi"),
        ([{"type": "message", "id": "1"}, session], None),
        ([session | {"id": 7}], None),
    ]
    path = tmp_path / "session.txt"
    for lines, name in told:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

        found = recognize_format(TranscriptSource(path))

        assert (found.name if found else None) == name, lines
