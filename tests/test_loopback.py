"""The loopback speaks what real clients understand, and sees what they do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from loopback.answers import (
    Answer,
    BreaksOff,
    Call,
    Endless,
    Raw,
    Refuses,
    Request,
    Says,
    Stop,
    Tokens,
    Waits,
    Why,
    in_turn,
)
from loopback.environment import keys_alone
from loopback.gates import Gate
from loopback.providers import ALL, DIALECTS, Provider
from loopback.server import Loopback, loopback
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

REFUSALS = {
    Why.OVERFLOW: {400},
    Why.QUOTA: {400, 429},
    Why.WRONG_KEY: {400, 401, 403},
    Why.EXPIRED_KEY: {400, 401, 403},
    Why.FORBIDDEN: {403},
    Why.UNKNOWN_MODEL: {400, 404},
    Why.OUTPUT_LIMIT: {400},
}
HELLO = [ModelRequest.user_text_prompt("hello")]
Ask = Callable[[Model], Awaitable[ModelResponse]]


def once(model: Model) -> ModelSettings:
    """Settings with which a client does not try again by itself."""
    return {} if "max_retries" in model.unsupported_settings else {"max_retries": 0}


async def whole(model: Model) -> ModelResponse:
    return await model_request(model, HELLO, model_settings=once(model))


async def streamed(model: Model) -> ModelResponse:
    async with model_request_stream(model, HELLO, model_settings=once(model)) as stream:
        async for _ in stream:
            pass
        return stream.get()


WAYS = pytest.mark.parametrize("ask", [whole, streamed])
EACH = pytest.mark.parametrize("provider", DIALECTS, ids=str)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys_alone(monkeypatch, tmp_path)


def asked(provider: Provider, ask: Ask, answer: Answer) -> ModelResponse:
    with loopback(in_turn(answer)) as server:
        return asyncio.run(asked_at(server, provider, ask))


async def asked_at(server: Loopback, provider: Provider, ask: Ask) -> ModelResponse:
    async with provider.opened(server.url) as model:
        return await ask(model)


@EACH
@WAYS
def test_a_client_hears_text_usage_and_why_the_model_ended(provider: Provider, ask: Ask) -> None:
    said = Says("Grüße, 你好, and a longer text", Tokens(input=10, output=20, cache_read=30))

    heard = asked(provider, ask, said)
    cut = asked(provider, ask, Says("half a sen", stop=Stop.LENGTH))

    usage = heard.usage
    assert heard.text == said.text
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (40, 30, 20)
    assert (heard.finish_reason, cut.finish_reason) == ("stop", "length")


@EACH
@WAYS
def test_a_client_hears_a_tool_call(provider: Provider, ask: Ask) -> None:
    call = Call("read", {"path": "a.py"})

    heard = asked(provider, ask, Says(calls=(call,), stop=Stop.TOOL))

    (part,) = heard.tool_calls
    assert (part.tool_name, part.args_as_dict()) == ("read", {"path": "a.py"})


@EACH
@WAYS
def test_a_client_hears_why_it_was_refused(provider: Provider, ask: Ask) -> None:
    for why, statuses in REFUSALS.items():
        with pytest.raises(ModelHTTPError) as caught:
            asked(provider, ask, Refuses(why))

        assert caught.value.status_code in statuses


@ALL
def test_a_client_hears_an_overflow_in_the_words_of_its_server(provider: Provider) -> None:
    with pytest.raises(ModelHTTPError) as caught:
        asked(provider, streamed, Refuses(Why.OVERFLOW, 5_000, 4_096, server=provider.server))

    assert caught.value.status_code == 400
    assert "4096" in str(caught.value.body) or provider.name in {"openai-responses", "ollama"}


@EACH
def test_a_connection_that_breaks_is_an_error(provider: Provider) -> None:
    with pytest.raises(ModelAPIError):
        asked(provider, streamed, BreaksOff(Says("a text that is longer than that"), after=3))


@pytest.mark.parametrize("provider", DIALECTS[:4], ids=str)
def test_what_is_not_json_is_an_error(provider: Provider) -> None:
    with pytest.raises((UnexpectedModelBehavior, ModelAPIError)):
        asked(provider, streamed, Raw(b"<html>Bad Gateway</html>", content_type="text/html"))


@EACH
def test_who_leaves_is_noticed(provider: Provider) -> None:
    """Before an answer, in the middle of one, and in one without an end."""
    gate, text = Gate(), Says("one two three four five six")
    moments: list[Answer] = [Waits(gate, text, after=3), Endless()]
    if provider.name != "bedrock":  # whose client leaves a thread that reads until it is answered
        moments.append(Waits(gate, text))

    for answer in moments:
        with loopback(in_turn(answer)) as server:
            asyncio.run(_leaves(server, provider))
            server.wait_for_departures(1)

            assert len(server.requests) == 1


async def _leaves(server: Loopback, provider: Provider) -> None:
    async with provider.opened(server.url) as model:
        asking = asyncio.ensure_future(streamed(model))
        await asyncio.to_thread(server.wait_for_requests, 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@EACH
def test_who_waits_is_answered_when_the_gate_opens(provider: Provider) -> None:
    gate = Gate()

    async def ask(model: Model) -> ModelResponse:
        asking = asyncio.ensure_future(streamed(model))
        await asyncio.to_thread(server.wait_for_requests, 1)
        gate.open()
        return await asking

    with loopback(in_turn(Waits(gate, Says("at last, and in full"), after=2))) as server:
        heard = asyncio.run(asked_at(server, provider, ask))

        assert heard.text == "at last, and in full"
        assert server.departed == []


@EACH
def test_requests_are_remembered_and_a_script_may_decide_by_them(provider: Provider) -> None:
    def script(request: Request) -> Answer:
        return Says(f"{request.model} was asked")

    with loopback(script) as server:
        heard = asyncio.run(asked_at(server, provider, whole))

        (request,) = server.requests
        assert heard.text == f"{provider.model.partition(':')[2]} was asked"
        assert request.headers["content-type"] == "application/json"
        assert b"hello" in request.raw
