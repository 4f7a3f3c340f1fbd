"""What OpenAI refuses, and in what other words the servers do that speak its dialect."""

from collections.abc import Callable
from typing import Any, NamedTuple

from .answers import Refuses, Why
from .wire import Refusal

_CHAT_OVERFLOW = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in "
    "{tokens} tokens. Please reduce the length of the messages."
)
_RESPONSES_OVERFLOW = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)


class _Error(NamedTuple):
    status: int
    kind: str
    code: str | None
    message: str


_REFUSALS: dict[Why, _Error] = {
    Why.OVERFLOW: _Error(400, "invalid_request_error", "context_length_exceeded", ""),
    Why.RATE_LIMIT: _Error(
        429,
        "tokens",
        "rate_limit_exceeded",
        "Rate limit reached for gpt-5-mini in organization org-0 on tokens per min (TPM): Limit "
        "200000, Used 199000, Requested 4000. Please try again in 900ms. Visit "
        "https://platform.openai.com/account/rate-limits to learn more.",
    ),
    Why.QUOTA: _Error(
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, read the docs: "
        "https://platform.openai.com/docs/guides/error-codes/api-errors.",
    ),
    Why.OVERLOADED: _Error(
        503,
        "server_error",
        None,
        "The server is currently overloaded with other requests. Sorry about that! You can retry "
        "your request, or contact us through our help center at help.openai.com if the error "
        "persists.",
    ),
    Why.INTERNAL: _Error(
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    Why.WRONG_KEY: _Error(
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: sk-wrong**key. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
    ),
    Why.EXPIRED_KEY: _Error(
        401,
        "invalid_request_error",
        "token_expired",
        "Your authentication token is expired. Please try signing in again.",
    ),
    Why.FORBIDDEN: _Error(
        403,
        "invalid_request_error",
        "model_not_found",
        "Project `proj_0` does not have access to model `gpt-5-mini`",
    ),
    Why.UNKNOWN_MODEL: _Error(
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `gpt-nothing` does not exist or you do not have access to it.",
    ),
    Why.OUTPUT_LIMIT: _Error(
        400,
        "invalid_request_error",
        "invalid_value",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
        "whereas you provided 100000.",
    ),
}


def refusal_of(refuses: Refuses, *, param: str) -> Refusal:
    """As OpenAI says it; `param` is what the endpoint calls its input."""
    if refuses.server:
        return SERVERS[refuses.server](refuses)
    status, kind, code, message = _REFUSALS[refuses.why]
    if refuses.why is Why.OVERFLOW:
        message = _CHAT_OVERFLOW if param == "messages" else _RESPONSES_OVERFLOW
    message = refuses.detail or message.format(tokens=refuses.tokens, limit=refuses.limit)
    headers = {"x-request-id": "req_5f0a6c0f3d6a4c0b9f2e8a7d6c5b4a39"}
    if refuses.retry_after_s is not None:
        headers["retry-after-ms"] = f"{refuses.retry_after_s * 1000:.0f}"
        headers["retry-after"] = f"{refuses.retry_after_s:g}"
    told = param if refuses.why is Why.OVERFLOW else None
    return Refusal(status, _error(message=message, type=kind, param=told, code=code), headers)


def _error(**fields: Any) -> dict[str, Any]:
    return {"error": fields}


def _vllm(refuses: Refuses) -> Refusal:
    message = (
        f"This model's maximum context length is {refuses.limit} tokens. However, you requested "
        f"0 output tokens and your prompt contains at least {refuses.tokens} input tokens, for a "
        f"total of at least {refuses.tokens} tokens. Please reduce the length of the input prompt "
        "or the number of requested output tokens."
    )
    return Refusal(
        400,
        _error(message=message, type="BadRequestError", param="input_tokens", code=400),
    )


def _llama_cpp(refuses: Refuses) -> Refusal:
    message = (
        f"request ({refuses.tokens} tokens) exceeds the available context size "
        f"({refuses.limit} tokens), try increasing it"
    )
    return Refusal(
        400,
        _error(
            code=400,
            message=message,
            type="exceed_context_size_error",
            n_prompt_tokens=refuses.tokens,
            n_ctx=refuses.limit,
        ),
    )


def _openrouter(refuses: Refuses) -> Refusal:
    message = (
        f"This endpoint's maximum context length is {refuses.limit} tokens. However, you requested "
        f"about {refuses.tokens} tokens ({refuses.tokens} of text input). Please reduce the length "
        'of either one, or use the "middle-out" transform to compress your prompt automatically.'
    )
    return Refusal(400, _error(message=message, code=400, metadata={"provider_name": None}))


def _ollama(refuses: Refuses) -> Refusal:
    message = (
        f"prompt too long; exceeded max context length by {refuses.tokens - refuses.limit} tokens"
    )
    return Refusal(
        400, _error(message=message, type="invalid_request_error", param=None, code=None)
    )


SERVERS: dict[str, Callable[[Refuses], Refusal]] = {
    "vllm": _vllm,
    "llama.cpp": _llama_cpp,
    "openrouter": _openrouter,
    "ollama": _ollama,
}
"""How each of them words an overflow."""
