"""A task at the end of the served request leaves all before it as it was, for the cache."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from loopback.answers import Answer, Refuses, Request, Says, Tokens, Why
from loopback.asked import Asked
from loopback.providers import DIALECTS
from pydantic import JsonValue
from summarizer_talk import material_of

import cutbank
from cutbank import Block, Material, Ranges, ToolCall, ToolResult, Usage, WindowItem
from cutbank.projections.rendering.catalog import render_view

TOOLS: list[JsonValue] = [
    {"name": "bash", "description": "Runs.", "input_schema": {"type": "object"}}
]
WORDS = "## Goal\n- fix it and never push; it works (#5)"
ANSWER = Says(WORDS, Tokens(40, 12, cache_read=9_000))
SERVED = pytest.mark.parametrize("provider", DIALECTS[:3], ids=str)
"""Marks a test of each format in which a request is served."""
TASK = "Stop the work here"


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
        WindowItem(entry.position, entry.block, entry.turn, entry.tokens, entry.call)
        for entry in view.entries
    )
    return material_of(
        items, covers=Ranges.span(1, 9), served_prompt=lambda spoken: render_view(view, spoken)
    )


@SERVED
def test_what_was_served_is_sent_again_and_the_task_after_it(
    asked: Asked, material: Material
) -> None:
    draft = asked.draft(ANSWER, material=material, from_served_prefix=True)

    (request,) = asked.server.requests
    body, spoken = request.body, asked.provider.name
    assert material.served_prompt
    served = dict(material.served_prompt(spoken))
    talk = "input" if spoken == "openai-responses" else "messages"
    sent, (*before, last) = body[talk], served[talk]
    said = json.dumps(sent[-1])
    assert TASK in said
    assert "#6 assistant: I look." in said
    assert sent[: len(before)] == before
    if spoken == "anthropic":
        # The tool's answer and the task are one user message there; the cache ends before it.
        result, task = sent[-1]["content"]
        assert result.pop("cache_control") == {"type": "ephemeral"}
        assert [result] == last["content"]
        assert "cache_control" not in task
        # Another choice of tools would make it read all messages anew.
        assert "tool_choice" not in body
    else:
        assert sent[len(before)] == last
        assert len(sent) == len(before) + 2
        assert body["tool_choice"] == "none"
    assert body["tools"]
    for key in ("tools", "system", "instructions"):
        assert body.get(key) == served.get(key)
    assert draft.text == WORDS
    assert draft.usage == Usage(input=40, cache_read=9_000, cache_write=0, output=12)


@pytest.mark.parametrize("provider", DIALECTS[:1], ids=str)
def test_what_cannot_be_served_again_is_read_in_the_ordinary_way(
    asked: Asked, material: Material
) -> None:
    def refuse_the_served(request: Request) -> Answer:
        return Refuses(Why.OVERFLOW) if TASK.encode() in request.raw else ANSWER

    split = replace(material, prefix=Ranges.of([6, 7]))
    asked.server.script = refuse_the_served

    draft = asked.draft(material=material, from_served_prefix=True)
    asked.draft(ANSWER, material=material, from_served_prefix=True, window=8_000)
    asked.draft(ANSWER, material=split, from_served_prefix=True)

    assert draft.text.startswith(WORDS)
    served, *others = (request.raw for request in asked.server.requests)
    assert TASK.encode() in served
    assert len(others) >= 4
    assert all(b"<record-" in raw and TASK.encode() not in raw for raw in others)
