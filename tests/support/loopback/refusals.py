"""How the providers put a refusal."""

from typing import Any

from .answers import Refusal, Refuses, Why

_WORDS = {
    Why.OVERFLOW: "prompt is too long: {tokens} tokens > {limit} maximum",
    Why.RATE_LIMIT: "Rate limit reached: limit 200000, used 199000. Please try again in 900ms.",
    Why.INTERNAL: "Internal server error. Try your request again.",
    Why.WRONG_KEY: "The API key is not valid: sk-wrong**key.",
}
_OPENAI_ERRORS: dict[Why, tuple[int, str, str | None]] = {
    Why.OVERFLOW: (400, "invalid_request_error", "context_length_exceeded"),
    Why.RATE_LIMIT: (429, "tokens", "rate_limit_exceeded"),
    Why.INTERNAL: (500, "server_error", None),
    Why.WRONG_KEY: (401, "invalid_request_error", "invalid_api_key"),
}


def word(refuses: Refuses) -> str:
    return refuses.detail or _WORDS[refuses.why].format(tokens=refuses.tokens, limit=refuses.limit)


def retry_headers(refuses: Refuses) -> dict[str, str]:
    return {} if refuses.retry_after_s is None else {"retry-after": f"{refuses.retry_after_s:g}"}


def refuse_as_openai(refuses: Refuses) -> Refusal:
    status, kind, code = _OPENAI_ERRORS[refuses.why]
    error: dict[str, Any] = {"message": word(refuses), "type": kind, "param": None, "code": code}
    return Refusal(status, {"error": error}, retry_headers(refuses))
