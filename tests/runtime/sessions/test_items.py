"""A framework's own items are stored once, and come back from the log and from views."""

import json
from typing import Any

import pytest
from databases import asked, each_database
from opened_stores import store_of
from short_sessions import compacted, said, shortens

import cutbank
from cutbank import (
    Block,
    InvalidSettingError,
    Item,
    StoredSession,
    ToolCall,
    ToolResult,
    list_items,
    verify,
)
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.native_item import Cut, CutItem
from cutbank.projections.rendering.sendable import JsonObject

OUTPUT = "a line of the tool's long output\n" * 3_000
CALLS: dict[str, Any] = {
    "role": "assistant",
    "z": None,
    "content": [
        {"type": "text", "text": "I read both files, first the one and then the other."},
        {"type": "tool_use", "id": "a", "input": {"path": "src/one/long/path/to/a.py", "n": 1.0}},
        {"type": "tool_use", "id": "b", "input": {"path": "src/one/long/path/to/b.py"}},
    ],
    "a": [1, True],
}
RESULTS: dict[str, Any] = {
    "role": "user",
    "content": [{"id": "a", "content": OUTPUT}, {"id": "b", "content": "none"}, "And now?"],
}


def calls() -> Item:
    text, *asked = CALLS["content"]
    called = [ToolCall(tool_call_id=o["id"], name="read", arguments=o["input"]) for o in asked]
    return Item(CALLS, [Block.assistant(text["text"]), *called], "framework")


def results() -> Item:
    answers: list[AnyBlock] = [
        ToolResult(tool_call_id="a", content=OUTPUT),
        ToolResult(tool_call_id="b", content="none"),
        Block.user("And now?"),
    ]
    return Item(RESULTS, answers, "framework")


def items_of(session: StoredSession, **which: Any) -> list[Any]:
    return [one.item for one in session.blocks(**which) if one.item is not None]


@pytest.fixture
def both(session: StoredSession) -> StoredSession:
    session.append(Block.user("Read."))
    session.append(calls(), results(), keys=["calls", "results"])
    return session


@each_database
def test_items_come_back_key_for_key_in_order(both: StoredSession) -> None:
    stored = items_of(both)

    assert json.dumps(stored) == json.dumps([CALLS, RESULTS])
    assert items_of(both, newest_first=True) == [RESULTS, CALLS]
    assert items_of(both, last=1) == [RESULTS]
    last = both.find("calls").last  # type: ignore[union-attr]
    assert [one.item for one in both.recall(last)] == [CALLS]
    assert verify(store_of(both)).violations == []


@each_database
def test_a_long_text_is_stored_once(session: StoredSession) -> None:
    session.append(calls())
    session.append(results())

    query = "SELECT sum(length(state)) FROM stored_events"
    assert asked(store_of(session), query)[0][0] < 4_000
    assert asked(store_of(session), "SELECT count(*) FROM bodies")[0][0] == 1


@each_database
def test_an_item_is_taken_back_whole(both: StoredSession) -> None:
    popped = both.pop()
    assert popped is not None
    assert popped.item == RESULTS
    assert set(both.info.state.open_calls) == {"a", "b"}
    assert items_of(both) == [CALLS]

    both.append(results())
    first = both.find("calls").first  # type: ignore[union-attr]
    both.retract(first + 1)  # takes its answers along, and what came with either
    assert [one.block.text for one in both.blocks()] == ["Read."]
    assert both.info.state.open_calls == {}
    assert verify(store_of(both)).violations == []


def test_a_fork_in_the_middle_of_an_item_shares_its_blocks_alone(both: StoredSession) -> None:
    last = both.find("results").last  # type: ignore[union-attr]
    whole, part = both.fork("whole", at=last), both.fork("part", at=last - 1)

    assert items_of(whole) == [CALLS, RESULTS]
    assert items_of(part) == [CALLS]
    assert part.retract(last - 3)
    both.clear()
    assert items_of(both) == []
    assert items_of(whole) == [CALLS, RESULTS]


def render_messages(view: cutbank.ViewContent) -> JsonObject:
    """What an adapter has to write."""
    items = list_items(view, "framework")
    return {"messages": [item.json or {"role": item.role, "content": item.text} for item in items]}


