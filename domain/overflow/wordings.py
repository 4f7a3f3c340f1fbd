"""Lists the codes and sentences by which providers refuse a prompt that is too long."""

import re
from dataclasses import dataclass
from typing import Final

_NUMBER = r"[\d,]+"


@dataclass(frozen=True, slots=True)
class OverflowWording:
    """A sentence, as a pattern with the optional groups `tokens` and `limit`."""

    name: str
    pattern: re.Pattern[str]
    provider: str | None = None
    """The only provider that uses it, if there is one."""


def make_wording(name: str, pattern: str, provider: str | None = None) -> OverflowWording:
    """Return a wording; `<tokens>` and `<limit>` match numbers as groups, `<n>` any number."""
    for group in ("tokens", "limit"):
        pattern = pattern.replace(f"<{group}>", f"(?P<{group}>{_NUMBER})")
    return OverflowWording(
        name, re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE), provider
    )


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
OTHER_CODES: Final = frozenset({
    "array_above_max_length", "string_above_max_length", "request_too_large",
    "requesttoolargeerror", "authentication_error", "authenticationerror",
    "modelauthenticationerror", "permission_error", "permissiondeniederror", "billing_error",
    "exceeded_current_quota_error", "insufficient_quota", "modelquotaexceedederror",
    "token_quota_exceeded", "modelratelimiterror", "rate_limit_error", "rate_limit_exceeded",
    "rate_limit_reached_error", "rate_limited", "ratelimiterror", "ratelimitexceeded",
    "throttlingexception", "toomanyrequestsexception", "model_capacity_exhausted",
    "overloaded_error", "overloadederror", "resource_exhausted",
})  # fmt: skip
"""Codes of errors about rates, money, keys, load or the size of one piece.

`request_too_large` is about bytes of the body, not tokens of the context.
"""


RATE_OR_QUOTA_PATTERN: Final = re.compile(
    r"rate[ _-]?limit|tokens? per (?:min|hour|day|second)|\bT[PK][MD]\b|\bRP[MSD]\b"
    r"|too many requests|throttl|\bquota\b|wait (?:a moment )?(?:before|and) try"
    r"|try again (?:in|later)"
    r"|(?:more|add|purchase|insufficient|available) (?:credits?|balance|funds)|billing"
    r"|monthly (?:spending )?limit|overloaded|capacity (?:exceeded|available)|extra usage",
    re.IGNORECASE,
)
"""Rates, quota, money and load: stronger evidence than any words about length."""

OTHER_SIZES_PATTERN: Final = re.compile(
    r"output|completion tokens|max_(?:new_|completion_|total_)?tokens|maximum tokens|maxoutput"
    r"|max tokens (?:value|must|should)|tokens? to generate|\bgenerat(?:e|ed|ion)\b"
    r"|image|pdf|pages?\b|file|pixels|\d ?[kmg]i?b\b|bytes|payload|entity too large"
    r"|array|string too long|embedding|tools?\b|schema|must be at least|too small",
    re.IGNORECASE,
)
"""Limits of answers, images, files: weaker than a specific wording, stronger than a weak one."""


