"""Real provider clients, as pydantic-ai holds them, that are told to speak to the loopback."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
