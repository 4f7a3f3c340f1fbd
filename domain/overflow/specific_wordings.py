"""Lists what providers say of a prompt that is too long, the most specific sentences first."""

import re
from typing import Final

from .overflow_wording import make_wording

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
