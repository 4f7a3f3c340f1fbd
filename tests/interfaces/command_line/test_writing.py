"""Blocks can be added, pinned, hidden and taken back, and a session forked."""

import io
import json
import sys
from pathlib import Path

import pytest

from .conftest import Refusals, Run, answered_wrongly


def test_append_opens_a_session_and_adds_a_block_of_each_role(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("user", "assistant", "developer", "note", "thinking"):
        answer = run("append", "new", "Hello.", "--role", role, "--json")

        (block,) = run("recall", "new", "last", "--json").json["recalled"]
        assert answer.json["first"] == answer.json["last"] == block["position"]
        assert (answer.code, block["kind"], block["text"]) == (0, role, "Hello.")
    assert run("append", "new", "Hello.").out == "#9 appended to new\n"
    piped = "Zwei Zeilen\nüber Sand".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped), encoding="ascii"))
    run("append", "new", "-")
    assert run("recall", "new", "last", "--json").json["recalled"][0]["text"] == piped.decode()


def test_append_takes_a_list_of_blocks_and_a_models_response(run: Run, tmp_path: Path) -> None:
    blocks, response = tmp_path / "blocks.json", tmp_path / "response.json"
    image = {"type": "image", "mime": "image/png", "data": "iVBORw=="}
    said = [
        {"kind": "user", "text": "half a pair: \ud83d"},
        {"kind": "tool_call", "tool_call_id": "c", "name": "see", "arguments": {"a": 1}},
        {"kind": "tool_result", "tool_call_id": "c", "content": [image]},
    ]
    blocks.write_text(json.dumps(said), encoding="utf-8")
    body = {"id": "m1", "type": "message", "role": "assistant"}
    body |= {"content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]}
    body |= {"usage": {"input_tokens": 40, "output_tokens": 8}}
    response.write_text(json.dumps(body))

    added = run("append", "new", "--blocks", blocks, "--json").json
    answered = run("append", "answered", "--response", response, "--json").json

    recalled = run("recall", "new", "3-5", "--json").json["recalled"]
    assert (added["first"], added["last"], answered["first"]) == (3, 5, 2)
    assert recalled[0]["text"] == "half a pair: \ud83d"
    assert recalled[1]["block"]["arguments"] == '{"a": 1}'
    assert recalled[2]["block"]["content"] == [image]
    assert "[image image/png, 4 bytes]" in run("recall", "new", "5").out
    assert run("audit", "answered", "--call", "1", "--json").json["usage"]["input"] == 40


def test_a_repeated_key_and_a_stale_expectation_add_nothing(run: Run) -> None:
    first = run("append", "new", "Hello.", "--key", "k", "--json").json

    again = run("append", "new", "Hello.", "--key", "k", "--json").json
    stale = run("append", "new", "Hello.", "--expect", "2", "--json")

    assert again == first | {"repeated": True}
    assert "before" in run("append", "new", "Hello.", "--key", "k").out
    assert stale.code == 1
    assert "not #2" in stale.json["error"]
    assert run("sessions", "--json").json[0]["blocks"] == 1
    assert run("append", "new", "Hello.", "--expect", "3").code == 0


def test_pins_are_named_by_handle_and_taken_back(run: Run, talk: Path) -> None:
    pinned = run("pin", "talk", "3", "5-6", "--json").json

    assert pinned["handles"] == [[3, 3], [5, 6]]
    pending = [one["pending"] for one in run("show", "talk", "--json").json["log"][:4]]
    assert pending == ["pinned", None, "pinned", "pinned"]
    assert run("unpin", "talk", "3-6").code == 0
    assert not any(one["pending"] for one in run("show", "talk", "--json").json["log"])


def test_a_single_handle_must_be_a_block_that_stands(run: Run, talk: Path) -> None:
    gone = run("retract", "talk", "5", "--json").json

    assert gone["handles"] == [[5, 6]], "a result goes with its call"
    wrong: Refusals = [([verb, "talk", "5"], "retracted") for verb in ("pin", "unpin", "hide")]
    assert not answered_wrongly(run, wrong)


def test_a_fork_shares_its_history_and_goes_its_own_way(run: Run, talk: Path) -> None:
    fork = run("fork", "talk", "branch", "--at", "7", "--json").json

    run("append", "branch", "Another way.")

    assert (fork["session"], fork["forked_from"], fork["at"]) == ("branch", "talk", 7)
    assert run("recall", "branch", "6", "--json").json["recalled"][0]["kind"] == "tool_result"
    assert "Now b.py." not in run("view", "branch").out
    assert "Another way." not in run("view", "talk").out
    assert run("fork", "talk", "talk").code == 1
