"""What each format makes of a view: the whole request, who speaks when, and thinking."""

import json
from collections.abc import Callable
from typing import Any, cast

from provider_rules import check_anthropic
from recorded_views import Talk, thought
from renderings import PNG, call, iter_requests, result, spoken, text

from cutbank.domain.blocks import AnyBlock, Block, BlockKind, Native, Text
from cutbank.domain.compaction_events import Trim
from cutbank.projections.history_view import HistoryView
from cutbank.projections.rendering.catalog import RENDERERS, render_view

TOOL: dict[str, Any] = {"name": "read", "description": "Reads."}
SCHEMA = {"type": "object"}
COMMON = {"model": "m", "max_tokens": 9}
FIRST, SECOND = '{"path": "a.py"}', '{"path":"b.py"}'


def a_day_at_work() -> HistoryView:
    talk = Talk()
    talk.system("You write code.")
    talk.tools({**TOOL, "input_schema": SCHEMA})
    talk.settings(**COMMON)
    blocks: list[AnyBlock] = [
        Block.user("Fix it."),
        thought("Look first.", message_id="m1"),
        Block.assistant("I look.", message_id="m1"),
        call("c1", arguments=FIRST, message_id="m1"),
        call("c2", arguments=SECOND, message_id="m1"),
        *(result("c2", "no such file", is_error=True), result("c1", "x = 1")),
        *(Block.developer("Time is short."), Block.assistant("Fixed."), Block.user("Thanks.")),
    ]
    for block in blocks:
        talk.say(block)
    return talk.view()


