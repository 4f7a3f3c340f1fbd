"""What is written for pi and oh-my-pi of sessions that came from elsewhere, or went on here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from codex_written import CutAt
from pi_talk import SESSION, Talk, imported, shown

import cutbank
from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    Text,
    ToolCall,
    ToolResult,
)
from cutbank.domain.session_events import Usage

BOTH = pytest.mark.parametrize("name", ["pi", "oh-my-pi"])
PNG = Media(type="image", mime="image/png", data=b"\x00\x01\x02")
SIGNED = '{"type":"thinking","thinking":"hm","signature":"c2ln"}'
THOUGHT = Native(provider="anthropic", item=SIGNED)
HIDDEN = Native(provider="anthropic", item='{"type":"redacted_thinking","data":"b3BhcXVl"}')
REASONED = Native(provider="openai-responses", item='{"type": "reasoning", "id": "rs_1"}')


@pytest.fixture
def elsewhere(tmp_path: Path) -> Any:
    with cutbank.open(tmp_path / "elsewhere.db") as store:
        yield store


def talked(session: StoredSession) -> StoredSession:
    session.append(Block.user("look", message_id="u-1"), picture("u-1"))
    session.append(
        Block.thinking("hm", native=THOUGHT, message_id="a-1"),
        Block.thinking("", native=HIDDEN, message_id="a-1"),
        Block.assistant("I look", message_id="a-1"),
        ToolCall(tool_call_id="c-1", name="read", arguments={"path": "x"}, message_id="a-1"),
        ToolCall(tool_call_id="c-2", name="list", arguments={}, message_id="a-1"),
    )
    usage = Usage(input=3, cache_read=20, cache_write=5, output=7, reasoning=2)
    session.record_call(
        session.view(), call_id="resp-1", model="claude-1", usage=usage, stop_reason="tool_use"
    )
    session.append(ToolResult(tool_call_id="c-2", content="", is_error=True))
    session.append(ToolResult(tool_call_id="c-1", content=(Text(text="so"), PNG)))
    session.append(Block.developer("be quick", name="reminder"))
    session.append(Block.user("and then?"))
    session.append(Block.assistant("nothing"))
    session.append(ToolCall(tool_call_id="c-3", name="read", arguments={}))
    return session


def picture(message: str) -> Block:
    return Block(kind=Kind.IMAGE, media=PNG, message_id=message)


def said(session: StoredSession) -> list[Any]:
    return [plain(entry.block) for entry in session.view().entries]


def plain(block: AnyBlock) -> Any:
    match block:
        case ToolCall():
            return ("call", block.tool_call_id, block.name, block.parse_arguments())
        case ToolResult():
            return ("result", block.tool_call_id, block.text, block.media, block.is_error)
        case _:
            return (block.kind, block.text, block.media, block.native)


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
def test_what_was_said_here_comes_back_the_same(
    session: StoredSession, elsewhere: SessionStore, tmp_path: Path, name: str
) -> None:
    talked(session)

    report = export(session, name, tmp_path / "a.jsonl")
    (key,) = imported(elsewhere, tmp_path / "a.jsonl").sessions

    assert report.lost == {}
    assert_legal(tmp_path / "a.jsonl")
    again = elsewhere.session(key, create=False)
    # A result follows the message that called for it, and a call without one stays open.
    assert sorted(map(str, said(again))) == sorted(map(str, said(session)))
    assert said(again) == said(session)
    assert list(again.log.state.open_calls) == ["c-3"]
    assert verify(elsewhere).is_ok


@BOTH
@pytest.mark.parametrize("view", [False, True])
def test_a_compaction_comes_back_as_a_boundary_and_its_summary(
    session: StoredSession, elsewhere: SessionStore, tmp_path: Path, name: str, view: bool
) -> None:
    for number in range(6):
        session.append(Block.user(f"{number} " * 300))
        session.append(Block.assistant(f"{number}? " * 300))
    outcome = session.compact(CutAt(session.view().entries[8].position))
    session.append(Block.user("and on"))

    export(session, name, tmp_path / "a.jsonl", view=view)
    report = imported(elsewhere, tmp_path / "a.jsonl")

    assert outcome.compacted
    assert report.compactions == 1
    assert_legal(tmp_path / "a.jsonl")
    again = elsewhere.session(report.sessions[0], create=False).view()
    assert shown(again) == shown(session.view())
    assert verify(elsewhere).is_ok


def test_the_line_of_a_title_always_has_one_length(session: StoredSession, tmp_path: Path) -> None:
    session.append(Block.user("hi"))
    lengths = set()
    for number, title in enumerate(["a", "ä" * 70, "long " * 100]):
        session.configure(title=title)
        export(session, "oh-my-pi", tmp_path / f"{number}")
        lengths.add(len((tmp_path / f"{number}").read_bytes().splitlines(keepends=True)[0]))

    assert lengths == {256}


def test_reasoning_goes_to_the_interface_that_it_came_from(
    session: StoredSession, elsewhere: SessionStore, tmp_path: Path
) -> None:
    session.append(Block.user("hi"))
    session.append(Block.thinking("hm", native=REASONED), Block.assistant("hi"))

    export(session, "pi", tmp_path / "a.jsonl")
    (key,) = imported(elsewhere, tmp_path / "a.jsonl").sessions

    assert said(elsewhere.session(key)) == said(session)
    assert entries_of(tmp_path / "a.jsonl")[2]["message"]["api"] == "openai-responses"


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
    talk = Talk()
    talk.user("one")
    old = talk.says("two")
    talk.user("three")
    talk.user("beside", old)
    path = talk.write(tmp_path / "a.jsonl")
    home, branch = (store.session(key) for key in imported(store, path).sessions)
    gone_on(home)
    branch.append(Block.assistant("beside it"))
    mine = branch.fork(f"{SESSION}/mine")
    mine.append(Block.user("mine"))
    branch.append(Block.user("and beside that"))

    report = export(home, "pi", tmp_path / "b.jsonl")
    again = imported(elsewhere, tmp_path / "b.jsonl")

    assert report.lost == {}
    assert entries_of(tmp_path / "b.jsonl")[: len(talk.entries)] == talk.entries
    assert_legal(tmp_path / "b.jsonl")
    assert len(again.sessions) == 3
    sessions = [elsewhere.session(key, create=False).view() for key in again.sessions]
    expected = [one.view() for one in (home, branch, mine)]
    assert sorted(map(shown, sessions)) == sorted(map(shown, expected))


def test_a_list_that_went_on_here_stays_a_list(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    talk = Talk(version=None)
    talk.user("one")
    talk.says("two")
    home = store.session(imported(store, talk.write(tmp_path / "a.jsonl")).sessions[0])
    gone_on(home)

    export(home, "pi", tmp_path / "b.jsonl")
    (key,) = imported(elsewhere, tmp_path / "b.jsonl").sessions

    written = entries_of(tmp_path / "b.jsonl")
    assert all("parentId" not in entry for entry in written)
    assert written[: len(talk.entries)] == talk.entries
    assert shown(elsewhere.session(key).view()) == shown(home.view())


def test_what_follows_blocks_that_were_taken_back_leaves_before_them(
    store: SessionStore, elsewhere: SessionStore, tmp_path: Path
) -> None:
    talk = Talk()
    talk.user("one")
    talk.says("two")
    talk.user("wrong")
    home = store.session(imported(store, talk.write(tmp_path / "a.jsonl")).sessions[0])
    home.retract(home.position)
    home.append(Block.user("right"))

    export(home, "pi", tmp_path / "b.jsonl")
    keys = imported(elsewhere, tmp_path / "b.jsonl").sessions

    assert shown(elsewhere.session(keys[1]).view()) == shown(home.view()) == ["one", "two", "right"]


@BOTH
def test_a_new_title_is_written(store: SessionStore, tmp_path: Path, name: str) -> None:
    talk = Talk(title="old") if name == "oh-my-pi" else Talk()
    talk.user("one")
    home = store.session(imported(store, talk.write(tmp_path / "a.jsonl")).sessions[0])
    home.configure(title="new")

    export(home, name, tmp_path / "b.jsonl")

    last = entries_of(tmp_path / "b.jsonl")[-1]
    assert last.get("name", last.get("title")) == "new"
