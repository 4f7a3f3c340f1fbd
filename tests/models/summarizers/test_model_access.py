"""A model that cannot be had says in one line what is missing, and never what a key was."""

import asyncio
import os
import subprocess
import sys

import pytest
from loopback.answers import Says, in_turn
from loopback.asked import MATERIAL, SUMMARY
from loopback.server import loopback
from pydantic_ai import exceptions as failed

from cutbank import LlmSummarizer, SummarizerFailedError
from cutbank.adapters.models.model_access import (
    OLLAMA_URL,
    describe_key_variables,
    find_model,
    translate_model_error,
)
from cutbank.adapters.models.notes_writer import TooLongError


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.endswith(("_API_KEY", "_BASE_URL", "_REGION")):
            monkeypatch.delenv(name)


def test_a_key_of_ones_own_is_looked_for_where_it_was_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SummarizerFailedError, match="set the environment variable MY_KEY"):
        find_model("anthropic:m", key_from="MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk-mine")

    assert find_model("anthropic:m", key_from="MY_KEY").client.api_key == "sk-mine"  # type: ignore[attr-defined]


def test_a_model_that_cannot_be_had_says_what_to_name() -> None:
    rows: list[tuple[str, dict[str, str], str]] = [
        ("gpt-5", {}, "PROVIDER:MODEL"),
        ("no-such-provider:model", {}, "PROVIDER:MODEL"),
        ("openrouter:any/model", {"base_url": "http://127.0.0.1:1"}, "openai-chat:MODEL"),
    ]
    for model, options, says in rows:
        with pytest.raises(SummarizerFailedError, match=says) as caught:
            find_model(model, **options)

        assert "\n" not in str(caught.value), model


def test_a_server_of_ones_own_needs_no_key_and_ollama_is_where_it_usually_is() -> None:
    model = find_model("openai-chat:qwen3", base_url="http://127.0.0.1:1/v1")

    assert model.base_url == "http://127.0.0.1:1/v1/"
    assert find_model("ollama:qwen3").base_url == f"{OLLAMA_URL}/"


def test_a_refused_key_is_named_by_its_variable() -> None:
    variables = {
        "anthropic:x": "ANTHROPIC_API_KEY",
        "openai-responses:x": "OPENAI_API_KEY",
        "gateway/openai:x": "OPENAI_API_KEY",
        "google-cloud:x": "GOOGLE_APPLICATION_CREDENTIALS",
        "groq:x": "GROQ_API_KEY",
    }
    assert {model: describe_key_variables(model, None) for model in variables} == variables
    assert {describe_key_variables(model, "MY_KEY") for model in variables} == {"MY_KEY"}


def test_naming_a_model_loads_nothing_of_its_provider() -> None:
    code = (
        "import sys; from cutbank.adapters.models import summarizer_catalog;"
        "summarizer_catalog.get_summarizer('llm', model='anthropic:x');"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'httpx2'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"


def test_a_model_that_is_handed_in_serves_one_event_loop_after_the_other() -> None:
    """A connection that the first loop left open would fail in the second."""
    with loopback(in_turn(Says(SUMMARY))) as server:
        llm = LlmSummarizer(find_model("openai-chat:m", base_url=f"{server.url}/v1"))
        for _ in range(3):
            assert SUMMARY in asyncio.run(llm.summarize(MATERIAL)).text


KEY = "sk-live-0123456789"
WORDS = "the user's own words"


def http(category: type[failed.ModelAPIError] | None, status: int, **more: str) -> Exception:
    return failed.ModelHTTPError.for_category(
        category,  # type: ignore[arg-type]
        status_code=status,
        model_name="m",
        body={"error": {"message": f"{WORDS} {KEY}"}},
        headers={"retry-after": "7", "authorization": KEY},
        provider_error_code=more.get("code"),
        provider_error_type=more.get("type"),
    )


PERMANENT = [
    (http(failed.ModelAuthenticationError, 401), "refused the key (HTTP 401); set THE_KEY"),
    (http(failed.ModelQuotaExceededError, 402, code="insufficient_quota"), "insufficient_quota"),
    (http(None, 418), "rejected the request (HTTP 418)"),
    (failed.ContentFilterError(WORDS), "content filter"),
    (failed.UserError(f"{WORDS} {KEY}"), "check the model's settings"),
    (RuntimeError(f"{WORDS} {KEY}"), "failed with a RuntimeError"),
    (type("NoCredentialsError", (Exception,), {})(KEY), "has no key; set THE_KEY"),
]
TRANSIENT = [
    (http(failed.ModelOverloadedError, 529, type="overloaded_error"), "overloaded"),
    (http(None, 503), "failed on its side"),
    (failed.ModelTimeoutError("m", WORDS), "did not answer in time"),
    (failed.ModelRequestTimeout("m", 3.0), "did not answer in time"),
    (failed.ModelConnectionError("m", WORDS), "the connection was lost"),
    (failed.ModelAPIError("m", WORDS, provider_error_code=f"{WORDS}!"), "broke off"),
    (failed.UnexpectedModelBehavior(WORDS, KEY), "cannot be read"),
    (KeyError(WORDS), "cannot be read"),
    (TimeoutError(WORDS), "did not answer in time"),
    (type("ReadTimeout", (Exception,), {})(WORDS), "did not answer in time"),
]


def test_a_failure_is_one_line_that_says_whether_to_try_again_and_gives_nothing_away() -> None:
    for is_transient, failures in ((False, PERMANENT), (True, TRANSIENT)):
        for error, says in failures:
            failure = translate_model_error(error, "anthropic:m", "THE_KEY")
            line = str(failure)

            assert isinstance(failure, SummarizerFailedError), error
            assert failure.is_transient is is_transient, error
            assert says in line, error
            assert line.startswith("anthropic:m "), error
            assert not [secret for secret in (KEY, WORDS, "\n") if secret in line], error


def test_servers_that_name_no_code_are_understood_by_their_words() -> None:
    words = {"message": "prompt too long; exceeded max context length by 14315 tokens"}
    for status in (400, 429):
        error = translate_model_error(failed.ModelHTTPError(status, "m", words), "m", "K")
        assert isinstance(error, TooLongError) is (status == 400), status
