"""What is written for pi and oh-my-pi of sessions that came from elsewhere, or went on here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from codex_written import CutAt
from pi_talk import SESSION, Talk, imported, shown, tool_call
from told_elsewhere import talk

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult, export, verify
from cutbank.domain.blocks import Native

BOTH = pytest.mark.parametrize("name", ["pi", "oh-my-pi"])


@pytest.fixture
def elsewhere(tmp_path: Path) -> Any:
    with cutbank.open(tmp_path / "elsewhere.db") as store:
        yield store


def entries_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def assert_legal(path: Path) -> None:
    """Ids and parents, pairs, and the fields that pi reads without asking."""
    header, *entries = [one for one in entries_of(path) if one["type"] != "title"]
    assert header["type"] == "session"
    assert header["version"] == 3
    assert {"id", "timestamp", "cwd"} <= header.keys()
    ids: set[str] = set()
    calls: set[str] = set()
    for entry in entries:
        assert entry["parentId"] is None or entry["parentId"] in ids
        assert entry["id"] not in ids
        assert re.fullmatch("[0-9a-f]{8}", entry["id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["timestamp"])
        ids.add(entry["id"])
        message = entry.get("message", {})
        match message:
            case {"role": "assistant", "content": list(items)}:
                fields = {"api", "provider", "model", "usage", "stopReason", "timestamp"}
                assert fields <= message.keys()
                assert {"input", "output", "cacheRead", "cacheWrite"} <= message["usage"].keys()
                calls |= {item["id"] for item in items if item["type"] == "toolCall"}
            case {"role": "toolResult", "toolCallId": call}:
                assert call in calls
                assert {"toolName", "content", "isError", "timestamp"} <= message.keys()
            case {"role": "user"}:
                assert isinstance(message["content"], list)
            case _:
                assert entry["type"] in ("custom_message", "compaction", "session_info")


@BOTH
@pytest.mark.parametrize("view", [False, True])
def test_a_session_of_our_own_is_legal_and_comes_back_with_its_compaction(
    session: StoredSession, elsewhere: SessionStore, tmp_path: Path, name: str, view: bool
) -> None:
    talk(session)
    session.append(ToolResult(tool_call_id="c3", content="done"))
    for number in range(6):
        session.append(Block.user(f"{number} " * 300))
        session.append(Block.assistant(f"{number}? " * 300))
    cut = session.view().entries[-4].position
    assert session.compact(CutAt(cut)).compacted
    session.append(Block.user("and on"), ToolCall(tool_call_id="c4", name="wait"))

    report = export(session, name, tmp_path / "a.jsonl", view=view)
    again = imported(elsewhere, tmp_path / "a.jsonl")

    assert report.lost == {}
    assert again.compactions == 1
    assert_legal(tmp_path / "a.jsonl")
    (back,) = (elsewhere.session(key, create=False) for key in again.sessions)
    assert shown(back.view()) == shown(session.view())
    assert list(back.log.state.open_calls) == ["c4"]
    assert verify(elsewhere).is_ok


def test_the_line_of_a_title_always_has_one_length(session: StoredSession, tmp_path: Path) -> None:
    session.append(Block.user("hi"))
    lengths = set()
    for number, title in enumerate(["a", "ä" * 70, "long " * 100]):
        session.configure(title=title)
        export(session, "oh-my-pi", tmp_path / f"{number}")
        lengths.add(len((tmp_path / f"{number}").read_bytes().splitlines(keepends=True)[0]))

    assert lengths == {256}


@pytest.mark.parametrize(
    ("api", "native"),
    [
        ("anthropic-messages", '{"type":"thinking","thinking":"hm","signature":"c2ln"}'),
        ("anthropic-messages", '{"type":"redacted_thinking","data":"b3BhcXVl"}'),
        ("openai-responses", '{"type": "reasoning", "id": "rs_1"}'),
    ],
)
def test_reasoning_goes_to_the_interface_that_it_came_from(
    api: str, native: str, session: StoredSession, elsewhere: SessionStore, tmp_path: Path
) -> None:
    provider = api.removesuffix("-messages")
    text = "hm" if '"hm"' in native else ""
    thought = Block.thinking(text, native=Native(provider=provider, item=native))
    session.append(Block.user("hi"))
    session.append(thought, Block.assistant("hi"))

    export(session, "pi", tmp_path / "a.jsonl")
    (key,) = imported(elsewhere, tmp_path / "a.jsonl").sessions

    came = elsewhere.session(key).view().entries[1].block
    assert isinstance(came, Block)
    assert (came.text, came.native) == (thought.text, thought.native)
    assert entries_of(tmp_path / "a.jsonl")[2]["message"]["api"] == api


def gone_on(session: StoredSession) -> None:
    session.append(Block.user("more " * 300))
    session.append(ToolCall(tool_call_id="new", name="read", arguments={}))
    session.append(ToolResult(tool_call_id="new", content="found"))
    session.append(Block.assistant("done " * 300))
    session.compact(CutAt(session.position))
    session.append(Block.user("end"))


def test_a_session_that_went_on_here_is_written_with_what_came_since(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("one")
    old = told.says("two")
    told.user("three")
    told.user("beside", old)
    path = told.write(tmp_path / "a.jsonl")
    home, branch = (store.session(key) for key in imported(store, path).sessions)
    gone_on(home)
    export(home, "pi", tmp_path / "b.jsonl")
    branch.append(Block.assistant("beside it"))

    report = export(home, "pi", tmp_path / "c.jsonl")
    again = imported(elsewhere, tmp_path / "c.jsonl")

    assert report.lost == {"branches": 1}  # what was added to it
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()
    assert entries_of(tmp_path / "c.jsonl")[: len(told.entries)] == told.entries
    assert_legal(tmp_path / "c.jsonl")
    views = [shown(elsewhere.session(key, create=False).view()) for key in again.sessions]
    assert views == [shown(home.view()), ["one", "two", "beside"]]


def test_a_list_that_went_on_here_stays_a_list(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    told = Talk(version=None)
    told.user("one")
    told.says("two")
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    gone_on(home)

    export(home, "pi", tmp_path / "b.jsonl")
    (key,) = imported(elsewhere, tmp_path / "b.jsonl").sessions

    written = entries_of(tmp_path / "b.jsonl")
    assert all("parentId" not in entry for entry in written)
    assert written[: len(told.entries)] == told.entries
    assert shown(elsewhere.session(key).view()) == shown(home.view())


def test_what_was_taken_back_is_left_out_and_what_followed_it_follows_what_was_before_it(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("one")
    told.says("two")
    told.user("wrong")
    told.says("three")
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    (wrong,) = home.blocks(last=1, kinds=["user"])
    home.retract(wrong.position)
    home.append(Block.user("four"))

    export(home, "pi", tmp_path / "b.jsonl")
    (key,) = imported(elsewhere, tmp_path / "b.jsonl").sessions

    said = ["one", "two", "three", "four"]
    assert shown(elsewhere.session(key).view()) == shown(home.view()) == said
    assert "wrong" not in (tmp_path / "b.jsonl").read_text()


def test_a_result_stays_with_a_call_that_its_message_keeps(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("look")
    told.says("I look.", tool_call("c1"))
    told.result("c1", "nothing")
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    (made,) = home.blocks(kinds=["tool_call"])
    home.retract(made.position)

    report = export(home, "pi", tmp_path / "b.jsonl")

    assert report.lost == {"retractions within the source": 2}
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_the_report_says_that_the_file_keeps_a_summary_of_what_was_taken_back(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("wrong")
    kept = told.user("right")
    told.compacts("wrong, then right", firstKeptEntryId=kept)
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    (wrong, _) = home.blocks(kinds=["user"])
    home.retract(wrong.position)

    report = export(home, "pi", tmp_path / "b.jsonl")

    assert home.view().summary is None
    assert report.lost == {"retractions that undo summaries of the source": 1}
    assert '"wrong, then right"' in (tmp_path / "b.jsonl").read_text()
    assert '"wrong"' not in (tmp_path / "b.jsonl").read_text()


def test_a_list_of_pi_keeps_what_was_taken_back_and_the_report_says_so(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk(version=None)
    told.user("one")
    told.user("wrong")
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    home.retract(home.position)

    report = export(home, "pi", tmp_path / "b.jsonl")

    assert report.lost == {"retractions within the source": 1}
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


@BOTH
def test_a_new_title_is_written(store: SessionStore, tmp_path: Path, name: str) -> None:
    told = Talk(title="old") if name == "oh-my-pi" else Talk()
    told.user("one")
    home = store.session(imported(store, told.write(tmp_path / "a.jsonl")).sessions[0])
    home.configure(title="new")

    export(home, name, tmp_path / "b.jsonl")

    last = entries_of(tmp_path / "b.jsonl")[-1]
    assert last.get("name", last.get("title")) == "new"


def test_what_was_added_follows_the_last_entry_though_it_has_no_block(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("go")
    told.says("gone")
    last = told.add("model_change", provider="anthropic", modelId="m-2")
    imported(store, told.write(tmp_path / "a.jsonl"))
    session = store.session(SESSION, create=False)
    session.append(Block.user("and on"))

    export(session, "pi", tmp_path / "b.jsonl")

    assert entries_of(tmp_path / "b.jsonl")[-1]["parentId"] == last
    assert imported(elsewhere, tmp_path / "b.jsonl").sessions == [SESSION]


def test_what_was_added_follows_also_what_the_agent_wrote_later(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("go")
    told.calls("c1")
    path = told.write(tmp_path / "a.jsonl")
    imported(store, path)
    session = store.session(SESSION, create=False)
    session.append(ToolResult(tool_call_id="c1", content="found"))
    told.user("on")
    imported(store, told.write(path))

    export(session, "pi", tmp_path / "b.jsonl")

    *source, answer = entries_of(tmp_path / "b.jsonl")
    assert source == told.entries
    assert (answer["parentId"], answer["message"]["toolName"]) == (told.last, "read")
