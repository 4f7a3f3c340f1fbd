"""A response of a real client is appended whole: what it says, its calls, and its usage."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic.types import MessageParam
from google.genai import Client as Google
from google.genai.types import HttpOptions
from loopback.answers import Raw, in_turn
from loopback.asked import keys_alone
from loopback.server import loopback
from openai import OpenAI
from openai.types.responses import ResponseInputItemParam
from opened_stores import store_of
from provider_rules import check_anthropic, check_openai_chat, check_openai_responses
from pydantic import TypeAdapter

import cutbank
from cutbank import Block, BlockKind, HistoryView, StoredSession, ToolCall, ToolResult
from cutbank.domain.errors import InvalidResponseError
from cutbank.domain.session_events import ModelCalled
from cutbank.projections.audit_entries import RequestProof
from cutbank.projections.rendering.catalog import render_view

BODIES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("responses.json").read_text("utf-8")
)
"""What each provider answers to the same question: text, two calls, thoughts and an image."""
ANTHROPIC = BODIES["anthropic"]
CHAT = BODIES["chat"]
RESPONSES = BODIES["responses"]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredSession]:
    keys_alone(monkeypatch, tmp_path)
    with cutbank.open(tmp_path / "sessions.db") as store:
        session = store.session("s")
        session.append(Block.user("What do a and b say?"))
        yield session


def ask(body: dict[str, Any]) -> Any:
    """What the real client makes of the provider's answer."""
    said: Any = [{"role": "user", "content": "hello"}]
    with loopback(in_turn(Raw(json.dumps(body).encode()))) as server, ExitStack() as clients:
        if body is ANTHROPIC:
            anthropic = clients.enter_context(Anthropic(base_url=server.url, api_key="k"))
            return anthropic.messages.create(model="m", max_tokens=100, messages=said)
        if body is BODIES["google"]:
            google = Google(api_key="k", http_options=HttpOptions(base_url=server.url))
            clients.enter_context(google)
            return google.models.generate_content(model="gemini-2.5-flash", contents="hello")
        openai = clients.enter_context(OpenAI(base_url=f"{server.url}/v1", api_key="k"))
        if body is CHAT:
            return openai.chat.completions.create(model="m", messages=said)
        return openai.responses.create(model="m", input="hello")


def append(session: StoredSession, body: dict[str, Any]) -> HistoryView:
    """Append a response, answer its calls, and return the view."""
    session.append_response(ask(body))
    for call in dict(session.log.state.open_calls):
        session.append(ToolResult(tool_call_id=call, content="nothing"))
    return session.view()


def reported(session: StoredSession) -> ModelCalled:
    call = cutbank.audit_call(session, 1).reported
    assert call
    return call


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
def test_text_calls_and_usage_are_stored(session: StoredSession, body: dict[str, Any]) -> None:
    response = ask(body)

    done = session.append_response(response)

    blocks = [entry.block for entry in session.view().entries][1:]
    assert len(blocks) == done.last - done.first + 1
    assert (
        next(block.text for block in blocks if block.kind is BlockKind.ASSISTANT) == "I read both."
    )
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    assert [call.parse_arguments()["path"] for call in calls] == ["a", "b"]
    assert len({block.message_id for block in blocks}) == 1
    usage = reported(session).usage
    assert usage is not None
    assert (usage.context, usage.cache_read, usage.output) == (1_007, 900, 55)
    assert usage.reasoning == (None if body is ANTHROPIC else 30)

    # The JSON of a response says the same as the client's object.
    other = store_of(session).session("other")
    other.append(Block.user("What do a and b say?"))
    other.append_response(body)
    assert [entry.block.model_dump(exclude={"native"}) for entry in other.view().entries][1:] == [
        block.model_dump(exclude={"native"}) for block in blocks
    ]


def test_signed_thinking_goes_back_to_anthropic_word_for_word(session: StoredSession) -> None:
    body = render_view(append(session, ANTHROPIC), "anthropic")

    assert body["messages"][1]["content"][:2] == ANTHROPIC["content"][:2]
    assert body["messages"][1]["content"][3]["input"] == {"path": "a", "end": None}
    TypeAdapter(list[MessageParam]).validate_python(body["messages"])
    assert check_anthropic(body) == []


def test_reasoning_and_images_go_back_to_openai_as_they_came(session: StoredSession) -> None:
    body = render_view(append(session, RESPONSES), "openai-responses")

    assert RESPONSES["output"][0] in body["input"]
    assert RESPONSES["output"][-1] in body["input"]
    TypeAdapter(list[ResponseInputItemParam]).validate_python(body["input"])
    assert check_openai_responses(body) == []


