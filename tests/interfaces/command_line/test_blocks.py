"""What there is can be listed, shown, recalled and searched; blocks can be added and taken back."""

import io
import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cutbank import Block, Usage
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.projections.rendering.catalog import RENDERERS

from .conftest import Refusals, Run, act_as_terminal, answered_wrongly


def test_sessions_say_how_long_they_are_and_what_is_open(run: Run, talk: Path) -> None:
    (session,) = run("sessions", "--json").json
    run("append", "other", "hi", "--namespace", "elsewhere")

    known = {"session": "talk", "namespace": "default", "turn": 2, "blocks": 8, "position": 11}
    known |= {"open_calls": 1, "source": "claude-code", "title": "About a file"}
    assert session["tokens"] > 0
    assert session | known | {"lineages": [], "closed": False} == session
    assert "About a file" in run("sessions").out
    named = run("sessions", "--namespace", "elsewhere", "--json").json
    assert [one["session"] for one in named] == ["other"]
    assert len(run("sessions", "--json").json) == 2
    assert "namespace" in run("sessions").out


def test_a_list_of_sessions_fits_80_columns_and_says_what_each_is_about(
    run: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = Usage(input=1_000_000, output=0)
    with open_store(address) as store:
        for number in range(3):
            key = f"{number}62a51f0-0000-4000-8000-000000000001"
            session = store.session(key, project="/home/ada/a-project-of-some-length")
            session.append(Block.user(f"{number}. Why is the river brown, and since when is it?"))
            model = "claude-haiku-4-5" if number else "house-model-1"
            session.record_call(session.view(), call_id="1", model=model, usage=usage)
        store.session("note", title="Not sent to a model").append(Block.note("x"))
    act_as_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")

    lines = run("sessions", "--sort", "cost").out.splitlines()
    few = run("sessions", "--project", "A-Project", "--limit", "2").out.splitlines()

    assert (len(lines), len(few)) == (5, 3)
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["when", "id", "project", "title", "model", "full", "cost"]
    assert "  162a  " in lines[1] + lines[2]
    assert lines[1].endswith("  $1.00")
    assert sum(line.endswith("unknown") for line in lines) == 1
    assert run("sessions", "--since", "2999-01-01").out == "None of 4 sessions fits.\n"


def test_show_marks_what_became_of_each_block(run: Run, talk: Path) -> None:
    run("retract", "talk", "7")
    run("pin", "talk", "3")

    shown = run("show", "talk").out
    brief = run("show", "talk", "--brief").out.splitlines()
    part = run("show", "talk", "--from", "5", "--to", "last-1", "--json").json["log"]

    assert "#3 user, 5 tokens  [pinned from the next boundary on]" in shown
    assert "#7 assistant, 5 tokens  [retracted]" in shown
    assert "#8 note, 5 tokens  [never sent]" in shown
    assert "    print('sandstone')" in shown
    assert "\nturn 2\n" in shown
    assert re.search(r"#11 tool_call read \(c2\), .*\[open\]", shown)
    assert [one["position"] for one in part] == [5, 6, 7, 8, 10]
    (line,) = [line for line in brief if line.startswith("#6 ")]
    assert "sandstone" in line


def test_show_marks_what_a_summary_replaces(run: Run, long_talk: Path) -> None:
    run("hide", "long", "6")
    run("compact", "long", "--set", "keep_tokens=1000")

    log = {one["position"]: one for one in run("show", "long", "--json").json["log"]}
    shown = run("show", "long").out

    fates = [log[at]["fate"] for at in (3, 4, 6, max(log))]
    assert fates == ["pinned", "summarised", "hidden", "visible"]
    for mark in ("[summarized]", "[hidden]", "estimated on main, compaction 1"):
        assert mark in shown


def test_show_writes_blocks_as_append_reads_them(run: Run, talk: Path, tmp_path: Path) -> None:
    log = run("show", "talk", "--json").json["log"]
    blocks = tmp_path / "blocks.json"
    blocks.write_text(json.dumps([one["block"] for one in log]), encoding="utf-8")

    assert run("append", "copy", "--blocks", blocks).code == 0

    copied = run("show", "copy", "--json").json["log"]
    assert [one["block"] for one in copied] == [one["block"] for one in log]


def test_a_view_is_for_people_and_for_programs_in_every_format(run: Run, talk: Path) -> None:
    shown = run("view", "talk").out
    documents = {form: run("view", "talk", "--as", form).json for form in RENDERERS}

    neutral = documents.pop("neutral")
    assert run("view", "talk", "--json").json == neutral
    assert f"fingerprint {neutral['fingerprint']}" in shown
    assert "It prints sandstone." in shown
    assert "Not sent to a model." not in shown
    kinds = [message["kind"] for message in neutral["messages"]]
    assert (neutral["format"], kinds[:3]) == ("neutral", ["user", "thinking", "tool_call"])
    for form, document in documents.items():
        body = document["body"]
        assert document["format"] == form
        assert document["messages"]
        assert document["messages"] == body.get("messages", body.get("input"))


def test_recall_gives_back_what_left_and_the_view_names_its_boundary(
    run: Run, long_talk: Path
) -> None:
    before = run("recall", "long", "3", "--json").json
    outcome = run("compact", "long", "--set", "keep_tokens=1000", "--json").json

    after = run("recall", "long", "#3", "--json").json
    document = run("view", "long", "--json").json

    assert after == before
    assert after["recalled"][0]["text"].startswith("Question 0")
    assert "Question 0" in run("recall", "long", "3").out
    assert document["boundary"] == outcome["boundary"]
    assert document["tokens"] == outcome["post_tokens"]
    assert document["messages"][0]["kind"] == "summary"
    assert "replaces #" in run("view", "long").out


def test_recall_takes_ranges_and_searches_in_them(run: Run, talk: Path) -> None:
    found = run("recall", "talk", "--search", "SANDSTONE", "--json").json["recalled"]
    within = run("recall", "talk", "3-6", "--search", "sandstone", "--json").json["recalled"]
    nothing = run("recall", "talk", "--search", "basalt", "--json")

    assert [one["handle"] for one in found] == ["#6", "#7"]
    assert [one["handle"] for one in within] == ["#6"]
    assert "print('sandstone')" in run("recall", "talk", "--search", "sandstone").out
    assert (nothing.code, nothing.json["recalled"]) == (1, [])
    assert "basalt" in run("recall", "talk", "--search", "basalt").out


def test_recall_can_give_the_bytes_alone(
    run: Run, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", taken)

    run("recall", "talk", "6", "--raw")

    assert isinstance(taken.buffer, io.BytesIO)
    assert taken.buffer.getvalue() == b"print('sandstone')\n" * 3


def test_search_shows_where_words_are(run: Run, talk: Path) -> None:
    answer = run("search", "sandstone")
    run("retract", "talk", "7")
    (found, taken_back) = run("search", "sandstone", "--json").json["found"]
    nothing, part = run("search", "not basalt"), run("search", "sandst")

    assert "talk #6 tool_result, turn 1" in answer.out
    assert "print('«sandstone»')" in answer.out
    assert "2 blocks; `cutbank recall talk" in answer.out
    assert (found["session"], found["kind"], found["turn"]) == ("talk", "tool_result", 1)
    assert (found["handle"], found["position"], taken_back["handle"]) == ("#6", 6, "#7")
    start, end = found["marks"][0]
    assert found["snippet"][start:end] == "sandstone"
    assert (nothing.code, nothing.out) == (1, "No block contains 'not basalt'.\n")
    assert part.out == "No block contains 'sandst'. 'sandst*' finds longer words.\n"


def test_an_index_of_another_version_is_rebuilt_and_a_person_is_told(run: Run, talk: Path) -> None:
    said = run("rebuild", "--json").json
    file = Path(said["read_models"])
    assert (said["sessions"], said["blocks"], said["events"], said["position"]) == (1, 8, 11, 11)
    assert said["bytes"] == file.stat().st_size
    assert "rebuilt from 11 events: 1 session, 8 blocks" in run("rebuild").out
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE format SET version = 99")

    answer = run("search", "sandstone", "--json")

    assert len(answer.json["found"]) == 2
    assert "was of another version" in answer.json["made_anew"]
    assert "was of another version, and is rebuilt" in answer.err
    assert run("search", "sandstone").err == ""


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
    body: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant"}
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
    other = run("append", "new", "Good bye.", "--key", "k", "--json")
    stale = run("append", "new", "Hello.", "--expect", "2", "--json")

    assert (other.code, "the key 'k' was used" in other.json["error"]) == (1, True)
    assert again == first | {"repeated": True}
    assert (stale.code, "not #2" in stale.json["error"]) == (1, True)
    assert run("sessions", "--json").json[0]["blocks"] == 1
    assert run("append", "new", "Hello.", "--expect", "3").code == 0


def test_pins_are_named_by_handle_and_taken_back_and_need_a_block_that_stands(
    run: Run, talk: Path
) -> None:
    def pending() -> list[str | None]:
        return [one["pending"] for one in run("show", "talk", "--json").json["log"][:4]]

    assert run("pin", "talk", "3", "5-6", "--json").json["handles"] == [[3, 3], [5, 6]]
    assert pending() == ["pinned", None, "pinned", "pinned"]
    run("unpin", "talk", "3-6")
    assert pending() == [None] * 4
    gone = run("retract", "talk", "5", "--json").json["handles"]
    assert gone == [[5, 6]], "a result goes with its call"
    wrong: Refusals = [([verb, "talk", "5"], "retracted") for verb in ("pin", "unpin", "hide")]
    assert not answered_wrongly(run, wrong)


def test_a_fork_shares_its_history_and_goes_its_own_way(run: Run, talk: Path) -> None:
    fork = run("fork", "talk", "branch", "--at", "7", "--json").json

    assert (fork["session"], fork["forked_from"], fork["at"]) == ("branch", "talk", 7)
    assert run("recall", "branch", "6", "--json").json["recalled"][0]["kind"] == "tool_result"
    assert "Now b.py." not in run("view", "branch").out
    assert run("fork", "talk", "talk").code == 1


def test_blocks_are_listed_in_order_or_from_the_end_whatever_a_view_shows(
    run: Run, talk: Path
) -> None:
    run("retract", "talk", "7")
    recalled = run("recall", "talk", "last", "--json").json["recalled"]

    listed = run("blocks", "talk", "--json").json["blocks"]
    positions = [one["position"] for one in listed]
    asked = {
        ("--last", "2"): positions[-2:],
        ("--last", "2", "--newest-first"): positions[:-3:-1],
        ("--after", "3", "--before", "9"): [at for at in positions if 3 < at < 9],
        ("--retracted",): sorted([*positions, 7]),
        ("--kind", "user", "--kind", "tool_call"): [
            one["position"] for one in listed if one["kind"] in {"user", "tool_call"}
        ],
    }
    found = {
        words: [one["position"] for one in run("blocks", "talk", *words, "--json").json["blocks"]]
        for words in asked
    }

    assert 7 not in positions
    assert listed[-1:] == recalled
    assert found == asked
    shown = run("blocks", "talk", "--last", "1").out.splitlines()
    assert shown[0].startswith(f"#{positions[-1]} ")
    assert shown[-1] == "1 block"


def test_all_blocks_are_taken_back_at_once(run: Run, talk: Path) -> None:
    position = run("show", "talk", "--json").json["position"]

    answer = run("retract", "talk", "--all", "--json").json

    assert answer["handles"] == [[1, position]]
    assert run("blocks", "talk", "--json").json["blocks"] == []
    assert len(run("blocks", "talk", "--retracted", "--json").json["blocks"]) == 8


def test_records_are_put_listed_shown_and_removed(
    run: Run, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state.json").write_text('{"step": 1, "name": "\\u00e9"}')
    (tmp_path / "image").write_bytes(b"\x00\xff")
    state = str(tmp_path / "state.json")

    first = run("records", "talk", "state", "--put", state, "--key", "1", "--json").json
    again = run("records", "talk", "state", "--put", state, "--key", "1", "--json").json
    image = run("records", "talk", "image", "--put", str(tmp_path / "image"), "--bytes").out
    words = ("records", "talk", "state", "--put", state, "--expect")
    second = run(*words, str(first["position"]), "--json").json

    assert (
        again
        == first
        == {
            "session": "talk",
            "namespace": "default",
            "name": "state",
            "position": second["position"] - 2,
        }
    )
    assert image == f"image is at #{second['position'] - 1}\n"
    stale = run(*words, str(first["position"]))
    assert stale.code == 1
    assert f"'state' is at #{second['position']}, not at" in stale.err
    found = run("records", "talk", "state", "--json").json["record"]
    assert found["value"] == {"step": 1, "name": "\u00e9"}
    assert run("records", "talk", "state").out == '{"step": 1, "name": "\u00e9"}\n'
    listed = run("records", "talk", "--json").json["records"]
    assert [one.get("base64") for one in listed] == ["AP8=", None]
    assert len(run("records", "talk", "--prefix", "st", "--json").json["records"]) == 1
    assert "[2 bytes]" in run("records", "talk").out
    assert run("records", "talk", "state", "--remove").code == 0
    assert run("records", "talk", "state", "--remove").code == 1
    assert run("records", "talk", "state").code == 1
    history = run("records", "talk", "state", "--history", "--json").json["records"]
    assert [one["removed"] for one in history] == [True, False, False]
    assert "[removed]" in run("records", "talk", "state", "--history").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1, 2]")))
    run("records", "new", "piped", "--put", "-")
    with open_store(str(talk)) as store:
        piped = store.session("new", create=False).records.get("piped")
    assert piped is not None
    assert piped.value == [1, 2]
