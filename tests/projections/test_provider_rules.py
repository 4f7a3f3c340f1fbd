"""The rules that renderings are checked by can fail, each of them."""

from typing import Any

import pytest
from provider_rules import check_anthropic, check_openai_chat, check_openai_responses

USER = {"role": "user", "content": [{"type": "text", "text": "a"}]}
ASKS = {"type": "tool_use", "id": "c", "name": "t", "input": {}}
GIVES = {"type": "tool_result", "tool_use_id": "c", "content": "b"}
SIGNED = {"type": "thinking", "thinking": "a", "signature": "s"}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def kept(text: str, **more: str) -> dict[str, Any]:
    return {**words(text), "cache_control": {"type": "ephemeral", **more}}


def anthropic(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (anthropic(), "messages: at least one message is required"),
        (anthropic(says(words("a"))), "messages[0]: the first message must be the user's"),
        (anthropic(USER, USER), "messages[1]: roles must alternate"),
        (
            anthropic({"role": "system", "content": "a"}),
            "messages[0]: role 'system' does not exist",
        ),
        (anthropic(told()), "messages[0]: content must not be empty"),
        (
            anthropic(told(words(" "))),
            "messages[0]: text content blocks must contain non-whitespace text",
        ),
        (anthropic(USER, system=""), "system: text must not be empty"),
        (
            anthropic(told(*[kept("a")] * 4), cache_control={"type": "ephemeral"}),
            "a maximum of 4 blocks with cache_control may be provided, found 4",
        ),
        (
            anthropic(told(kept("a"), kept("b", ttl="1h"))),
            "cache_control: a ttl of 1h must not come after one of 5m",
        ),
        (
            anthropic(told({**words("a"), "cache_control": {"type": "lasting"}})),
            "cache_control.type: must be ephemeral",
        ),
        (
            anthropic(USER, says({**SIGNED, "cache_control": {"type": "ephemeral"}}, words("a"))),
            "thinking: cache_control is not permitted",
        ),
        (
            anthropic(USER, tools=[{"name": "t", "defer_loading": True, **kept("")}]),
            "tools: one with defer_loading cannot have cache_control",
        ),
        (
            anthropic(USER, says(ASKS)),
            "messages[1]: tool_use without tool_result immediately after: c",
        ),
        (
            anthropic(USER, says(words("a")), told(GIVES)),
            "messages[2]: unexpected tool_use_id in tool_result: c",
        ),
        (anthropic(told(GIVES)), "messages[0]: unexpected tool_use_id in tool_result: c"),
        (
            anthropic(USER, says(ASKS), told(words("a"), GIVES)),
            "messages[2]: tool_result blocks must come first in the content",
        ),
        (
            anthropic(USER, says(ASKS), told(GIVES, GIVES)),
            "messages[2]: each tool_use must have a single result: c",
        ),
        (
            anthropic(USER, says(ASKS, ASKS), told(GIVES)),
            "messages: tool_use ids must be unique: c",
        ),
        (
            anthropic(USER, says({**ASKS, "id": "a.b"}), told({**GIVES, "tool_use_id": "a.b"})),
            "messages[1]: tool_use.id: string should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            anthropic(USER, says({**ASKS, "name": "n" * 129}), told(GIVES)),
            "messages[1]: tool_use.name: string too long, expected at most 128 characters",
        ),
        (
            anthropic(USER, says(ASKS), told({**GIVES, "content": [], "is_error": True})),
            "messages[2]: tool_result: content cannot be empty if is_error is true",
        ),
        (
            anthropic(USER, says(ASKS), told({**GIVES, "content": [words("")]})),
            "messages[2]: text content blocks must contain non-whitespace text",
        ),
        (
            anthropic(USER, says(SIGNED), USER),
            "messages[1]: the final block of an assistant message cannot be thinking",
        ),
        (
            anthropic(USER, says({"type": "thinking", "thinking": "a"}, words("b")), USER),
            'messages[1]: no block looks like {"type": "thinking", "thinking": "a"}',
        ),
        (
            anthropic(USER, says(words("a "))),
            "messages: final assistant content cannot end with trailing whitespace",
        ),
        (
            anthropic(USER, says(ASKS), told(GIVES), thinking={"type": "enabled"}),
            "messages: expected thinking or redacted_thinking, but found tool_use",
        ),
        (
            anthropic(USER, says(SIGNED, ASKS), told(GIVES), thinking={"type": "disabled"}),
            "messages: when thinking is disabled, the final turn cannot contain thinking",
        ),
        (
            anthropic(
                told({"type": "image", "source": {"type": "url", "url": "file:///a.png"}}),
            ),
            'messages[0]: source: none looks like {"type": "url", "url": "file:///a.png"}',
        ),
        (
            anthropic(USER, says({**ASKS, "input": {"n": float("nan")}}), told(GIVES)),
            "the body is not valid JSON",
        ),
        (anthropic(told(words("\ud800"))), "the body is not valid JSON"),
    ],
)
def test_what_anthropic_refuses_is_seen(body: dict[str, Any], sentence: str) -> None:
    assert sentence in check_anthropic(body)


