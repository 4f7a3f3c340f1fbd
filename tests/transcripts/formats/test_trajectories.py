"""Trajectories of OpenHands, SWE-agent and ATIF: what is wrong with them, and what is added."""

import json
from pathlib import Path
from shutil import copytree

from told_elsewhere import said
from transcripts import SAMPLES

from cutbank import SessionStore
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    SourceProblem,
)

CONVERSATION = SAMPLES / "openhands-v1/a-sack-too-few"
MILL = SAMPLES / "atif/mill.json"
STONE = SAMPLES / "swe-agent-traj/stone.traj"


def steps_of(name: str, path: Path) -> list[ImportStep]:
    return list(FORMATS[name].read(TranscriptSource(path)))


def kinds_of(steps: list[ImportStep]) -> list[tuple[str, str]]:
    return [
        (step.block.kind.value, step.block.text[:24]) for step in steps if isinstance(step, Append)
    ]


def event(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


# OpenHands, the conversations of its SDK


def test_a_missing_a_doubled_and_a_linked_event_are_problems_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "conversation"
    copytree(CONVERSATION, folder)
    events = folder / "events"
    third, fourth, fifth = sorted(events.iterdir())[2:5]
    third.unlink()
    doubled = events / f"event-00003-{event(99)}.json"
    doubled.write_text(json.dumps(json.loads(fifth.read_text()) | {"id": event(99)}))
    (tmp_path / "secret.json").write_text(fourth.read_text())
    linked = events / f"event-00090-{event(90)}.json"
    linked.symlink_to(tmp_path / "secret.json")

    steps = steps_of("openhands-v1", folder)

    reasons = [s.reason for s in steps if isinstance(s, SourceProblem)]
    assert "event 2: not there" in reasons
    assert "another event has the number 3" in reasons
    assert any(reason.endswith("a link out of the folder") for reason in reasons)
    assert any(text.startswith("Running the tests") for _, text in kinds_of(steps))


def test_a_conversation_that_grew_adds_only_what_is_new(
    store: SessionStore, tmp_path: Path
) -> None:
    folder, later = tmp_path / "conversation", tmp_path / "later"
    copytree(CONVERSATION, folder)
    later.mkdir()
    newest = sorted((folder / "events").iterdir())[20:]
    for file in newest:
        file.rename(later / file.name)
    (half,) = import_path(store, folder)
    for file in newest:
        (later / file.name).rename(folder / "events" / file.name)

    (whole,) = import_path(store, folder)
    (again,) = import_path(store, folder)

    assert half.added > 0
    assert whole.added > 0
    assert again.added == 0
    (once,) = import_path(store, folder, namespace="once")
    assert once.added == half.added + whole.added


# SWE-agent and mini-SWE-agent


def test_marks_for_the_cache_that_move_on_add_nothing(store: SessionStore, tmp_path: Path) -> None:
    run = json.loads(STONE.read_text())
    path = tmp_path / "run.traj"
    path.write_text(json.dumps(run))
    (first,) = import_path(store, path)
    del run["history"][3]["cache_control"]
    run["history"][1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    path.write_text(json.dumps(run))

    (again,) = import_path(store, path)

    assert again.sessions == first.sessions
    assert again.added == 0


# ATIF


def test_what_is_no_trajectory_is_a_problem_and_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    chat = '{"messages": [{"role": "user", "content": "go"}]}'
    for body in ("", "no JSON", "[]", '{"steps": {}}', '{"schema_version": "ATIF-v1.6"}', chat):
        path.write_text(body)

        problem, end = steps_of("atif", path)

        assert isinstance(problem, SourceProblem)
        assert isinstance(end, EntryEnd)
        assert end.outcome == "error"
        assert not FORMATS["atif"].recognizes(TranscriptSource(path))


def test_a_trajectory_that_grew_adds_what_is_new(store: SessionStore, tmp_path: Path) -> None:
    path, body = tmp_path / "a.json", json.loads(MILL.read_bytes())
    for count in (2, 4, None):
        path.write_text(json.dumps(body | {"steps": body["steps"][:count]}))
        (report,) = import_path(store, path)
    list(import_path(store, MILL, namespace="whole"))

    grown, at_once = (
        store.session("mill-1", namespace=name, create=False) for name in ("default", "whole")
    )
    assert report.errors == []
    assert said(grown) == said(at_once)