def test_a_view_shows_the_items_with_shortened_texts_in_place(both: StoredSession) -> None:
    before = both.view()
    result = both.find("results").first  # type: ignore[union-attr]
    both.compact(shortens(result))

    user, asked, answered = render_messages(both.view())["messages"]

    assert (user, asked) == ({"role": "user", "content": "Read."}, CALLS)
    shown = answered["content"][0]["content"]
    assert shown.startswith(OUTPUT[:100])
    assert len(shown) < 300
    assert answered == {
        **RESULTS,
        "content": [{"id": "a", "content": shown}, *RESULTS["content"][1:]],
    }
    past = both.view(at=before.coordinate.position, lineage_version=0)
    assert render_messages(past) == render_messages(before)


def test_the_summary_comes_first_and_marked(both: StoredSession) -> None:
    later = both.append(said("Go on.")).last
    compacted(both, later)

    first, last = list_items(both.view(), "framework")

    assert "not the user's own words" in first.text
    assert (first.json, first.entries, last.json) == (None, (), None)


def test_a_late_result_comes_after_its_call(session: StoredSession) -> None:
    session.append(calls())
    session.append(Block.user("Wait."))
    session.append(Item({"id": "a"}, [ToolResult(tool_call_id="a", content="x")], "framework"))

    assert [item.role for item in list_items(session.view(), "framework")] == [
        "assistant",
        "tool",
        "user",
    ]


def test_another_providers_items_are_not_shown(both: StoredSession) -> None:
    assert [item.json for item in list_items(both.view(), "another")] == [None] * 7


def test_responses_items_are_sent_as_they_were_given(session: StoredSession) -> None:
    item = {"type": "message", "role": "user", "content": "Go.", "id": "msg_1"}
    session.append(Item(item, [Block.user("Go.")], "openai-responses"))

    request: Any = session.view().render("openai-responses")
    assert request["input"] == [item]


def test_an_item_that_cannot_be_put_together_is_found(session: StoredSession) -> None:
    damaged = CutItem(provider="framework", item="{}", cuts=(Cut(at=1, piece=5),))
    session.log.change(lambda aggregate: aggregate.append(Block.user("a"), None, damaged))

    (violation,) = verify(store_of(session)).violations

    assert (violation.rule, violation.position) == ("log", session.position)
    assert "item" in violation.what


READ: dict[str, tuple[dict[str, Any], list[str]]] = {
    "openai-responses": (
        {"type": "function_call", "call_id": "1", "name": "read", "arguments": "{}"},
        ["tool_call"],
    ),
    "openai-chat": (
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            ],
        },
        ["assistant", "tool_call"],
    ),
    "anthropic": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "1", "name": "read", "input": {}},
            ],
        },
        ["thinking", "tool_call"],
    ),
    "google": (
        {
            "role": "user",
            "parts": [
                {"text": "Look."},
                {"inlineData": {"mimeType": "image/png", "data": "aaaa"}},
                {"text": "Hm.", "thought": True},
                {"functionCall": {"name": "read", "args": {}}},
                {"functionResponse": {"name": "read", "response": {"error": "no file"}}},
                {"fileData": {"fileUri": "gs://a"}},
            ],
        },
        ["user", "image", "thinking", "tool_call", "tool_result", "developer"],
    ),
}


@pytest.mark.parametrize("provider", READ)
def test_a_providers_message_is_read_and_comes_back(session: StoredSession, provider: str) -> None:
    message, kinds = READ[provider]

    session.append(cutbank.read_message(message, provider))

    blocks = list(session.blocks())
    assert [one.block.kind for one in blocks] == kinds
    assert blocks[-1].item == message
    assert json.loads(blocks[-1].item_text or "") == message


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"type": "new", "of": [1.5, None]}, "assistant"),
        ({"type": "function_call", "call_id": "1"}, "assistant"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "new"}]}, "user"),
        ({"role": "system", "content": 5}, "developer"),
        ({}, "assistant"),
    ],
)
def test_what_is_not_known_of_a_message_is_a_text_and_comes_back(
    session: StoredSession, message: dict[str, Any], kind: str
) -> None:
    session.append(cutbank.read_message(message, "openai-responses"))

    blocks = list(session.blocks())
    assert blocks[0].block.kind == kind
    assert all(one.block.text for one in blocks)
    assert blocks[-1].item == message


def test_reasoning_is_stored_once(session: StoredSession) -> None:
    secret = "x" * 50_000
    item = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": secret}

    session.append(cutbank.read_message(item, "openai-responses"))

    (block,) = session.blocks()
    assert block.item == item
    assert block.stored_item is not None
    assert len(block.stored_item.item) < 100


def test_a_message_of_no_known_provider_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="no messages of 'mine' are known"):
        cutbank.read_message({}, "mine")
    with pytest.raises(InvalidSettingError, match="the message is not a JSON object"):
        cutbank.read_message({"a": object()}, "anthropic")
