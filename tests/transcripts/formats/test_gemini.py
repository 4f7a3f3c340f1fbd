"""What sessions of Gemini CLI and histories of the Gemini API become, one rule a test."""

import json
from pathlib import Path
from typing import Any

from claude_code_talk import Reading
from told_elsewhere import said

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.gemini import gemini_history
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart

Item = dict[str, Any]


def recorded(path: Path, *messages: Any) -> Path:
    whole = {"sessionId": "s1", "projectHash": "p", "startTime": "t", "messages": messages}
    path.write_text(json.dumps(whole))
    return path


def contents(path: Path, *told: Any) -> Reading:
    path.write_text(json.dumps(told))
    return Reading(list(gemini_history.read(TranscriptSource(path))))


def user(text: str) -> Item:
    return {"role": "user", "parts": [{"text": text}]}


def model(*parts: Item) -> Item:
    return {"role": "model", "parts": list(parts)}


# Sessions of Gemini CLI


def test_a_message_that_grew_adds_what_is_new_and_goes_out_as_it_is_now(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    call = {"id": "c1", "name": "look", "args": {}, "status": "executing"}
    message = {"id": "g1", "type": "gemini", "content": "I look", "toolCalls": [call]}
    import_path_of(store, recorded(path, message))
    response = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "calm"}}}
    done = call | {"status": "success", "result": [response]}
    second = call | {"id": "c2"}
    grown = message | {"toolCalls": [done, second], "tokens": {"input": 9, "output": 1}}
    import_path_of(store, recorded(path, grown))

    session = store.session("s1", create=False)
    assert [one[1] for one in said(session)] == ["I look", "{}", "calm", "{}"]
    export(session, "gemini-cli", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_bytes()) == json.loads(path.read_bytes())


# Histories


def test_a_history_is_known_by_how_it_begins(tmp_path: Path) -> None:
    begins = [user("go"), model({"text": "yes"})]

    first = contents(tmp_path / "a.json", *begins).of(SessionStart)
    grown = contents(tmp_path / "b.json", *begins, user("on")).of(SessionStart)
    other = contents(tmp_path / "c.json", user("go"), model({"text": "no"})).of(SessionStart)

    assert first == grown != other


def import_path_of(store: SessionStore, path: Path) -> None:
    (report,) = import_path(store, path)
    assert report.errors == []
