"""Names a cheap model of the same provider, for summaries: the same key works for it."""

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
"""By who serves the agent's model and who made it: the maker's small one for text, with a window
that holds a long session. On Azure a model is called what its owner called it: there is no name."""


def find_cheaper_model(model: str) -> str:
    """A cheaper model of the same maker where `model` is served, said in the same way.

    The model itself where none is known, or none is cheaper by input and output alike.
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
    """The name with what stands before the model's own: `anthropic:`, `bedrock/`, `us.`."""
    said = parse_model_name(model)
    meant = next((one for one in said if one.provider == provider), said[0])
    return f"{meant.prefix}{meant.region}{name}"
