"""Finds a cheap model of the same provider for summaries, so that the same API key works."""

from .model_catalog import look_up_facts
from .model_names import parse_model_name

CHEAP_MODELS = {
    ("anthropic", "anthropic"): "claude-haiku-5-5",
    ("aws", "anthropic"): "anthropic.claude-haiku-5-5",
    ("deepseek", "deepseek"): "deepseek-v4-flash",
    ("google", "anthropic"): "claude-haiku-5-5",
    ("google", "google"): "gemini-2.5-flash-lite",
    ("mistral", "mistral"): "mistral-small-2603",
    ("moonshotai", "moonshotai"): "kimi-k2.5",
    ("openai", "openai"): "gpt-6-luna",
    ("openrouter", "anthropic"): "anthropic/claude-haiku-5.5",
    ("openrouter", "deepseek"): "deepseek/deepseek-v4-flash",
    ("openrouter", "google"): "google/gemini-2.5-flash-lite",
    ("openrouter", "mistral"): "mistralai/mistral-small-2603",
    ("openrouter", "openai"): "openai/gpt-6-luna",
    ("openrouter", "zai"): "z-ai/glm-5.3-flash",
    ("x-ai", "x-ai"): "grok-4-1-fast-non-reasoning",
    ("zai", "zai"): "glm-5.3-flash",
    ("zhipuai", "zai"): "glm-5.3-flash",
}
"""Each maker's small text model for long sessions, by serving provider and maker. Azure is missing,
as its customers name their models.
"""


def find_cheaper_model(model: str) -> str:
    """Return a cheaper model of the same maker and provider, named in the same style.

    Returns the model itself if none is known, or none is cheaper for both input and output.
    """
    served = look_up_facts(model)
    if served is None or not served.prices or served.provider is None or served.family is None:
        return model
    named = CHEAP_MODELS.get((served.provider, served.family))
    if named is None:
        return model
    candidate = _copy_prefix(model, served.provider, named)
    cheap = look_up_facts(candidate)
    if cheap is None or not cheap.prices:
        return model
    ours, theirs = cheap.prices[0], served.prices[0]
    return candidate if ours.input < theirs.input and ours.output <= theirs.output else model


def _copy_prefix(model: str, provider: str, name: str) -> str:
    """Return the name with the prefixes of the model's own: `anthropic:`, `bedrock/`, `us.`."""
    said = parse_model_name(model)
    meant = next((one for one in said if one.provider == provider), said[0])
    return f"{meant.prefix}{meant.region}{name}"
