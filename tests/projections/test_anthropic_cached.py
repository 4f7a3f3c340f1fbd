"""What a request says a provider shall keep: at most four marks, and nothing else is changed."""

import json
from typing import Any

import pytest
from recorded_views import Talk, thought
from vector_files import FOLDERS, lines_of

from cutbank.domain.blocks import Block, Native, NativePart, ToolCall, ToolResult
from cutbank.projections.rendering.anthropic_messages import find_cache_points
from cutbank.projections.rendering.catalog import render_view

MARK = {"type": "ephemeral"}


def marked(body: dict[str, Any]) -> list[dict[str, Any]]:
    pieces = [*body.get("tools", []), *body.get("system", [])]
    pieces += [piece for message in body["messages"] for piece in message["content"]]
    return [piece for piece in pieces if "cache_control" in piece]


def said(body: dict[str, Any]) -> list[str]:
    """Return the texts of the talk that are marked."""
    return [piece["text"] for piece in marked({"messages": body["messages"]})]


def numbered(*before: Any) -> Talk:
    return Talk(*before, *(Block.user(f"{number}") for number in range(5)))


def test_tools_system_prompt_and_two_blocks_are_marked() -> None:
    talk = numbered()
    talk.system("You write code.")
    tool = {"input_schema": {"type": "object"}}
    searched = {**tool, "name": "later", "defer_loading": True}
    talk.tools({**tool, "name": "a"}, {**tool, "name": "b"}, searched)

    body = render_view(talk.view(), "anthropic-cached")

    names = [piece.get("name") or piece["text"] for piece in marked(body)]
    assert names == ["b", "You write code.", "2", "4"]


def test_a_message_is_one_place_its_thinking_and_open_calls_are_none() -> None:
    pieces = [Block.assistant(words, message_id="m") for words in ("First.", "Then.", "Last.")]
    message = Talk(Block.user("Go."), *pieces, Block.user("Thanks."))
    open_call = Talk(Block.user("Go."), ToolCall(tool_call_id="c", name="read"))
    talk = Talk(Block.user("Go."), thought("Hm."), ToolCall(tool_call_id="c", name="read"))
    talk.say(ToolResult(tool_call_id="c", content="done"))
    summed_up = numbered().compacted(3, [])

    assert said(render_view(message.view(), "anthropic-cached")) == ["Last.", "Thanks."]
    for view in (open_call.view(), talk.view()):
        body = render_view(view, "anthropic-cached")
        assert [piece["type"] for piece in marked(body)] == ["text", "tool_result"]
    summary, newest = said(render_view(summed_up, "anthropic-cached"))
    assert summary.startswith("[A summary")
    assert newest == "4"


def test_marks_that_were_recorded_give_way() -> None:
    old = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    item = {"type": "text", "text": "Said.", **old}
    part = Native(provider="anthropic", item=json.dumps({"type": "search_result", **old}))
    talk = numbered(
        Block.assistant("Said.", native=Native(provider="anthropic", item=json.dumps(item))),
        ToolCall(tool_call_id="c", name="read", arguments='{"cache_control": {"keep": "me"}}'),
        ToolResult(tool_call_id="c", content=(NativePart(native=part),)),
    )
    talk.tools({"name": "a", "input_schema": {}, **old}, {"name": "b", "input_schema": {}})

    body = render_view(talk.view(), "anthropic-cached")

    assert [tool.get("cache_control") for tool in body["tools"]] == [None, MARK]
    assert said(body) == ["2", "4"]
    assert '"ttl"' not in json.dumps(body)
    assert {"cache_control": {"keep": "me"}} in [
        piece.get("input") for message in body["messages"] for piece in message["content"]
    ]


def test_how_long_to_keep_is_as_the_session_says() -> None:
    for asked in ({"type": "ephemeral", "ttl": "1h"}, MARK):
        talk = numbered()
        talk.settings(model="m", cache_control=asked)

        body = render_view(talk.view(), "anthropic-cached")

        assert "cache_control" not in body
        assert [piece["cache_control"] for piece in marked(body)] == [asked, asked]


def test_two_points_stand_near_the_tail() -> None:
    rows: list[tuple[list[str | None], tuple[int, ...]]] = [
        ([None], (0,)),
        ([None, None, None], (0, 2)),
        ([None] * 9, (6, 8)),
        ([None, "a", "a", None], (2, 3)),
        (["", "", "", ""], (1, 3)),
        (["a", "a", "a"], (2,)),
        (["a", "b", "a"], (0, 2)),
    ]
    for paths, points in rows:
        assert find_cache_points(paths) == points


@pytest.mark.claim("S0.40", "S0.47")
@FOLDERS
def test_cache_points_of_the_vectors(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        expected: dict[str, Any] = vector["expected"]
        shown: list[str] = expected["render"]["rendered_ids"]
        path_of = {block["id"]: block["meta"].get("path") for block in vector["input"]}
        summary = expected["summary_block"] or {}

        points = find_cache_points([path_of.get(one, summary.get("path")) for one in shown])

        found = [shown[at] for at in points]
        assert found == expected["render"]["cache_point_ids"], vector["vector"]
