"""Lists the codes and sentences by which providers refuse a prompt that is too long."""

import re
from typing import Final


def _parse_wordings(table: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a table, in order; indented lines continue a pattern.

    `<tokens>` and `<limit>` match numbers as groups, and `<n>` any number.
    """
    patterns = []
    for entry in re.split(r"\n(?! )", table.strip()):
        pattern = re.sub(r"\s*\n\s*", " ", entry).replace("<n>", r"[\d,]+")
        pattern = re.sub(r"<(tokens|limit)>", r"(?P<\1>[\\d,]+)", pattern)
        patterns.append(re.compile(pattern, re.IGNORECASE))
    return tuple(patterns)


OVERFLOW_CODES: Final = frozenset({
    "context_length_exceeded", "context_window_exceeded", "contextwindowexceedederror",
    "exceed_context_size_error", "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded", "modelcontextwindowexceedederror", "1261",
})  # fmt: skip
"""Codes that always mean an overflow."""

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


SPECIFIC_WORDINGS: Final = _parse_wordings(r"""
prompt is too long: <tokens> tokens > <limit> maximum
input length and [`']?max_tokens[`']? exceed context limit(?:: <tokens> \+ <n> > <limit>)?
prompt is too long: <tokens>, model maximum context length: <limit>
exceeds the (?:<n>-token )?context window
input tokens exceed the configured limit of <limit> tokens(?:\. your messages resulted in
    <tokens> tokens)?
input token count (?:\(<tokens>\) )?exceeds the maximum(?: number of tokens allowed
    \(?<limit>)?
input token count is <tokens> but (?:the )?model only supports up to <limit>
maximum prompt length is <limit>(?: but the request contains <tokens> tokens)?
maximum context length is <limit> tokens?\b.{0,80}output tokens and your (?:prompt|request)
    (?:contains|has) (?:at least )?<tokens> input tokens
maximum context length is <limit> tokens?\b.{0,60}your request has <tokens> input tokens
maximum context length is <limit> tokens?\b.{0,40}messages resulted in (?:over )?<tokens>
    tokens
maximum context length is <limit> tokens?\b.{0,40}requested (?:about )?<tokens> tokens
maximum context length is <limit> tokens?\b
(?:length \(<tokens>\) )?exceeds? (?:the )?(?:model'?s )?maximum context
    length(?: (?:of )?\(?<limit>)?
input length \(?<tokens>(?: tokens\))? exceeds the maximum allowed (?:input )?length
    (?:of )?\(?<limit> tokens
input \(<tokens> tokens\) is longer than the model'?s context length \(<limit> tokens
prompt \(total length <tokens>\) is too long to fit into the model \(context length <limit>\)
prompt (?:\(length <tokens>\) )?is longer than the maximum model length of <limit>
inputs`? tokens \+ `?max_new_tokens`?\s+must be <= <limit>(?:\. given: <tokens> `?inputs`?
    tokens)?
inputs`? must have less than <limit> tokens(?:\. given: <tokens>)?
(?:prompt_tokens|max_total_tokens) \(<tokens>\) must be less than (?:or equal to )?max_seq_len
    \(<limit>\)
request (?:\(<tokens> tokens\) )?exceeds the available context size(?: \(<limit> tokens)?
requested tokens (?:\(<tokens>\) )?exceed context window of <limit>
tokens to keep from the initial prompt is greater than the context length(?: \(n_keep:
    <tokens>\s*>=\s*n_ctx: <limit>)?
keep the first <tokens> tokens when (?:the )?context (?:the )?overflows(?:.{0,60}context length
    of only <limit> tokens)?
prompt too long; exceeded (?:max )?context length
input length exceeds the context length
prompt token count of <tokens> exceeds the limit of <limit>
exceeded model token limit(?:: <limit> \(re ?quested: <tokens>\))?
context window exceeds limit
(?:prompt contains <tokens> tokens.{0,60})?too large for model with <limit> maximum context
    length
reduce the length of the messages or completion\. current length is <tokens> while limit is
    <limit>
reduce the length of the (?:input )?(?:messages|prompt|either one)
range of input length should be \[1, <limit>\]
prompt exceeds max length
prompt exceeds (?:the )?max(?:imum)? context length
prompt tokens \(<tokens>\) exceed model maximum \(<limit>\)
input is too long for requested model
too many tokens: total number of tokens .{0,40}cannot exceed <limit>(?: - received <tokens>)?
too many tokens: size limit exceeded by <n> tokens
prompt has <tokens> tokens?, but the configured context size is <limit>
context_length_exceeded
model_context_window_exceeded
exceed_context_size_error
ran out of room in the model'?s context window
\bprompt (?:is )?too long\b
""")

ANSWER_SHARE_PATTERN: Final = re.compile(
    r"(?:\(|, (?:and )?|; )([\d,]+) (?:in|for|of) (?:the )?(?:completion|output)", re.IGNORECASE
)
"""Tokens reserved for the answer, if the message gives a total."""


WEAK_WORDINGS: Final = _parse_wordings(r"""
context[ _]window[ _](?:is |was )?exceeded
exceeds? (?:the )?(?:model'?s )?context (?:window|length|limit|size)
input token count.{0,80}exceeds the maximum
input (?:is )?too long
exceeds the limit of <limit>
max(?:imum)? context
context[ _]length
too many tokens
token limit
max tokens
""")
