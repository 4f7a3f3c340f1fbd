"""A model that cannot be had says in one line what is missing, and never what a key was."""

import asyncio
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from pydantic_ai.models import Model
from summariser_talk import always, items_of, material_of, steps

from cutbank.adapters.models.summarizers.llm_summarizer import Llm
from cutbank.adapters.models.summarizers.model_access import OLLAMA, key_of, named
from cutbank.domain.errors import SummariserFailedError

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


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("openrouter:any/model", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_names_its_variable(model: str, variable: str) -> None:
    with pytest.raises(SummariserFailedError) as caught:
        asyncio.run(Llm(model).summarise(material_of(items_of(*steps(1)))))

    assert str(caught.value) == f"{model} needs {variable}; set that environment variable"
    assert not caught.value.is_transient


def test_a_key_of_ones_own_is_looked_for_where_it_was_said_to_be() -> None:
    with pytest.raises(SummariserFailedError, match="set the environment variable MY_KEY"):
        named("anthropic:claude-haiku-4-5", key_from="MY_KEY")


def test_a_key_of_ones_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    model = named("anthropic:claude-haiku-4-5", key_from="MY_KEY")

    assert model.client.api_key == "sk-mine"  # type: ignore[attr-defined]
    assert "sk-mine" not in repr(Llm("anthropic:claude-haiku-4-5", key_from="MY_KEY"))


@pytest.mark.parametrize("model", ["gpt-5", "no-such-provider:model"])
def test_an_unknown_model_says_how_models_are_named(model: str) -> None:
    with pytest.raises(SummariserFailedError, match="PROVIDER:MODEL") as caught:
        named(model)

    assert "\n" not in str(caught.value)


def test_a_provider_that_takes_no_address_says_what_does() -> None:
    with pytest.raises(SummariserFailedError, match="openai-chat:MODEL"):
        named("openrouter:any/model", base_url="http://127.0.0.1:1")


def test_a_server_of_ones_own_needs_no_key() -> None:
    model = named("openai-chat:qwen3", base_url="http://127.0.0.1:1/v1")

    assert model.base_url == "http://127.0.0.1:1/v1/"


def test_ollama_is_looked_for_where_it_usually_is() -> None:
    assert named("ollama:qwen3").base_url == f"{OLLAMA}/"


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:x", "ANTHROPIC_API_KEY"),
        ("openai-responses:x", "OPENAI_API_KEY"),
        ("gateway/openai:x", "OPENAI_API_KEY"),
        ("google-cloud:x", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("groq:x", "GROQ_API_KEY"),
    ],
)
def test_a_refused_key_is_named_by_its_variable(model: str, variable: str) -> None:
    assert key_of(model, None) == variable
    assert key_of(model, "MY_KEY") == "MY_KEY"


def test_naming_a_model_loads_nothing_of_its_provider() -> None:
    code = (
        "import sys; from cutbank.adapters.models.summarizers.summarizer_catalog import "
        "summariser_named;"
        "summariser_named('llm', model='anthropic:x');"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'httpx2'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"


def test_a_function_makes_a_model_for_each_summary() -> None:
    made: list[Model] = []

    def make() -> Model:
        made.append(always("- said (#1)").model)
        return made[-1]

    for _ in range(2):
        asyncio.run(Llm(make).summarise(material_of(items_of(*steps(1)))))

    assert len(made) == 2


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
            model = named("openai-chat:m", base_url=f"http://127.0.0.1:{server.server_port}/v1")
            llm = Llm(model, is_streamed=False)
            texts = [
                asyncio.run(llm.summarise(material_of(items_of(*steps(1))))).text for _ in range(3)
            ]
        finally:
            server.shutdown()
            thread.join()

    assert texts == ["x"] * 3
