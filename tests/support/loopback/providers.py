"""Real provider clients, as pydantic-ai holds them, that are told to speak to the loopback."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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


DIALECTS = (
    Provider("anthropic", "anthropic:claude-haiku-4-5", variables={"ANTHROPIC_API_KEY": KEY}),
    *(
        Provider(name, f"{name}:gpt-5-mini", "/v1", {"OPENAI_API_KEY": KEY})
        for name in ("openai-chat", "openai-responses")
    ),
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