def chat(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


def calls(name: str = "c", tool: str = "t", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    call = {"id": name, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


ANSWER = {"role": "tool", "tool_call_id": "c", "content": "b"}
ASKED = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (chat(), "messages: must not be empty"),
        (chat(calls()), "messages: tool_call_ids did not have response messages: c"),
        (
            chat(calls(), ASKED),
            "messages[1]: tool_call_ids did not have response messages: c",
        ),
        (
            chat(ASKED, ANSWER),
            "messages[1]: role tool must be a response to a preceding tool_calls",
        ),
        (
            chat(calls(), ANSWER, ANSWER),
            "messages[2]: role tool must be a response to a preceding tool_calls",
        ),
        (chat(calls(), ANSWER, calls(), ANSWER), "messages: two tool calls have the id c"),
        (
            chat({"role": "assistant", "content": None}),
            "messages[0]: content must not be null",
        ),
        (
            chat(calls(tool="a.b"), ANSWER),
            "messages[0]: function.name: string should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (chat(calls(arguments="{"), ANSWER), "messages[0]: arguments: must be JSON text"),
        (chat(calls(arguments="[]"), ANSWER), "messages[0]: arguments: must be a JSON object"),
        (
            chat(
                calls(),
                {**ANSWER, "content": [{"type": "image_url", "image_url": {"url": "https://a"}}]},
            ),
            "messages[1]: content: a tool message cannot hold a image_url",
        ),
        (
            chat(
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,QQ=="}}
                    ],
                }
            ),
            "messages[0]: image_url: must be a URL, or data of a supported image",
        ),
        (
            chat(calls(name="x" * 41), {**ANSWER, "tool_call_id": "x" * 41}),
            "messages[0]: tool_calls.id: string too long, expected at most 40 characters",
        ),
    ],
)
def test_what_chat_completions_refuse_is_seen(body: dict[str, Any], sentence: str) -> None:
    assert sentence in check_openai_chat(body)


def responses(*items: Any) -> dict[str, Any]:
    return {"input": list(items)}


def message(role: str, kind: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": "a"}]}


CALL = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "b"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (responses(), "input: must not be empty"),
        (responses(CALL), "input: no tool output found for function call c"),
        (
            responses(OUTPUT),
            "input[0]: no tool call found for function_call_output with call_id c",
        ),
        (responses(CALL, OUTPUT, OUTPUT), "input[2]: a second output for call_id c"),
        (responses(CALL, CALL, OUTPUT), "input[1]: duplicate call_id c"),
        (
            responses(CALL, {**OUTPUT, "type": "custom_tool_call_output"}, OUTPUT),
            "input[1]: no tool call found for custom_tool_call_output with call_id c",
        ),
        (
            responses(REASONING),
            "input[0]: reasoning was provided without its required following item",
        ),
        (
            responses(REASONING, message("user", "input_text")),
            "input[0]: reasoning was provided without its required following item",
        ),
        (
            {**responses(REASONING, message("assistant", "output_text")), "store": False},
            "input[0]: item rs_1 not found: items are not persisted when store is set to false",
        ),
        (
            responses(message("assistant", "input_text")),
            "input[0]: an assistant's content cannot be input_text",
        ),
        (
            responses(message("user", "output_text")),
            'input[0]: no input looks like {"type": "output_text", "text": "a"}',
        ),
        (
            responses(
                {**message("assistant", "output_text"), "id": "msg_1"},
                {**message("assistant", "output_text"), "id": "msg_1"},
            ),
            "input: duplicate item found with id msg_1",
        ),
        (
            responses({**CALL, "call_id": "x" * 65}, {**OUTPUT, "call_id": "x" * 65}),
            "input[0]: call_id: string too long, expected at most 64 characters",
        ),
    ],
)
def test_what_responses_refuse_is_seen(body: dict[str, Any], sentence: str) -> None:
    assert sentence in check_openai_responses(body)