SPECIFIC_WORDINGS: Final = (
    make_wording(
        "prompt is too long: N tokens > M maximum",
        r"prompt is too long: <tokens> tokens > <limit> maximum",
        "anthropic",
    ),
    make_wording(
        "input length and max_tokens exceed context limit",
        r"input length and [`']?max_tokens[`']? exceed context limit"
        r"(?:: <tokens> \+ <n> > <limit>)?",
        "anthropic",
    ),
    make_wording(
        "prompt is too long: N, model maximum context length: M",
        r"prompt is too long: <tokens>, model maximum context length: <limit>",
        "fireworks",
    ),
    make_wording("exceeds the context window", r"exceeds the (?:<n>-token )?context window"),
    make_wording(
        "input tokens exceed the configured limit",
        r"input tokens exceed the configured limit of <limit> tokens"
        r"(?:\. your messages resulted in <tokens> tokens)?",
        "openai",
    ),
    make_wording(
        "input token count exceeds the maximum",
        r"input token count (?:\(<tokens>\) )?exceeds the maximum"
        r"(?: number of tokens allowed \(?<limit>)?",
        "google",
    ),
    make_wording(
        "input token count, but model only supports up to N",
        r"input token count is <tokens> but (?:the )?model only supports up to <limit>",
        "google",
    ),
    make_wording(
        "maximum prompt length is N",
        r"maximum prompt length is <limit>(?: but the request contains <tokens> tokens)?",
        "xai",
    ),
    make_wording(
        "requested output tokens and prompt exceed maximum context length",
        r"maximum context length is <limit> tokens?\b.{0,80}output tokens and your"
        r" (?:prompt|request) (?:contains|has) (?:at least )?<tokens> input tokens",
        "vllm",
    ),
    make_wording(
        "request has more input tokens than the maximum context length",
        r"maximum context length is <limit> tokens?\b.{0,60}your request has <tokens> input tokens",
        "vllm",
    ),
    make_wording(
        "maximum context length, messages resulted in N tokens",
        r"maximum context length is <limit> tokens?\b.{0,40}"
        r"messages resulted in (?:over )?<tokens> tokens",
    ),
    make_wording(
        "maximum context length, requested N tokens",
        r"maximum context length is <limit> tokens?\b.{0,40}requested (?:about )?<tokens> tokens",
    ),
    make_wording(
        "maximum context length is N tokens", r"maximum context length is <limit> tokens?\b"
    ),
    make_wording(
        "exceeds the maximum context length",
        r"(?:length \(<tokens>\) )?exceeds? (?:the )?(?:model'?s )?maximum context length"
        r"(?: (?:of )?\(?<limit>)?",
    ),
    make_wording(
        "input exceeds the maximum allowed length",
        r"input length \(?<tokens>(?: tokens\))? exceeds the maximum allowed (?:input )?length"
        r" (?:of )?\(?<limit> tokens",
    ),
    make_wording(
        "input is longer than the context length",
        r"input \(<tokens> tokens\) is longer than the model'?s context length \(<limit> tokens",
    ),
    make_wording(
        "prompt is too long to fit into the model",
        r"prompt \(total length <tokens>\) is too long to fit into the model"
        r" \(context length <limit>\)",
        "vllm",
    ),
    make_wording(
        "prompt tokens is longer than the maximum model length",
        r"prompt (?:\(length <tokens>\) )?is longer than the maximum model length of <limit>",
        "vllm",
    ),
    make_wording(
        "inputs tokens + max_new_tokens must be <= N",
        r"inputs`? tokens \+ `?max_new_tokens`?\s+must be <= <limit>"
        r"(?:\. given: <tokens> `?inputs`? tokens)?",
    ),
    make_wording(
        "inputs must have less than N tokens",
        r"inputs`? must have less than <limit> tokens(?:\. given: <tokens>)?",
    ),
    make_wording(
        "prompt_tokens must be less than max_seq_len",
        r"(?:prompt_tokens|max_total_tokens) \(<tokens>\) must be less than (?:or equal to )?"
        r"max_seq_len \(<limit>\)",
        "siliconflow",
    ),
    make_wording(
        "request exceeds the available context size",
        r"request (?:\(<tokens> tokens\) )?exceeds the available context size"
        r"(?: \(<limit> tokens)?",
        "llama.cpp",
    ),
    make_wording(
        "requested tokens exceed context window",
        r"requested tokens (?:\(<tokens>\) )?exceed context window of <limit>",
        "llama.cpp",
    ),
    make_wording(
        "tokens to keep is greater than the context length",
        r"tokens to keep from the initial prompt is greater than the context length"
        r"(?: \(n_keep: <tokens>\s*>=\s*n_ctx: <limit>)?",
        "lm-studio",
    ),
    make_wording(
        "keep the first N tokens when context overflows",
        r"keep the first <tokens> tokens when (?:the )?context (?:the )?overflows"
        r"(?:.{0,60}context length of only <limit> tokens)?",
        "lm-studio",
    ),
    make_wording(
        "prompt too long; exceeded max context length",
        r"prompt too long; exceeded (?:max )?context length",
        "ollama",
    ),
    make_wording(
        "input length exceeds the context length", r"input length exceeds the context length"
    ),
    make_wording(
        "prompt token count exceeds the limit",
        r"prompt token count of <tokens> exceeds the limit of <limit>",
        "github-copilot",
    ),
    make_wording(
        "exceeded model token limit",
        r"exceeded model token limit(?:: <limit> \(re ?quested: <tokens>\))?",
        "kimi",
    ),
    make_wording("context window exceeds limit", r"context window exceeds limit", "minimax"),
    make_wording(
        "too large for model with N maximum context length",
        r"(?:prompt contains <tokens> tokens.{0,60})?too large for model with <limit>"
        r" maximum context length",
        "mistral",
    ),
    make_wording(
        "current length is N while limit is M",
        r"reduce the length of the messages or completion\. current length is <tokens>"
        r" while limit is <limit>",
        "cerebras",
    ),
    make_wording(
        "reduce the length of the messages",
        r"reduce the length of the (?:input )?(?:messages|prompt|either one)",
    ),
    make_wording(
        "range of input length should be",
        r"range of input length should be \[1, <limit>\]",
        "dashscope",
    ),
    make_wording("prompt exceeds max length", r"prompt exceeds max length", "zhipu"),
    make_wording(
        "prompt exceeds maximum length", r"prompt exceeds (?:the )?max(?:imum)? context length"
    ),
    make_wording(
        "prompt tokens exceed model maximum",
        r"prompt tokens \(<tokens>\) exceed model maximum \(<limit>\)",
        "bedrock",
    ),
    make_wording(
        "input is too long for requested model", r"input is too long for requested model", "bedrock"
    ),
    make_wording(
        "total number of tokens cannot exceed N",
        r"too many tokens: total number of tokens .{0,40}cannot exceed <limit>"
        r"(?: - received <tokens>)?",
        "cohere",
    ),
    make_wording(
        "too many tokens: size limit exceeded",
        r"too many tokens: size limit exceeded by <n> tokens",
        "cohere",
    ),
    make_wording(
        "prompt is larger than the configured context size",
        r"prompt has <tokens> tokens?, but the configured context size is <limit>",
    ),
    make_wording("context_length_exceeded", r"context_length_exceeded"),
    make_wording("model_context_window_exceeded", r"model_context_window_exceeded"),
    make_wording("exceed_context_size_error", r"exceed_context_size_error", "llama.cpp"),
    make_wording(
        "out of room in the context window", r"ran out of room in the model'?s context window"
    ),
    make_wording("prompt is too long", r"\bprompt (?:is )?too long\b"),
)

ANSWER_SHARE_PATTERN: Final = re.compile(
    r"(?:\(|, (?:and )?|; )([\d,]+) (?:in|for|of) (?:the )?(?:completion|output)", re.IGNORECASE
)
"""Tokens reserved for the answer, if the message gives a total."""


WEAK_WORDINGS: Final = tuple(
    make_wording(name, pattern)
    for name, pattern in (
        ("context length exceeded", r"context[ _]length[ _]exceeded"),
        ("context window exceeded", r"context[ _]window[ _](?:is |was )?exceeded"),
        (
            "exceeds context",
            r"exceeds? (?:the )?(?:model'?s )?context (?:window|length|limit|size)",
        ),
        ("greater than the context length", r"greater than the context length"),
        ("input token count exceeds the maximum", r"input token count.{0,80}exceeds the maximum"),
        ("input is too long", r"input (?:is )?too long"),
        ("exceeds the limit of N", r"exceeds the limit of <limit>"),
        ("maximum context", r"max(?:imum)? context"),
        ("context length", r"context[ _]length"),
        ("too many tokens", r"too many tokens"),
        ("token limit", r"token limit"),
        ("max tokens", r"max tokens"),
    )
)
