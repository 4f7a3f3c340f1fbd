"""What providers are sent as arrays of messages becomes sessions, and goes out as it came."""

import json
from pathlib import Path
from typing import Any

import pytest
from message_talk import (
    answering,
    assistant,
    calling,
    reading_in,
    returned,
    told_as,
    used,
    user,
    written,
)

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart, SourceCompaction

NAMES = ("openai-chat", "openai-responses", "anthropic", "openai-messages-tau")
CHAT = [user("go"), calling("c1"), answering("c1"), assistant("done")]
ANTHROPIC = [user("go"), used("c1"), returned("c1"), assistant("done")]
ITEMS = [
    user("go"),
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "seen"},
    assistant("done"),
]
SAID = [("user", "go"), ("tool_call", "{}"), ("tool_result", "seen"), ("assistant", "done")]
SAME = [("openai-chat", CHAT), ("anthropic", ANTHROPIC), ("openai-responses", ITEMS)]


def taken_in(store: SessionStore, path: Path) -> StoredSession:
    (report,) = import_path(store, path)
    assert report.errors == []
    (key,) = report.sessions
    return store.session(key, create=False)


def said(session: StoredSession) -> list[tuple[str, str]]:
    return [(it.block.kind.value, it.block.text) for it in session.view().entries]


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
        ([{"role": "user", "parts": [{"text": "go"}]}], None),
        ({"messages": []}, None),
        ({"messages": [{"id": "1", "type": "user", "content": "go"}]}, None),
        ({"info": {}, "messages": [user("go")]}, None),
        ({"trajectory_format": "mini-swe-agent-1.1", "messages": [user("go")]}, None),
        ({"model": "m", "input": [1, 2]}, None),
        ([{"role": "user"}], None),
        ([[user("go")]], None),
    ],
)
def test_whose_messages_they_are_is_told_by_what_is_in_them(
    value: Any, name: str | None, tmp_path: Path
) -> None:
    found = told_as(tmp_path / "a.json", value)

    assert (found if found in NAMES else None) == name  # others may know it for theirs


def test_a_compaction_item_is_a_boundary_and_partial_where_it_is_encrypted(tmp_path: Path) -> None:
    items = [user("go"), {"type": "compaction", "encrypted_content": "eA=="}, user("on")]
    blocks = [user("go"), assistant([{"type": "compaction", "content": "so far"}]), returned("x")]

    (encrypted,) = reading_in("openai-responses", tmp_path / "a", items).of(SourceCompaction)
    (told,) = reading_in("anthropic", tmp_path / "b", blocks).of(SourceCompaction)

    assert (encrypted.summary, encrypted.partial_reason) == (None, "the summary is encrypted")
    assert (told.summary, told.partial_reason) == ("so far", None)


def test_each_line_is_a_session_and_a_line_that_is_none_is_a_problem(tmp_path: Path) -> None:
    body = json.dumps({"messages": [user("go"), assistant("done")]}).encode()
    other = json.dumps({"messages": [user("go on")]}).encode()
    raw = b"\n".join([body, other, b'{"messages": 1}', b"{", body])

    path = written(tmp_path / "a.jsonl", b"\n".join([body, other]))
    assert FORMATS["openai-chat"].recognizes(TranscriptSource(path))
    read = reading_in("openai-chat", path, raw)

    assert len({it.key for it in read.steps if isinstance(it, SessionStart)}) == 3
    assert read.outcomes.count("error") == 2
    assert [text for kind, text in read.said if kind == "user"] == ["go", "go on", "go"]


def test_two_files_of_one_name_are_two_sessions(store: SessionStore, tmp_path: Path) -> None:
    for folder, words in (("a", "go"), ("b", "stop")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "chat.json", [user(words), assistant("done")])

    reports = list(import_path(store, tmp_path))

    assert len({key for report in reports for key in report.sessions}) == 2


@pytest.mark.parametrize(("name", "messages"), SAME)
def test_of_an_array_that_has_grown_only_the_new_messages_are_added(
    name: str, messages: Any, store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    added = []
    for count in (1, 2, 3, 4, 4):
        written(
            path,
            {"model": "m", "messages": messages[:count]}
            if name != "openai-responses"
            else messages[:count],
        )
        if name == "anthropic" and count == 1:
            written(path, {"system": "be brief", "messages": messages[:1]})
        (report,) = import_path(store, path)
        added.append(report.added)
        (key,) = report.sessions

    assert said(store.session(key, create=False)) == SAID or name == "anthropic"
    assert added[-1] == 0


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_a_system_prompt_that_was_set_anew_goes_out(
    name: str, store: SessionStore, tmp_path: Path
) -> None:
    body = {"anthropic": {"system": "old", "messages": ANTHROPIC}}.get(
        name,
        {"instructions": "old", "input": ITEMS}
        if name == "openai-responses"
        else [{"role": "system", "content": "old"}, *CHAT],
    )
    session = taken_in(store, written(tmp_path / "a.json", body))
    assert session.view().system_prompt == "old"
    session.configure(system_prompt="new")

    export(session, name, tmp_path / "out.json")

    assert taken_in(store, tmp_path / "out.json").view().system_prompt == "new"
    assert b"old" not in (tmp_path / "out.json").read_bytes()
