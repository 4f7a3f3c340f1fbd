"""What OpenHands, SWE-agent and mini-SWE-agent tell of a session, and what is written for them."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from told_elsewhere import Said, compact, long_talk, paired, said, talk
from transcripts import SAMPLES
from wrong_types import mutants

from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Skipped,
    Step,
    Unknown,
)
from cutbank.domain.blocks import ToolResult
from cutbank.domain.compaction_events import Trigger

CONVERSATION = SAMPLES / "openhands-v1/a-sack-too-few"
TRAJECTORY = SAMPLES / "openhands-v0/trajectory.json"
WHEEL = SAMPLES / "swe-agent-traj/wheel.traj"
STONE = SAMPLES / "swe-agent-traj/stone.traj"
POND = SAMPLES / "mini-swe-agent/pond.traj.json"
GEESE = SAMPLES / "mini-swe-agent/geese.traj.json"
WRITTEN = ("openhands-v1", "openhands-v0", "swe-agent-traj", "mini-swe-agent")
FILES = [
    ("openhands-v0", TRAJECTORY),
    ("swe-agent-traj", WHEEL),
    ("swe-agent-traj", STONE),
    ("mini-swe-agent", POND),
    ("mini-swe-agent", GEESE),
]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def steps_of(name: str, path: Path) -> list[Step]:
    return list(FORMATS[name].read(Source(path)))


def kinds_of(steps: list[Step]) -> list[tuple[str, str]]:
    return [
        (step.block.kind.value, step.block.text[:24]) for step in steps if isinstance(step, Append)
    ]


def event(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def written(session: StoredSession, name: str, folder: Path, *, view: bool = False) -> Path:
    found = FORMATS[name]
    path = folder / f"out-{view}{found.suffix if found.write else ''}"
    export(session, name, path, view=view)
    return path


def back(store: SessionStore, path: Path) -> StoredSession:
    (report,) = import_path(store, path, namespace="back")
    assert report.errors == []
    (key,) = report.sessions
    return store.session(key, namespace="back", create=False)


# OpenHands, the conversations of its SDK


def test_the_actions_of_one_response_are_one_message_and_its_call_is_told_once() -> None:
    steps = steps_of("openhands-v1", CONVERSATION)
    both = [s.block for s in steps if isinstance(s, Append) and s.block.message_id == "resp-2"]
    calls = {s.fields["call_id"]: s.fields for s in steps if isinstance(s, Call)}

    assert [block.kind.value for block in both] == [
        "thinking",
        "assistant",
        "tool_call",
        "tool_call",
    ]
    assert list(calls) == [f"resp-{number}" for number in range(1, 8)]
    assert calls["resp-1"]["usage"].model_dump(exclude_none=True) == {
        "input": 20,
        "cache_read": 100,
        "cache_write": 40,
        "output": 30,
        "reasoning": 8,
    }
    assert calls["resp-2"]["usage"].input == 100, "what was written to the cache is in the prompt"
    assert (calls["resp-1"]["cost_usd"], calls["resp-1"]["latency_s"]) == (0.01, 1.25)
    assert calls["resp-3"]["usage"] is None


def test_a_condensation_keeps_exactly_what_it_does_not_forget() -> None:
    first, second = (s for s in steps_of("openhands-v1", CONVERSATION) if isinstance(s, Compacted))

    assert first.kept == (event(2), event(10), event(11), event(12), event(13))
    assert first.summary == (
        "The totals are wrong in line 7 of ledger/totals.py: the range ends too early."
    )
    assert second.kept == (event(2), event(17), event(18), event(20))
    assert (first.trigger, second.trigger) == (Trigger.THRESHOLD, Trigger.MANUAL)
    assert second.summary is not None
    assert "without a summary" in second.summary


def test_results_are_failed_where_the_event_says_so_and_hold_their_images() -> None:
    results = {
        s.block.tool_call_id: s.block
        for s in steps_of("openhands-v1", CONVERSATION)
        if isinstance(s, Append) and isinstance(s.block, ToolResult)
    }

    assert {call for call, one in results.items() if one.is_error} == {
        "call_view",
        "call_push",
        "call_bad",
    }
    assert results["call_ls"].text.endswith("[The command completed with exit code 0.]")
    assert len(results["call_grep"].media) == 1
    assert results["call_grep"].text.endswith("Rule for ledger/: keep the comments.")


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

    reasons = [s.reason for s in steps if isinstance(s, Problem)]
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


# OpenHands before its SDK


def test_calls_of_one_answer_are_one_message_and_usage_is_what_the_metrics_grew_by() -> None:
    steps = steps_of("openhands-v0", TRAJECTORY)
    both = [s.block for s in steps if isinstance(s, Append) and s.block.message_id == "chat-1"]
    calls = {s.fields["call_id"]: s.fields for s in steps if isinstance(s, Call)}

    assert [block.kind.value for block in both] == [
        "thinking",
        "assistant",
        "tool_call",
        "tool_call",
    ]
    assert (calls["chat-1"]["usage"].input, calls["chat-1"]["usage"].cache_read) == (40, 60)
    grown = calls["chat-2"]["usage"]
    assert (grown.input, grown.cache_read, grown.cache_write, grown.output) == (120, 100, 30, 25)
    assert calls["chat-2"]["cost_usd"] == 0.5


def test_a_range_of_events_is_forgotten_and_every_observation_is_counted() -> None:
    steps = steps_of("openhands-v0", TRAJECTORY)
    first, second = (s for s in steps if isinstance(s, Compacted))
    results = [s for s in steps if isinstance(s, Append) and isinstance(s.block, ToolResult)]
    counted = sum(s.answers for s in steps if isinstance(s, EntryRead))

    assert first.kept == ("1", "3", "9", "10")
    assert second.kept == ("1", "3", "12", "13", "14", "15")
    assert [one.block.is_error for one in results if isinstance(one.block, ToolResult)] == [
        False,
        True,
        False,
    ]
    assert counted == 4
    assert [s.type for s in steps if isinstance(s, Unknown)] == ["action/sing", "observation/echo"]


# SWE-agent and mini-SWE-agent


def test_an_old_trajectory_has_its_calls_in_the_text_and_its_last_answer_in_the_steps() -> None:
    assert kinds_of(steps_of("swe-agent-traj", WHEEL)) == [
        ("developer", "Here is how another one "),
        ("user", "ISSUE: the wheel turns b"),
        ("assistant", "Let me look at the files"),
        ("tool_call", '{"command":"ls -F wheel\\'),
        ("tool_result", "wheel.py\nREADME.md\nand a"),
        ("assistant", "That is all, I hand it i"),
        ("tool_call", '{"command":"submit\\n"}'),
        ("tool_result", "\ndiff --git a/wheel.py b"),
    ]


def test_a_trajectory_holds_signed_thoughts_images_and_the_programs_words() -> None:
    assert kinds_of(steps_of("swe-agent-traj", STONE)) == [
        ("user", "The millstone is cracked"),
        ("image", ""),
        ("thinking", "Cracked where?"),
        ("assistant", "I look at the stone befo"),
        ("tool_call", '{"path": "stone"}'),
        ("tool_result", "OBSERVATION:\nA crack run"),
        ("assistant", "No tool this time."),
        ("developer", "Your last output did not"),
        ("tool_call", '{"with": "iron"}'),
    ]


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


def test_a_list_of_messages_has_its_commands_in_the_text() -> None:
    assert kinds_of(steps_of("mini-swe-agent", GEESE)) == [
        ("user", "Please count the geese."),
        ("assistant", "Counting them.\n\n```mswea"),
        ("tool_call", '{"command":"cat geese | '),
        ("tool_result", "<returncode>0</returncod"),
        ("assistant", "I forgot the block."),
        ("user", "Please always give one c"),
        ("assistant", "Done.\n\n```bash\necho COMP"),
        ("tool_call", '{"command":"echo COMPLET'),
        ("tool_result", ""),
    ]


def test_a_call_tells_its_uncached_tokens_its_cost_and_its_time() -> None:
    call, _ = (s.fields for s in steps_of("mini-swe-agent", POND) if isinstance(s, Call))

    assert (call["call_id"], call["model"], call["stop_reason"]) == (
        "resp-a",
        "mill-chat",
        "tool_calls",
    )
    assert call["usage"].model_dump(exclude_none=True) == {
        "input": 80,
        "cache_read": 120,
        "output": 40,
        "reasoning": 5,
    }
    assert (call["cost_usd"], call["source_time"]) == (0.5, "1775798524.5559018")


# All of them


@pytest.mark.parametrize(("name", "path"), FILES, ids=[path.name for _, path in FILES])
def test_whatever_is_wrong_with_a_field_every_entry_ends(
    name: str, path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.json"
    for mutant in list(mutants(json.loads(path.read_text())))[::9]:
        file.write_text(json.dumps(mutant))
        FORMATS[name].recognises(Source(file))
        steps = steps_of(name, file)
        ends = [s.outcome for s in steps if isinstance(s, EntryRead)]
        problems = [s for s in steps if isinstance(s, Problem)]
        assert isinstance(steps[-1], EntryRead)
        assert len(problems) >= ends.count("error")


def test_whatever_is_wrong_with_an_event_the_others_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "conversation"
    copytree(CONVERSATION, folder)
    whole = len(kinds_of(steps_of("openhands-v1", folder)))
    file = sorted((folder / "events").iterdir())[9]
    good: dict[str, Any] = json.loads(file.read_text())

    steps: list[Step] = []
    for mutant in mutants(good):
        file.write_text(json.dumps(mutant))
        steps = steps_of("openhands-v1", folder)
        assert isinstance(steps[-1], EntryRead)
        assert len(kinds_of(steps)) >= whole - 3

    skipped = {s.type for s in steps if isinstance(s, Skipped)}
    assert skipped == {"LLMCompletionLogEvent", "TokenEvent"}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_cutbank_recorded_itself_comes_back_with_its_pairs(
    store: SessionStore, name: str, tmp_path: Path
) -> None:
    session = store.session("talk")
    talk(session)

    again = back(store, written(session, name, tmp_path))

    def plain(told: Said) -> Said:
        # What was said at once stays together; what a model thought may stand before its words.
        return [one for one in paired(told) if one[0] != "thinking"]

    assert plain(said(again)) == plain(said(session))
    assert verify(store).ok


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("view", [False, True], ids=["log", "view"])
def test_a_compaction_comes_back_as_a_summary_and_nobodys_words(
    store: SessionStore, name: str, tmp_path: Path, *, view: bool
) -> None:
    session = store.session("long")
    long_talk(session)
    compact(session)

    again = back(store, written(session, name, tmp_path, view=view))

    summary = again.view().summary
    texts = [summary.text] if summary else []
    texts += [text for kind, text, _ in said(again) if kind == "developer"]
    assert any("Two boats leave." in text for text in texts)
    assert not any("Two boats" in text for kind, text, _ in said(again) if kind == "user")


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_export_twice_gives_equal_bytes(
    store: SessionStore, name: str, tmp_path: Path
) -> None:
    session = store.session("talk")
    talk(session)

    for one in ("first", "second"):
        (tmp_path / one).mkdir()
    first, second = (written(session, name, tmp_path / one) for one in ("first", "second"))

    if first.is_dir():
        files = sorted(file.relative_to(first) for file in first.rglob("*.json"))
        assert files == sorted(file.relative_to(second) for file in second.rglob("*.json"))
        assert all((first / one).read_bytes() == (second / one).read_bytes() for one in files)
    else:
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("name", "path"),
    [("openhands-v1", CONVERSATION), *FILES],
    ids=[path.name for path in (CONVERSATION, *(path for _, path in FILES))],
)
def test_what_was_imported_and_went_on_here_comes_back_whole(
    store: SessionStore, name: str, path: Path, tmp_path: Path
) -> None:
    (report,) = import_path(store, path)
    session = store.session(report.sessions[0])
    talk(session)

    out = written(session, name, tmp_path)
    (again,) = import_path(store, out, namespace="back")
    second = store.session(again.sessions[0], namespace="back", create=False)

    assert (again.tool_calls, again.compactions) == (report.tool_calls + 3, report.compactions)
    assert ("tool_call", "{}", "c3") in said(second)
    assert ("assistant", "the Petrel", None) in said(second)
    assert verify(store).ok
