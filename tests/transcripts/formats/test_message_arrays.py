"""What providers are sent as arrays of messages becomes sessions, and goes out as it came."""

import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import import_file

from cutbank import SessionStore, StoredSession, export
from cutbank.adapters.transcripts.formats.catalog import recognize_format
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.projections.rendering import exchanges


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}
ITEMS = [
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "seen"},
]
BODIES: list[tuple[str, list[dict[str, Any]], str | None]] = [
    (
        "openai-chat",
        [
            assistant(None, tool_calls=[CALL]),
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        ],
        None,
    ),
    ("anthropic", [assistant([USE]), user([RESULT])], "system"),
    ("openai-responses", ITEMS, "instructions"),
]
"""Format, a call and its result, and the field of a system prompt if it is no message."""
SAID = [("user", "go"), ("tool_call", "{}"), ("tool_result", "seen"), ("assistant", "done")]


def body_of(pair: list[dict[str, Any]], field: str | None, count: int | None = None) -> Any:
    messages = [user("go"), *pair, assistant("done")][:count]
    if field is None:
        return [{"role": "system", "content": "old"}, *messages]
    return {field: "old", "input" if field == "instructions" else "messages": messages}


def written(path: Path, body: Any) -> Path:
    path.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    return path


def taken_in(store: SessionStore, path: Path) -> tuple[StoredSession, int]:
    report = import_file(store, path)
    assert report.errors == []
    return store.session(*report.sessions, create=False), report.added


@pytest.mark.parametrize("note", ["[abandoned: it was stopped]", exchanges.NO_RESULT_TEXT])
def test_what_a_view_says_in_place_of_a_missing_result_is_no_result(
    store: SessionStore, tmp_path: Path, note: str
) -> None:
    pair = [assistant(None, tool_calls=[CALL]), {**BODIES[0][1][1], "content": note}]

    session, _ = taken_in(store, written(tmp_path / "a.json", body_of(pair, None)))

    assert [entry.block.kind for entry in session.view().entries[:2]] == ["user", "tool_call"]
    assert all(note not in entry.text for entry in session.view().entries)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([user("go"), assistant("done")], "openai-chat"),
        ({"messages": [user("go")]}, "openai-chat"),
        ({"system": "be brief", "messages": [user("go")]}, "anthropic"),
        ({"model": "m", "input": "go"}, "openai-responses"),
        ([{"type": "reasoning", "summary": []}], "openai-responses"),
        ([{"task_id": 1, "trial": 0, "traj": [user("go")]}], "openai-messages-tau"),
        ([], None),
        ([{"role": "user", "parts": [{"text": "go"}]}], "gemini-history"),
        ({"messages": []}, None),
        ({"messages": [{"id": "1", "type": "user", "content": "go"}]}, None),
        ({"info": {}, "messages": [user("go")]}, None),
        ({"trajectory_format": "mini-swe-agent-1.1", "messages": [user("go")]}, "mini-swe-agent"),
        ({"model": "m", "input": [1, 2]}, None),
        ([{"role": "user"}], None),
        ([[user("go")]], None),
    ],
)
def test_whose_messages_they_are_is_told_by_what_is_in_them(
    value: Any, name: str | None, tmp_path: Path
) -> None:
    found = recognize_format(TranscriptSource(written(tmp_path / "a.json", value)))

    assert (found.name if found else None) == name


@pytest.mark.parametrize(("name", "pair", "field"), BODIES)
def test_an_array_that_grew_adds_what_is_new_and_goes_out_with_a_new_system_prompt(
    name: str, pair: list[Any], field: str | None, store: SessionStore, tmp_path: Path
) -> None:
    for count in (1, 2, 3, 4):
        path = written(tmp_path / "a.json", body_of(pair, field, count))
        session, added = taken_in(store, path)
        assert added > 0
    assert taken_in(store, path)[1] == 0
    said = [(entry.block.kind.value, entry.text) for entry in session.view().entries]
    assert (said, session.view().system_prompt) == (SAID, "old")
    session.configure(system_prompt="new")

    export(session, name, tmp_path / "out.json")

    assert taken_in(store, tmp_path / "out.json")[0].view().system_prompt == "new"
    assert b"old" not in (tmp_path / "out.json").read_bytes()


def test_each_of_two_compactions_in_a_row_goes_out_again(
    store: SessionStore, tmp_path: Path
) -> None:
    said = [user("go"), assistant("gone")]
    said += [
        assistant([{"type": "compaction", "content": summary}])
        for summary in ("the first summary", "the second summary")
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(said))
    report = import_file(store, path)
    session = store.session(report.sessions[0], create=False)

    export(session, "opencode", tmp_path / "b.json")

    assert (report.format, report.compactions) == ("anthropic", 2)
    assert "the first summary" in (tmp_path / "b.json").read_text()
    assert "the second summary" in (tmp_path / "b.json").read_text()