def test_an_image_is_named_where_a_request_cannot_hold_it(session: StoredSession) -> None:
    view = append(session, BODIES["google"])

    blocks = [entry.block for entry in view.entries if isinstance(entry.block, Block)]
    assert [block.media.data for block in blocks if block.media] == [
        b64decode(RESPONSES["output"][-1]["result"])
    ]
    for renderer, check in (("openai-chat", check_openai_chat), ("anthropic", check_anthropic)):
        body = render_view(view, renderer)
        assert check(body) == []
        assert "[image image/png: " in json.dumps(body)


def test_the_view_that_was_sent_is_proved_by_the_recorded_call(session: StoredSession) -> None:
    view = session.view()

    session.append_response(ask(ANTHROPIC), view=view, latency_s=1.5)

    call = cutbank.audit_call(session, 1)
    assert call.shown.proof is RequestProof.PROVED
    assert call.request() == render_view(view, "anthropic")
    assert (reported(session).model, reported(session).latency_s) == ("claude-sonnet-4-6", 1.5)


def test_an_item_of_an_unknown_type_is_kept_as_it_came(session: StoredSession) -> None:
    item = {"type": "hologram", "data": [1, 2.5, None]}

    done = session.append_response({**ANTHROPIC, "content": [item]})

    (found,) = session.recall(done.first)
    assert found.block.native
    assert json.loads(found.block.native.item) == item


def test_an_empty_response_is_recorded_as_a_call(session: StoredSession) -> None:
    before = session.log.state.blocks

    session.append_response({**ANTHROPIC, "content": []})

    assert session.log.state.blocks == before
    assert reported(session).usage is not None


def test_what_is_no_response_is_refused_and_stores_nothing(session: StoredSession) -> None:
    before = session.position

    for response, says in (
        ("text", "cannot read this str as a model's response"),
        (iter(()), "of a stream, its final response"),
        ({**CHAT, "choices": CHAT["choices"] * 2}, "here are 2; keep one of them"),
        ({**ANTHROPIC, "content": [{"type": "text", "text": 7}]}, "text: expected text"),
        ({**ANTHROPIC, "usage": {"input_tokens": "7"}}, "usage.input_tokens: expected"),
    ):
        with pytest.raises(InvalidResponseError, match=re.escape(says)):
            session.append_response(response)
        assert session.position == before


def test_each_call_behind_a_message_is_recorded_with_its_model(session: StoredSession) -> None:
    calls = [
        {"type": "message", "input_tokens": 100, "output_tokens": 30},
        {
            "type": "advisor_message",
            "model": "claude-opus-4-6",
            "input_tokens": 130,
            "output_tokens": 50,
        },
        {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 180, "output_tokens": 7},
    ]
    usage = ANTHROPIC["usage"] | {"input_tokens": 105, "output_tokens": 37, "iterations": calls}

    session.append_response(ANTHROPIC | {"usage": usage}, view=session.view(), cost_usd=0.02)

    audited = [cutbank.audit_call(session, number) for number in (1, 2, 3)]
    recorded = [one.reported for one in audited if one.reported]
    assert [call.context for call in recorded] == [100, 130, 185]
    assert [call.model for call in recorded] == [
        ANTHROPIC["model"],
        "claude-opus-4-6",
        ANTHROPIC["model"],
    ]
    proofs = [one.shown.proof for one in audited]
    assert proofs == [RequestProof.PROVED, *[RequestProof.RECONSTRUCTED] * 2]
    assert sum(call.cost_usd or 0 for call in recorded) == pytest.approx(0.02)


def test_calls_of_another_program_are_recorded_at_a_position_and_prove_nothing(
    session: StoredSession,
) -> None:
    answer = {"id": "msg_1", "model": "claude-opus-4-6"}
    pieces = [
        answer | {"usage": {"input_tokens": 9, "output_tokens": output}} for output in (1, 40, 2)
    ]
    sent = session.position
    session.append(Block.assistant("It needs water."))

    for call in cutbank.read_call_reports(pieces):
        session.record_call(sent, **call)

    audited = cutbank.audit_call(session, 1)
    assert audited.reported
    assert audited.reported.usage
    assert (audited.reported.position, audited.reported.usage.output) == (sent, 40)
    assert audited.shown.proof is RequestProof.RECONSTRUCTED
    assert cutbank.read_call_reports([answer | {"model": "<synthetic>"}]) == []
    assert cutbank.read_call_reports([answer | {"usage": "none"}]) == []
    with pytest.raises(cutbank.NotFoundError, match="no position 99"):
        session.record_call(99, call_id="msg_2")
