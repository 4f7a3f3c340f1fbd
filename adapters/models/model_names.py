"""Parses model names as agents write them, into serving provider and model.

Providers, OpenRouter, Bedrock, Vertex AI, LiteLLM and Pydantic AI all use names of their own.
"""

import re
from dataclasses import dataclass

_SAME_NAMES = (
    "anthropic azure cerebras cohere databricks deepseek fireworks google groq mistral moonshotai"
    " novita openai openrouter ovhcloud perplexity together x-ai zai"
)
PROVIDERS = {name: name for name in _SAME_NAMES.split()} | {
    "azure_ai": "azure",
    "bedrock": "aws",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "github_copilot": "github-copilot",
    "google-cloud": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "grok": "x-ai",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
    "z-ai": "zai",
}
"""Prefixes of model names, and the providers' names in genai-prices."""
PROXIES = ("litellm_proxy/", "litellm/", "gateway/")
"""Prefixes of proxies, after which the provider's prefix follows."""

FAMILIES = {
    "anthropic": r"claude",
    "openai": r"(?:chat)?gpt-|o[134](?:-|$)|codex",
    "google": r"gemini|gemma",
    "x-ai": r"grok",
    "deepseek": r"deepseek",
    "mistral": r"(?:open-)?(?:mi|code|dev|magi|mini)(?:x|s)tral|mixtral|pixtral",
    "meta": r"(?:meta-)?llama",
    "qwen": r"qwen|qwq",
    "moonshotai": r"kimi|moonshot",
    "zai": r"glm",
    "amazon": r"nova|titan",
    "cohere": r"command",
    "minimax": r"minimax",
}
_FAMILY = {family: re.compile(rf"(?:^|[./]){words}") for family, words in FAMILIES.items()}

_ARN = re.compile(r"arn:[^:]+:bedrock:[^:]*:[^:]*:(?:inference-profile|foundation-model)/(.+)")
_BEDROCK = re.compile(
    r"(?P<region>(?:us|eu|apac|jp|au|ca|in|global|us-gov)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshotai|nvidia"
    r"|openai|qwen|writer|zai)\.(?P<bare>[a-z].*)"
)
_VERTEX = re.compile(r"(?:.*/)?publishers/[^/]+/models/(.+)|models/(.+)")
_LARGER_WINDOW = re.compile(r"\[1m\]$")
_BEDROCK_VERSION = re.compile(r"-v\d+(?::\d+)?$")


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of a model's name."""

    prefix: str
    provider: str | None
    """The serving provider, as named in genai-prices; None if the model's name decides."""
    name: str
    """The provider's name for the model."""
    region: str = ""
    """On Bedrock, the region prefix of the calls: `us.`, `global.`, or empty."""

    @property
    def maker_name(self) -> str:
        """The maker's name for the model, without providers and routers."""
        if self.provider == "aws" and (found := _BEDROCK.fullmatch(self.name)):
            return _BEDROCK_VERSION.sub("", found["bare"])
        return self.name.rpartition("/")[2].partition(":")[0]

    @property
    def family(self) -> str | None:
        """The maker's family, for any serving provider."""
        return next(
            (family for family, words in _FAMILY.items() if words.match(self.maker_name)), None
        )


def parse_model_name(model: str) -> tuple[ModelName, ...]:
    """Return what a name may mean, most likely first; `anthropic/claude-...` is ambiguous."""
    text = _LARGER_WINDOW.sub("", model.strip().lower())
    before = ""
    for proxy in PROXIES:
        if text.startswith(proxy):
            before, text = proxy, text.removeprefix(proxy)
    if found := _ARN.fullmatch(text):
        return (_parse_bedrock(before, found[1]),)
    provider, mark, name = _split_provider(text)
    if mark == ":":
        return _list_served(f"{before}{provider}:", PROVIDERS[provider], name)
    if mark == "/" and provider in {"openrouter", "bedrock", "vertex_ai"}:
        return _list_served(f"{before}{provider}/", PROVIDERS[provider], name)
    if _BEDROCK.fullmatch(text):
        return (_parse_bedrock(before, text),)
    if mark == "/":
        seller = ModelName(before, "openrouter", text)
        return (seller, *_list_served(f"{before}{provider}/", PROVIDERS[provider], name))
    if found := _VERTEX.fullmatch(text):
        return (ModelName(before, None, found[1] or found[2]),)
    if "/" in text and not text.startswith(("accounts/", "@cf/")):
        return (ModelName(before, "openrouter", text),)
    return (ModelName(before, None, text),)


def _split_provider(text: str) -> tuple[str, str, str]:
    """Return a known provider, the separator, and the name; or two empty strings and the text."""
    for mark in ":/":
        provider, found, name = text.partition(mark)
        if found and name and provider in PROVIDERS:
            return provider, mark, name
    return "", "", text


def _list_served(before: str, provider: str, name: str) -> tuple[ModelName, ...]:
    if provider == "aws":
        found = _ARN.fullmatch(name)
        return (_parse_bedrock(before, found[1] if found else name),)
    if found := _VERTEX.fullmatch(name):
        name = found[1] or found[2]
    return (ModelName(before, provider, name),)


def _parse_bedrock(before: str, name: str) -> ModelName:
    found = _BEDROCK.fullmatch(name)
    return ModelName(before, "aws", name, (found["region"] or "") if found else "")
