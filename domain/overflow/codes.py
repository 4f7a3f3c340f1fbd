"""Lists error codes that mean an overflow, and codes that rule one out."""

from typing import Final

OVERFLOW_CODES: Final = {
    "context_length_exceeded": None,  # OpenAI, Azure, Groq and compatible servers
    "context_window_exceeded": None,
    "contextwindowexceedederror": None,
    "exceed_context_size_error": "llama.cpp",
    "model_context_window_exceeded": None,
    "model_max_prompt_tokens_exceeded": "github-copilot",
    "modelcontextwindowexceedederror": None,
    "1261": "zhipu",
}
"""Codes that always mean an overflow, with the provider if only one uses it."""

OTHER_STATUSES: Final = frozenset({401, 402, 403, 429, 529})
OTHER_CODES: Final = frozenset(
    {
        "array_above_max_length",
        "authentication_error",
        "authenticationerror",
        "billing_error",
        "exceeded_current_quota_error",
        "insufficient_quota",
        "model_capacity_exhausted",
        "modelauthenticationerror",
        "modelquotaexceedederror",
        "modelratelimiterror",
        "overloaded_error",
        "overloadederror",
        "permission_error",
        "permissiondeniederror",
        "rate_limit_error",
        "rate_limit_exceeded",
        "rate_limit_reached_error",
        "rate_limited",
        "ratelimiterror",
        "ratelimitexceeded",
        "request_too_large",  # bytes of the body, not tokens of the context
        "requesttoolargeerror",
        "resource_exhausted",
        "string_above_max_length",
        "throttlingexception",
        "token_quota_exceeded",
        "toomanyrequestsexception",
    }
)
"""Codes of errors about rates, money, keys, load or the size of one piece."""