def test_anthropic_is_said_turn_by_turn() -> None:
    asked = [
        {"type": "thinking", "thinking": "Look first.", "signature": "c2lnbmVk"},
        text("I look."),
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.py"}},
        {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b.py"}},
    ]
    failed = {"content": [text("no such file")], "is_error": True}
    answered = [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("x = 1")]},
        {"type": "tool_result", "tool_use_id": "c2", **failed},
        text("<system-reminder>\nTime is short.\n</system-reminder>"),
    ]
    assert render_view(a_day_at_work(), "anthropic") == COMMON | {
        "system": "You write code.",
        "tools": [{**TOOL, "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [text("Fix it.")]},
            {"role": "assistant", "content": asked},
            {"role": "user", "content": answered},
            {"role": "assistant", "content": [text("Fixed.")]},
            {"role": "user", "content": [text("Thanks.")]},
        ],
    }


def test_chat_completions_are_said_message_by_message() -> None:
    calls = [
        {"id": name, "type": "function", "function": {"name": "read", "arguments": arguments}}
        for name, arguments in (("c1", FIRST), ("c2", SECOND))
    ]
    assert render_view(a_day_at_work(), "openai-chat") == COMMON | {
        "tools": [{"type": "function", "function": {**TOOL, "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "You write code."},
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
            {"role": "tool", "tool_call_id": "c2", "content": "no such file"},
            {"role": "developer", "content": "Time is short."},
            {"role": "assistant", "content": "Fixed."},
            {"role": "user", "content": "Thanks."},
        ],
    }


def test_responses_are_said_item_by_item() -> None:
    calls = [
        {"type": "function_call", "call_id": name, "name": "read", "arguments": arguments}
        for name, arguments in (("c1", FIRST), ("c2", SECOND))
    ]
    assert render_view(a_day_at_work(), "openai-responses") == COMMON | {
        "instructions": "You write code.",
        "tools": [{"type": "function", **TOOL, "parameters": SCHEMA, "strict": False}],
        "input": [
            *(spoken("user", "Fix it."), spoken("assistant", "I look."), *calls),
            {"type": "function_call_output", "call_id": "c1", "output": "x = 1"},
            {"type": "function_call_output", "call_id": "c2", "output": "no such file"},
            spoken("developer", "Time is short."),
            *(spoken("assistant", "Fixed."), spoken("user", "Thanks.")),
        ],
    }


def test_neutral_says_everything_where_it_stands() -> None:
    talk = Talk(Block.user("Look."), call("c1", arguments='{"n": 1}', message_id="m1"))
    talk.say(result("c1", (Text(text="a cat"), PNG)))
    talk.say(call("c2"))
    trims = [Trim(position=3, head=1)]

    body = render_view(talk.compacted(3, [2, 3], pinned=[2], trims=trims), "neutral")

    def entry(position: int, kind: str, role: str, words: str = "", **more: Any) -> dict[str, Any]:
        place = {"position": position, "handle": f"#{position}", "turn": 1}
        return {**place, "kind": kind, "role": role, "text": words, **more}

    one = {"tool_call_id": "c1", "name": "read", "arguments": '{"n": 1}', "message_id": "m1"}
    trimmed = "a\n[... 4 characters left out; recall #3 ...]\n"
    answer = {"tool_call_id": "c1", "call": 2, "is_error": False, "shown": "trimmed"}
    summary = {"role": "user", "kind": "summary", "text": "What came before."}
    assert body["coordinate"] == {"position": 4, "lineage": "main", "lineage_version": 0}
    assert body["boundary"] == 2
    assert body["messages"] == [
        {**summary, "boundary": 2, "covers": "#1", "hidden": ""},
        entry(2, "tool_call", "assistant", pinned=True, **one),
        entry(3, "tool_result", "tool", trimmed, **answer),
        entry(
            4, "tool_call", "assistant", tool_call_id="c2", name="read", arguments="{}", open=True
        ),
    ]


def test_a_body_shares_nothing_with_the_view() -> None:
    view = a_day_at_work()
    for name in RENDERERS:
        before = json.dumps(render_view(view, name))

        body = render_view(view, name)
        body["tools"][0]["cache_control"] = {"type": "ephemeral"}
        body["tools"][0].get("input_schema", {})["spoiled"] = True

        assert json.dumps(render_view(view, name)) == before


def test_a_result_stands_with_its_call_and_one_without_output_is_a_placeholder() -> None:
    talk = Talk(Block.user("Go."), call("slow"), Block.user("Well?"), Block.assistant("Soon."))
    for block in (result("slow", "at last"), call("c"), result("c", "", is_error=True)):
        talk.say(block)
    talk.say(call("open"))

    for name, _, body in iter_requests(talk.view()):
        assert body.index("at last") < body.index("Well?"), name
        assert "[no output]" in body, name
        assert "[no result yet]" in body, name


def test_parallel_calls_stay_one_message_though_answers_and_remarks_fell_between() -> None:
    talk = Talk(Block.user("Go."), call("a", message_id="m"), result("a"))
    for block in (Block.developer("Linted."), call("b", message_id="m"), result("b")):
        talk.say(block)

    messages = render_view(talk.view(), "anthropic")["messages"]

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["id"] for block in messages[1]["content"]] == ["a", "b"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result"] * 2 + ["text"]


def test_who_speaks_makes_the_messages() -> None:
    picture = Block(kind=BlockKind.IMAGE, media=PNG)
    talk = Talk(Block.user("See:"), picture, Block.developer("Hint."))
    chat = render_view(talk.view(), "openai-chat")["messages"]
    responses = render_view(talk.view(), "openai-responses")["input"]
    assert [part["type"] for part in chat[0]["content"]] == ["text", "image_url"]
    assert [part["type"] for part in responses[0]["content"]] == ["input_text", "input_image"]
    assert [message["role"] for message in chat] == ["user", "developer"]

    # A message id that comes again after the user spoke is another message.
    talk = Talk(Block.user("1?"), Block.assistant("1!", message_id="m"))
    for block in (Block.user("2?"), Block.assistant("2!", message_id="m")):
        talk.say(block)
    messages = render_view(talk.view(), "openai-chat")["messages"]
    assert [message["content"] for message in messages] == ["1?", "1!", "2?", "2!"]

    # The user speaks first even where the log begins with the model.
    messages = render_view(Talk(Block.assistant("Hello!")).view(), "anthropic")["messages"]
    assert messages[0] == {"role": "user", "content": [text("[the conversation begins here]")]}


def kinds_said(view: HistoryView) -> list[str]:
    messages = render_view(view, "anthropic")["messages"]
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    return [block["type"] for content in said for block in content]


def test_thinking_goes_back_in_its_place_as_it_came_or_not_at_all() -> None:
    pieces = [thought("1"), Block.assistant("Hm."), thought("2"), call("c")]
    message = [cast(Block, piece.model_copy(update={"message_id": "m"})) for piece in pieces]
    whole = Talk(Block.user("Go."), *message).view()
    assert kinds_said(whole) == ["thinking", "text", "thinking", "tool_use"]

    reasons = '{"type": "reasoning", "id": "r", "summary": []}'
    unsigned = '{"type": "thinking", "thinking": "unsigned"}'
    spoilt = '{"type": "redacted_thinking", "data": "\\ud800"}'
    natives = [None, Native(provider="openai-responses", item=reasons)]
    natives += [Native(provider="anthropic", item=one) for one in (unsigned, "not JSON", spoilt)]
    thoughts = [[Block.thinking("hm", native=native)] for native in natives]
    # After a thought that is missing the message thinks no more.
    for thinking in (*thoughts, [Block.thinking("1"), thought("2")]):
        talk = Talk(Block.user("Go."), *thinking, Block.assistant("Done."))
        assert kinds_said(talk.view()) == ["text"], thinking

    # The signature of what was thought before a boundary names a conversation that is gone.
    before = [Block.user("a"), thought("1"), Block.assistant("b"), Block.user("c")]
    talk = Talk(*before, thought("2"), Block.assistant("d"), Block.user("e"))
    assert kinds_said(talk.compacted(4, [2, 3, 4])) == ["text", "thinking", "text"]


def test_thinking_is_not_sent_back_once_something_before_it_changed() -> None:
    changes: list[Callable[[Talk], object]] = [
        lambda talk: talk.system("Be brief."),
        lambda talk: talk.tools({"name": "read", "input_schema": {"type": "object"}}),
        lambda talk: talk.say(result("c")),
    ]
    for change in changes:
        talk = Talk(Block.user("Go."), call("c"), Block.user("Well?"), thought("1"))
        talk.say(Block.assistant("Soon."))
        assert kinds_said(talk.view()) == ["tool_use", "thinking", "text"]

        change(talk)

        assert kinds_said(talk.view()) == ["tool_use", "text"]


def test_manual_thinking_gets_all_that_was_thought_or_pauses() -> None:
    manual, off = {"type": "enabled", "budget_tokens": 1024}, {"type": "disabled"}
    whole = Talk(Block.user("a"), thought("1"), call("c"), result("c"))
    begun_without = Talk(Block.user("a"), call("b"), result("b"), thought("1"), call("c"))
    begun_without.say(result("c"))
    for talk in (whole, begun_without):
        talk.settings(thinking=manual)
    views = (whole.compacted(4, [2, 3, 4]), begun_without.view())

    assert [kinds_said(view) for view in views] == [["thinking", "tool_use"], ["tool_use"] * 2]
    assert [render_view(view, "anthropic")["thinking"] for view in views] == [manual, off]
    assert check_anthropic(render_view(views[1], "anthropic")) == []
    whole.settings(thinking=off)
    assert kinds_said(whole.view()) == ["tool_use"]
