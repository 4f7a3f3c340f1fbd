"""Real provider clients, as pydantic-ai holds them, that are told to speak to the loopback."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.providers import infer_provider_class

KEY = "sk-cutbank-0123456789abcdefghijklmnopqrstuvwxyz"
"""A key that must be found nowhere but in the requests."""


@dataclass(frozen=True)
class Provider:
    name: str
    model: str
    path: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None
    """Whose words it uses for an overflow, if not those of the dialect."""

    def __str__(self) -> str:
        return self.name

    def base_url(self, url: str) -> str:
        return f"{url}{self.path}"

    @asynccontextmanager
    async def opened(self, url: str) -> AsyncIterator[Model]:
        at = {"base_url": self.base_url(url)}
        made = infer_model(self.model, lambda name: infer_provider_class(name)(**at))
        async with made as model:
            yield model
            if isinstance(model, BedrockConverseModel):
                model.client.close()


def _of_openai(name: str, model: str, path: str = "/v1", server: str | None = None) -> Provider:
    return Provider(name, model, path, {"OPENAI_API_KEY": KEY}, server)


DIALECTS = (
    Provider("anthropic", "anthropic:claude-haiku-4-5", variables={"ANTHROPIC_API_KEY": KEY}),
    _of_openai("openai-chat", "openai-chat:gpt-5-mini"),
    _of_openai("openai-responses", "openai-responses:gpt-5-mini"),
    Provider("google", "google:gemini-2.5-flash", variables={"GOOGLE_API_KEY": KEY}),
    Provider(
        "bedrock",
        "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0",
        variables={
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
        },
    ),
)
PROVIDERS = (
    *DIALECTS,
    Provider("ollama", "ollama:qwen3", "/v1", {"OLLAMA_API_KEY": KEY}, server="ollama"),
    _of_openai("openrouter", "openai-chat:anthropic/claude-haiku-4.5", "/api/v1", "openrouter"),
    _of_openai("vllm", "openai-chat:Qwen/Qwen3-8B", server="vllm"),
    _of_openai("llama.cpp", "openai-chat:gpt-oss", server="llama.cpp"),
)
"""These, and servers that speak one of the formats in words of their own."""
ALL = pytest.mark.parametrize("provider", PROVIDERS, ids=str)
WAYS = pytest.mark.parametrize(
    "is_streamed", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["streamed", "whole"]
)
"""Marks a test of both ways to ask; the usual one is enough where time is short."""
