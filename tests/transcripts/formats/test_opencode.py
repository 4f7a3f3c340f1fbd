"""What an export of opencode becomes, one rule a test."""

import json
from pathlib import Path
from typing import Any

from told_elsewhere import said

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path

Item = dict[str, Any]


def exported(path: Path, *messages: Item) -> Path:
    """An export of these messages."""
    info = {"id": "ses_1", "directory": "/", "title": "t", "time": {"created": 1}}
    path.write_text(json.dumps({"info": info, "messages": messages}))
    return path


def message(id: str, role: str, *parts: Item, **info: Any) -> Item:
    named = [{"id": f"{id}-{number}"} | part for number, part in enumerate(parts)]
    return {"info": {"id": id, "role": role} | info, "parts": named}


def text(text: str, **more: Any) -> Item:
    return {"type": "text", "text": text} | more


def tool(status: str, call: str = "c1", **state: Any) -> Item:
    whole = {"status": status, "input": {"at": "sea"}} | state
    return {"type": "tool", "tool": "look", "callID": call, "state": whole}


def test_a_call_that_waits_is_answered_when_the_export_grew(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    prompt = message("m1", "user", text("go"))
    exported(path, prompt, message("m2", "assistant", tool("running")))
    (first,) = import_path(store, path)
    done = tool("completed", output="calm", title="look", metadata={"n": 1})
    grown = message("m2", "assistant", done, time={"completed": 9})
    exported(path, prompt, grown, message("m3", "assistant", text("it is calm")))

    (second,) = import_path(store, path)

    session = store.session("ses_1", create=False)
    assert (first.added, second.errors) == (5, [])
    assert [one[1] for one in said(session)] == ["go", '{"at":"sea"}', "calm", "it is calm"]
    export(session, "opencode", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_bytes()) == json.loads(path.read_bytes())
