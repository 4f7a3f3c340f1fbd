"""What trajectories of ATIF tell of a session, and what is written as one."""

import json
from pathlib import Path
from typing import Any

import pytest
from told_elsewhere import Said, again, paired, said, talk, told
from transcripts import SAMPLES, import_file
from wrong_types import mutants

from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.transcripts.formats.atif import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Asked,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Step,
)
from cutbank.domain.blocks import ToolCall, ToolResult

MILL = SAMPLES / "atif/mill.json"


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def steps_of(path: Path, body: Any) -> list[Step]:
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return list(FORMAT.read(Source(path)))


def mill() -> dict[str, Any]:
    body: dict[str, Any] = json.loads(MILL.read_bytes())
    return body


def plain(session: StoredSession) -> Said:
    """What was said, however the arguments of calls are spaced."""
    return [
        (kind, text.replace(" ", "") if kind == "tool_call" else text, call)
        for kind, text, call in said(session)
    ]


def test_what_is_in_a_step_becomes_blocks_in_the_order_in_which_it_was_said(tmp_path: Path) -> None:
    read = steps_of(tmp_path / "a.json", mill())

    blocks = [step.block for step in read if isinstance(step, Append)]
    assert [block.kind.value for block in blocks] == [
        "user",
        "thinking",
        "assistant",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "developer",
        "tool_call",
        "user",
        "image",
    ]
    first, second = (block for block in blocks if isinstance(block, ToolResult))
    assert (first.tool_call_id, first.content) == ("c1", "ground")
    assert second.text == "ground too"
    assert second.media[0].url == "sacks.png"
    assert [block.parsed() for block in blocks if isinstance(block, ToolCall)] == [
        {"sacks": 5},
        {"sacks": 5},
        {},
    ]


def test_a_step_tells_of_its_call_and_the_agent_of_its_tools(tmp_path: Path) -> None:
    read = steps_of(tmp_path / "a.json", mill())

    (call,) = (step for step in read if isinstance(step, Call))
    agent, prompt = (step for step in read if isinstance(step, Asked))
    assert call.fields["model"] == "m-1"
    assert call.fields["cost_usd"] == 0.01
    assert call.fields["usage"] == {"input": 30, "cache_read": 20, "output": 7}
    assert agent.tools == mill()["agent"]["tool_definitions"]
    assert prompt.system_prompt == "You mind the mill."


def test_a_summary_that_cutbank_wrote_is_a_boundary(tmp_path: Path) -> None:
    (found,) = (s for s in steps_of(tmp_path / "a.json", mill()) if isinstance(s, Compacted))

    assert found.summary == "Ten sacks were ground."


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        {"steps": {}},
        {"schema_version": "ATIF-v1.6"},
        {"messages": [{"role": "user", "content": "go"}]},
    ],
)
def test_what_is_no_trajectory_is_a_problem_and_nothing_more(tmp_path: Path, body: Any) -> None:
    problem, end = steps_of(tmp_path / "a.json", body)

    assert isinstance(problem, Problem)
    assert isinstance(end, EntryRead)
    assert end.outcome == "error"
    assert not FORMAT.recognises(Source(tmp_path / "a.json"))


@pytest.mark.parametrize("number", range(8))
def test_a_wrong_type_in_any_field_breaks_no_more_than_its_step(
    tmp_path: Path, number: int
) -> None:
    path, body = tmp_path / "a.json", mill()
    for mutant in mutants(body["steps"][number]):
        read = steps_of(path, body | {"steps": [mutant]})

        ends = [one.outcome for one in read if isinstance(one, EntryRead)]
        assert len(ends) == 2  # what stands around the steps is an entry as well
        assert ends.count("error") <= sum(isinstance(one, Problem) for one in read)


def test_a_wrong_type_in_any_field_around_the_steps_hides_none_of_them(tmp_path: Path) -> None:
    whole = mill()
    steps = whole.pop("steps")
    for mutant in mutants(whole):
        read = steps_of(tmp_path / "a.json", mutant | {"steps": steps})

        assert sum(isinstance(one, Append) for one in read) == 11


def test_a_trajectory_that_grew_adds_what_is_new(store: SessionStore, tmp_path: Path) -> None:
    path, body = tmp_path / "a.json", mill()
    steps = body["steps"]
    for count in (2, 4, len(steps)):
        path.write_text(json.dumps(body | {"steps": steps[:count]}))
        report = import_file(store, path)

    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(body))
    import_file(store, whole, namespace="whole")
    grown, at_once = (
        store.session("mill-1", namespace=name, create=False) for name in ("default", "whole")
    )
    assert report.errors == []
    assert said(grown) == said(at_once)
    assert verify(store).ok


def test_what_cutbank_recorded_is_written_as_steps(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("boats")
    talk(session)

    path = told(session, "atif", tmp_path)

    written = json.loads(path.read_bytes())
    assert written["session_id"] == "boats"
    assert [step["step_id"] for step in written["steps"]] == [1, 2, 3, 4, 5]
    _, answer, *_ = written["steps"]
    assert answer["metrics"] == {
        "prompt_tokens": 120,
        "completion_tokens": 12,
        "cached_tokens": 100,
    }
    assert [one["source_call_id"] for one in answer["observation"]["results"]] == ["c2", "c1"]
    copy, report = again(store, path)
    assert report.errors == []
    assert paired(plain(copy)) == paired([one for one in plain(session) if one[0] != "image"])


def test_what_a_step_cannot_hold_is_told(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("boats")
    talk(session)

    report = export(session, "atif", tmp_path / "a.json")

    assert report.lost == {"images and documents": 2, "error marks of tool results": 1}
