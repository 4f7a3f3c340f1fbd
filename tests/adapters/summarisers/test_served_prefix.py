"""A task at the end of the served request leaves all before it as it was, for the cache."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import JsonValue
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from summariser_talk import Scripted, always, material_of

import cutbank
from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.domain.blocks import Block, ToolCall, ToolResult
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.projections.rendering.catalog import render_view

TOOLS: list[JsonValue] = [
    {"name": "bash", "description": "Runs.", "input_schema": {"type": "object"}}
]
WORDS = "## Goal\n- it works (#5)"


@pytest.fixture
def material(tmp_path: Path) -> Material:
    """Of a session that was really served."""
    with cutbank.open(str(tmp_path / "sessions.db")) as store:
        session = store.session("s")
        session.configure(system_prompt="You are careful.")
        session.configure(tools=TOOLS)
        session.append(
            Block.user("Fix it, and never push."),
            Block.assistant("I look.", message_id="m"),
            ToolCall(tool_call_id="c1", name="bash", arguments={"c": "make"}, message_id="m"),
        )
        session.append(ToolResult(tool_call_id="c1", content="missing semicolon " * 2_000))
        view = session.view()
    items = tuple(
        Item(entry.position, entry.block, entry.turn, entry.tokens, entry.call)
        for entry in view.entries
    )
    return material_of(
        items, covers=Ranges.span(1, 9), served_prompt=lambda spoken: render_view(view, spoken)
    )


class Wire:
    """A provider's end of the line, which remembers what it was sent."""

    def __init__(self, answer: dict[str, Any], status: int = 200) -> None:
        self.answer, self.status = answer, status
        self.bodies: list[dict[str, Any]] = []

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answered))

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        return httpx2.Response(self.status, json=self.answer)


def anthropic(wire: Wire) -> Model:
    provider = AnthropicProvider(api_key="sk-test", http_client=wire.client())
    return AnthropicModel("claude-haiku-4-5", provider=provider)


def openai_chat(wire: Wire) -> Model:
    provider = OpenAIProvider(api_key="sk-test", http_client=wire.client())
    return OpenAIChatModel("gpt-5-mini", provider=provider)


def openai_responses(wire: Wire) -> Model:
    provider = OpenAIProvider(api_key="sk-test", http_client=wire.client())
    return OpenAIResponsesModel("gpt-5-mini", provider=provider)


BY_ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5",
    "content": [{"type": "text", "text": WORDS}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 40, "cache_read_input_tokens": 9_000, "output_tokens": 12},
}
BY_CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5-mini",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": WORDS},
        }
    ],
    "usage": {
        "prompt_tokens": 9_040,
        "completion_tokens": 12,
        "total_tokens": 9_052,
        "prompt_tokens_details": {"cached_tokens": 9_000},
    },
}
BY_RESPONSES = {
    "id": "r1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5-mini",
    "output": [
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": WORDS, "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "none",
    "tools": [],
    "usage": {
        "input_tokens": 9_040,
        "input_tokens_details": {"cached_tokens": 9_000},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 9_052,
    },
}
CASES = [
    pytest.param(anthropic, BY_ANTHROPIC, "anthropic", "messages", id="anthropic"),
    pytest.param(openai_chat, BY_CHAT, "openai-chat", "messages", id="openai-chat"),
    pytest.param(
        openai_responses, BY_RESPONSES, "openai-responses", "input", id="openai-responses"
    ),
]


def drafted(model: Model, material: Material, **options: Any) -> Draft:
    llm = LlmSummarizer(model, from_served_prefix=True, is_streamed=False, **options)
    return asyncio.run(llm.summarize(material))


@pytest.mark.parametrize(("make", "answer", "spoken", "talk"), CASES)
def test_what_was_served_is_sent_again_and_the_task_after_it(
    make: Callable[[Wire], Model],
    answer: dict[str, Any],
    spoken: str,
    talk: str,
    material: Material,
) -> None:
    wire = Wire(answer)

    draft = drafted(make(wire), material, names_facts=False)

    (body,) = wire.bodies
    assert material.served_prompt
    served = dict(material.served_prompt(spoken))
    sent = json.loads(json.dumps(body[talk]))
    for message in sent:
        if isinstance(message.get("content"), list):
            for part in message["content"]:
                part.pop("cache_control", None)
    said = json.dumps(sent[-1])
    assert "Stop the work here" in said
    assert "#6 assistant: I look." in said
    *before, last = served[talk]
    assert sent[: len(before)] == before
    if spoken == "anthropic":
        # The tool's answer and the task are one user message there.
        assert sent[-1]["content"][:-1] == last["content"]
    else:
        assert sent[len(before)] == last
        assert len(sent) == len(before) + 2
    for key in ("tools", "system", "instructions"):
        assert body.get(key) == served.get(key)
    assert draft.text == WORDS
    assert draft.usage == Usage(input=40, cache_read=9_000, cache_write=0, output=12)


def test_anthropic_reads_its_cache_up_to_the_newest_block_that_was_served(
    material: Material,
) -> None:
    wire = Wire(BY_ANTHROPIC)

    drafted(anthropic(wire), material)

    (body,) = wire.bodies
    result, task = body["messages"][-1]["content"]
    assert result["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in task
    # Another choice of tools would make it read all messages anew.
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("make", "answer"), [(openai_chat, BY_CHAT), (openai_responses, BY_RESPONSES)]
)
def test_openai_is_kept_from_calling_the_tools_that_stay_in_the_request(
    make: Callable[[Wire], Model], answer: dict[str, Any], material: Material
) -> None:
    wire = Wire(answer)

    drafted(make(wire), material)

    (body,) = wire.bodies
    assert body["tools"]
    assert body["tool_choice"] == "none"


def test_a_request_that_no_window_holds_is_read_in_the_ordinary_way(material: Material) -> None:
    wire = Wire(BY_ANTHROPIC)

    drafted(anthropic(wire), material, window=8_000)

    assert all("<record-" in json.dumps(body["messages"]) for body in wire.bodies)


def test_a_served_request_that_is_refused_as_too_long_is_read_in_the_ordinary_way(
    material: Material,
) -> None:
    class Refusing(Wire):
        def _answered(self, request: httpx2.Request) -> httpx2.Response:
            if b"Stop the work here" not in request.content:
                return super()._answered(request)
            message = "prompt is too long: 210000 tokens > 200000 maximum"
            error = {"type": "invalid_request_error", "message": message}
            return httpx2.Response(400, json={"type": "error", "error": error})

    wire = Refusing(BY_ANTHROPIC)

    draft = drafted(anthropic(wire), material)

    assert len(wire.bodies) == 1
    assert draft.text.startswith(WORDS)


def test_a_split_turn_is_read_in_the_ordinary_way(material: Material) -> None:
    model: Scripted = always(WORDS)
    split = material_of(
        material.removed_items, prefix=Ranges.of([6, 7]), served_prompt=material.served_prompt
    )

    asyncio.run(LlmSummarizer(model.model, from_served_prefix=True).summarize(split))

    assert len(model.prompts) == 2
