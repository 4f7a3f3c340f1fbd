"""A model that cannot be had says in one line what is missing, and never what a key was."""

import asyncio
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from summariser_talk import items_of, material_of, steps

from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.adapters.models.summarizers.model_access import (
    OLLAMA_URL,
    describe_key_variables,
    find_model,
)
from cutbank.domain.errors import SummarizerFailedError

VARIABLES = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OLLAMA_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_KEY",
]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_missing_key_names_its_variable(subtests: pytest.Subtests) -> None:
    rows: list[tuple[str, str]] = [
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("openrouter:any/model", "OPENROUTER_API_KEY"),
    ]
    for model, variable in rows:
        with subtests.test(str(model)), pytest.raises(SummarizerFailedError) as caught:
            asyncio.run(LlmSummarizer(model).summarize(material_of(items_of(*steps(1)))))

        assert str(caught.value) == f"{model} needs {variable}; set that environment variable", (
            model
        )
        assert not caught.value.is_transient, model


def test_a_key_of_ones_own_is_looked_for_where_it_was_said_to_be() -> None:
    with pytest.raises(SummarizerFailedError, match="set the environment variable MY_KEY"):
        find_model("anthropic:claude-haiku-4-5", key_from="MY_KEY")


def test_a_key_of_ones_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    model = find_model("anthropic:claude-haiku-4-5", key_from="MY_KEY")

    assert model.client.api_key == "sk-mine"  # type: ignore[attr-defined]
    assert "sk-mine" not in repr(LlmSummarizer("anthropic:claude-haiku-4-5", key_from="MY_KEY"))


def test_an_unknown_model_says_how_models_are_named(subtests: pytest.Subtests) -> None:
    for model in ["gpt-5", "no-such-provider:model"]:
        with (
            subtests.test(str(model)),
            pytest.raises(SummarizerFailedError, match="PROVIDER:MODEL") as caught,
        ):
            find_model(model)

        assert "\n" not in str(caught.value), model


def test_a_provider_that_takes_no_address_says_what_does() -> None:
    with pytest.raises(SummarizerFailedError, match="openai-chat:MODEL"):
        find_model("openrouter:any/model", base_url="http://127.0.0.1:1")


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
        "import sys; from cutbank.adapters.models.summarizers import summarizer_catalog;"
        "summarizer_catalog.get_summarizer('llm', model='anthropic:x');"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'httpx2'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"


def test_a_model_that_is_handed_in_serves_one_event_loop_after_the_other() -> None:
    """A connection that the first loop left open would fail in the second."""
    answer = (
        b'{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": ['
        b'{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}]}'
    )

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            model = find_model(
                "openai-chat:m", base_url=f"http://127.0.0.1:{server.server_port}/v1"
            )
            llm = LlmSummarizer(model, is_streamed=False)
            texts = [
                asyncio.run(llm.summarize(material_of(items_of(*steps(1))))).text for _ in range(3)
            ]
        finally:
            server.shutdown()
            thread.join()

    assert texts == ["x"] * 3
