"""How providers, and servers that speak their dialects, word what they refuse."""

from collections.abc import Mapping
from typing import Any

from .answers import Refusal, Refuses, Why

_WORDS = {
    Why.QUOTA: "Your credit balance is too low. Please go to Plans & Billing to purchase credits.",
    Why.OVERLOADED: "Overloaded. Please try again later.",
    Why.INTERNAL: "Internal server error. Try your request again.",
    Why.WRONG_KEY: "The API key is not valid: sk-wrong**key.",
    Why.EXPIRED_KEY: "Your authentication token has expired.",
    Why.FORBIDDEN: "You do not have access to the specified model.",
    Why.UNKNOWN_MODEL: "The model does not exist, or you do not have access to it.",
}
"""What they say in about the same words. What speaks of lengths is kept as each of them says it."""


def word(refuses: Refuses, own: Mapping[Why, str]) -> str:
    message = own.get(refuses.why) or _WORDS[refuses.why]
    return refuses.detail or message.format(tokens=refuses.tokens, limit=refuses.limit)


_OPENAI_ERRORS: dict[Why, tuple[int, str, str | None]] = {
    Why.OVERFLOW: (400, "invalid_request_error", "context_length_exceeded"),
    Why.RATE_LIMIT: (429, "tokens", "rate_limit_exceeded"),
    Why.QUOTA: (429, "insufficient_quota", "insufficient_quota"),
    Why.OVERLOADED: (503, "server_error", None),
    Why.INTERNAL: (500, "server_error", None),
    Why.WRONG_KEY: (401, "invalid_request_error", "invalid_api_key"),
    Why.EXPIRED_KEY: (401, "invalid_request_error", "token_expired"),
    Why.FORBIDDEN: (403, "invalid_request_error", "model_not_found"),
    Why.UNKNOWN_MODEL: (404, "invalid_request_error", "model_not_found"),
    Why.OUTPUT_LIMIT: (400, "invalid_request_error", "invalid_value"),
}
_OPENAI_WORDS = {
    Why.RATE_LIMIT: "Rate limit reached for gpt-5-mini in organization org-0 on tokens per min "
    "(TPM): Limit 200000, Used 199000, Requested 4000. Please try again in 900ms.",
    Why.OUTPUT_LIMIT: "max_tokens is too large: 100000. This model supports at most 16384 "
    "completion tokens, whereas you provided 100000.",
}
_OPENAI_OVERFLOWS = {
    "messages": "This model's maximum context length is {limit} tokens. However, your messages "
    "resulted in {tokens} tokens. Please reduce the length of the messages.",
    "input": "Your input exceeds the context window of this model. Please adjust your input and "
    "try again.",
}
_SERVER_OVERFLOWS = {
    "vllm": "This model's maximum context length is {limit} tokens. However, you requested 0 "
    "output tokens and your prompt contains at least {tokens} input tokens, for a total of at "
    "least {tokens} tokens. Please reduce the length of the input prompt or the number of "
    "requested output tokens.",
    "llama.cpp": "request ({tokens} tokens) exceeds the available context size ({limit} tokens), "
    "try increasing it",
    "openrouter": "This endpoint's maximum context length is {limit} tokens. However, you "
    "requested about {tokens} tokens ({tokens} of text input). Please reduce the length of either "
    'one, or use the "middle-out" transform to compress your prompt automatically.',
    "ollama": "prompt too long; exceeded max context length by {over} tokens",
}
_SERVER_FIELDS: dict[str, dict[str, Any]] = {
    "vllm": {"type": "BadRequestError", "param": "input_tokens", "code": 400},
    "llama.cpp": {"type": "exceed_context_size_error", "code": 400},
    "openrouter": {"code": 400, "metadata": {"provider_name": None}},
    "ollama": {"type": "invalid_request_error", "param": None, "code": None},
}
"""How servers that speak OpenAI's dialect word an overflow."""


def refuse_as_openai(refuses: Refuses, *, param: str) -> Refusal:
    """As OpenAI says it; `param` is what the endpoint calls its input."""
    if refuses.server:
        tokens, limit = refuses.tokens, refuses.limit
        message = _SERVER_OVERFLOWS[refuses.server]
        message = message.format(tokens=tokens, limit=limit, over=tokens - limit)
        fields = _SERVER_FIELDS[refuses.server]
        if refuses.server == "llama.cpp":
            fields = {**fields, "n_prompt_tokens": tokens, "n_ctx": limit}
        return Refusal(400, {"error": {"message": message, **fields}})
    status, kind, code = _OPENAI_ERRORS[refuses.why]
    message = word(refuses, {**_OPENAI_WORDS, Why.OVERFLOW: _OPENAI_OVERFLOWS[param]})
    headers = {"x-request-id": "req_5f0a6c0f3d6a4c0b9f2e8a7d6c5b4a39"}
    if refuses.retry_after_s is not None:
        headers["retry-after-ms"] = f"{refuses.retry_after_s * 1000:.0f}"
        headers["retry-after"] = f"{refuses.retry_after_s:g}"
    told = param if refuses.why is Why.OVERFLOW else None
    error = {"message": message, "type": kind, "param": told, "code": code}
    return Refusal(status, {"error": error}, headers)
