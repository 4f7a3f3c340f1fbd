"""What a session of Copilot CLI becomes, one rule a test."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading
from told_elsewhere import again, said
from transcripts import SAMPLES

from cutbank import SessionStore
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.copilot_cli import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Aside,
    Asked,
    Begin,
    Call,
    Compacted,
    Rewind,
    Skipped,
)
from cutbank.domain.blocks import ToolCall, ToolResult
from cutbank.domain.session_events import Usage

HARBOUR = SAMPLES / "copilot-cli" / "harbour" / "events.jsonl"

Event = dict[str, Any]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def reading(path: Path) -> Reading:
    return Reading(list(FORMAT.read(Source(path))))


def events(path: Path, *told: tuple[str, Event]) -> Path:
    """A session of these events: their types and data."""
    whole = [("session.start", {"sessionId": "s1"}), *told]
    lines = [
        {"type": kind, "data": data, "id": f"e{at}", "timestamp": "t", "parentId": None}
        for at, (kind, data) in enumerate(whole)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def asks(*ids: str) -> tuple[str, Event]:
    requests = [{"toolCallId": id, "name": "look", "arguments": {}} for id in ids]
    return "assistant.message", {"messageId": "m", "content": "", "toolRequests": requests}


def answers(id: str, content: str = "calm") -> tuple[str, Event]:
    told = {"toolCallId": id, "success": True, "result": {"content": content}}
    return "tool.execution_complete", told


def test_the_sample_becomes_these_blocks() -> None:
    found = reading(HARBOUR)

    assert [kind for kind, _ in found.said] == [
        *("user", "image", "developer"),
        *("thinking", "assistant", "tool_call", "tool_call", "tool_call"),
        *("tool_result", "tool_result", "tool_result"),
        *("user", "assistant", "user", "tool_call"),
    ]
    assert found.of(Begin)[-1].title == "Boats of today"


def test_what_the_model_got_is_what_is_kept_of_a_prompt() -> None:
    prompt = reading(HARBOUR).blocks[0]

    assert prompt.text.startswith("<current_datetime>")
    assert prompt.origin
    assert "Which boats" not in (prompt.origin.entry or "")


def test_pieces_of_one_answer_are_one_message_and_its_call_is_told_once() -> None:
    found = reading(HARBOUR)

    calls = found.of(Call)
    assert [call.fields["call_id"] for call in calls] == ["a1", "a2", "a3"]
    assert calls[0].fields["usage"] == Usage(output=40)
    assert calls[2].fields["usage"] == Usage(input=100, cache_read=400, cache_write=0, output=20)
    assert {block.message_id for block in found.blocks[3:8]} == {"a1"}


def test_arguments_stay_text_where_they_were_text() -> None:
    calls = [block for block in reading(HARBOUR).blocks if isinstance(block, ToolCall)]

    assert calls[0].arguments == '{"path":"/boats/today"}'
    assert calls[2].arguments == "*** Begin Patch\n*** End Patch"


def test_a_refusal_is_an_error_and_images_are_bytes() -> None:
    results = [block for block in reading(HARBOUR).blocks if isinstance(block, ToolResult)]

    assert [(one.text, one.is_error) for one in results] == [
        ("Petrel 09:00\nTern 11:30", False),
        ("Permission was refused", True),
        ("drawn", False),
    ]
    assert results[2].media[0].data.startswith(b"\x89PNG")


def test_a_compaction_that_succeeded_is_one_and_says_what_it_does_not_tell() -> None:
    (compacted,) = reading(HARBOUR).of(Compacted)

    assert compacted.summary == "The Petrel and the Tern leave today."
    assert (compacted.pre_tokens, compacted.post_tokens) == (9000, 700)
    assert compacted.partial == "which messages stayed in context is not told"


def test_a_rewind_takes_back_its_event_and_all_after() -> None:
    found = reading(HARBOUR)

    assert len(found.of(Rewind)) == 1
    assert "and tomorrow?" not in found.live
    assert "None." not in found.live
    assert found.live[-2] == "and the day after?"


def test_the_system_prompt_and_the_model_are_asked_for() -> None:
    asked = reading(HARBOUR).of(Asked)

    assert [step.settings for step in asked if step.settings] == [
        {"model": "acme-1"},
        {"model": "acme-2"},
    ]
    (prompt,) = [step.system_prompt for step in asked if step.system_prompt]
    assert prompt == "You look after a harbour, and after all of its boats."


def test_arguments_and_system_prompts_that_come_again_are_kept_once() -> None:
    asides = "".join(step.raw for step in reading(HARBOUR).of(Aside))

    assert asides.count("You look after a harbour") == 1
    assert "/boats/today" not in asides


def test_what_is_shown_only_is_skipped_with_the_reason() -> None:
    assert {step.type for step in reading(HARBOUR).of(Skipped)} == {
        *("session.warning", "hook.start", "hook.end"),
        *("permission.requested", "permission.completed"),
    }


def test_a_sub_agents_events_are_no_words_of_the_session() -> None:
    found = reading(HARBOUR)

    assert all(text != "inside a sub-agent" for _, text in found.said)
    assert any("inside a sub-agent" in step.raw for step in found.of(Aside))


def test_a_result_that_answers_nothing_is_a_problem(tmp_path: Path) -> None:
    found = reading(events(tmp_path / "a.jsonl", answers("c9")))

    assert found.reasons == ["data.toolCallId: c9 answers no open call"]
    assert found.outcomes == ["imported", "error"]


def test_an_event_comes_once_and_another_one_with_its_id_is_a_problem(tmp_path: Path) -> None:
    path = events(tmp_path / "a.jsonl", ("user.message", {"content": "go"}))
    last = path.read_text().splitlines()[-1]
    path.write_text(path.read_text() + last + "\n" + last.replace("go", "stop") + "\n")

    found = reading(path)

    assert found.said == [("user", "go")]
    assert found.outcomes == ["imported", "imported", "skipped", "error"]


def test_calls_of_one_id_are_told_apart_while_they_wait(
    store: SessionStore, tmp_path: Path
) -> None:
    path = events(tmp_path / "a.jsonl", asks("c1", "c1"), asks("c1"), answers("c1"))

    imported, report = again(store, path)

    assert report.errors == []
    assert len({call for kind, _, call in said(imported) if kind == "tool_call"}) == 3


def test_a_file_that_grew_adds_what_is_new(store: SessionStore, tmp_path: Path) -> None:
    path = events(tmp_path / "a.jsonl", ("user.message", {"content": "go"}), asks("c1"))
    import_path_of(store, path)
    events(path, ("user.message", {"content": "go"}), asks("c1"), answers("c1"))

    report = import_path_of(store, path)

    assert report.added == 1
    assert said(store.session("s1", create=False))[-1] == ("tool_result", "calm", "c1")


def test_a_file_without_a_start_is_known_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "0b0a"
    folder.mkdir()
    path = events(folder / "events.jsonl", ("user.message", {"content": "go"}))
    path.write_text(path.read_text().split("\n", 1)[1])

    assert FORMAT.recognises(Source(path))
    assert reading(path).of(Begin) == [Begin("0b0a")]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (("user.message", {"content": 7}), "data.content: expected text, got a whole number"),
        (("assistant.message", {"toolRequests": [7]}), "data.toolRequests[0]: expected an object"),
        (asks(""), "data.toolRequests[0].toolCallId: expected an id, but it is empty"),
        (("tool.execution_complete", {}), "data.toolCallId: expected text, but it is missing"),
    ],
)
def test_an_event_that_is_wrong_says_why_and_the_rest_is_read(
    tmp_path: Path, event: tuple[str, Event], reason: str
) -> None:
    found = reading(events(tmp_path / "a.jsonl", event, ("user.message", {"content": "on"})))

    assert found.reasons == [reason]
    assert found.said == [("user", "on")]


def import_path_of(store: SessionStore, path: Path) -> Any:
    (report,) = import_path(store, path)
    return report
