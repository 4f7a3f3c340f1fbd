"""What providers really say of a prompt that is too long, the most telling sentence first."""

import re
from typing import Final

from .wording import wording

SPECIFIC: Final = (
    wording(
        "prompt is too long: N tokens > M maximum",
        r"prompt is too long: <tokens> tokens > <limit> maximum",
        "anthropic",
    ),
    wording(
        "input length and max_tokens exceed context limit",
        r"input length and [`']?max_tokens[`']? exceed context limit"
        r"(?:: <tokens> \+ <n> > <limit>)?",
        "anthropic",
    ),
    wording(
        "prompt is too long: N, model maximum context length: M",
        r"prompt is too long: <tokens>, model maximum context length: <limit>",
        "fireworks",
    ),
    wording("exceeds the context window", r"exceeds the (?:<n>-token )?context window"),
    wording(
        "input tokens exceed the configured limit",
        r"input tokens exceed the configured limit of <limit> tokens"
        r"(?:\. your messages resulted in <tokens> tokens)?",
        "openai",
    ),
    wording(
        "input token count exceeds the maximum",
        r"input token count (?:\(<tokens>\) )?exceeds the maximum"
        r"(?: number of tokens allowed \(?<limit>)?",
        "google",
    ),
    wording(
        "input token count, but model only supports up to N",
        r"input token count is <tokens> but (?:the )?model only supports up to <limit>",
        "google",
    ),
    wording(
        "maximum prompt length is N",
        r"maximum prompt length is <limit>(?: but the request contains <tokens> tokens)?",
        "xai",
    ),
    wording(
        "requested output tokens and prompt exceed maximum context length",
        r"maximum context length is <limit> tokens?\b.{0,80}output tokens and your"
        r" (?:prompt|request) (?:contains|has) (?:at least )?<tokens> input tokens",
        "vllm",
    ),
    wording(
        "request has more input tokens than the maximum context length",
        r"maximum context length is <limit> tokens?\b.{0,60}your request has <tokens> input tokens",
        "vllm",
    ),
    wording(
        "maximum context length, messages resulted in N tokens",
        r"maximum context length is <limit> tokens?\b.{0,40}"
        r"messages resulted in (?:over )?<tokens> tokens",
    ),
    wording(
        "maximum context length, requested N tokens",
        r"maximum context length is <limit> tokens?\b.{0,40}requested (?:about )?<tokens> tokens",
    ),
    wording("maximum context length is N tokens", r"maximum context length is <limit> tokens?\b"),
    wording(
        "exceeds the maximum context length",
        r"(?:length \(<tokens>\) )?exceeds? (?:the )?(?:model'?s )?maximum context length"
        r"(?: (?:of )?\(?<limit>)?",
    ),
    wording(
        "input exceeds the maximum allowed length",
        r"input length \(?<tokens>(?: tokens\))? exceeds the maximum allowed (?:input )?length"
        r" (?:of )?\(?<limit> tokens",
    ),
    wording(
        "input is longer than the context length",
        r"input \(<tokens> tokens\) is longer than the model'?s context length \(<limit> tokens",
    ),
    wording(
        "prompt is too long to fit into the model",
        r"prompt \(total length <tokens>\) is too long to fit into the model"
        r" \(context length <limit>\)",
        "vllm",
    ),
    wording(
        "prompt tokens is longer than the maximum model length",
        r"prompt (?:\(length <tokens>\) )?is longer than the maximum model length of <limit>",
        "vllm",
    ),
    wording(
        "inputs tokens + max_new_tokens must be <= N",
        r"inputs`? tokens \+ `?max_new_tokens`?\s+must be <= <limit>"
        r"(?:\. given: <tokens> `?inputs`? tokens)?",
    ),
    wording(
        "inputs must have less than N tokens",
        r"inputs`? must have less than <limit> tokens(?:\. given: <tokens>)?",
    ),
    wording(
        "prompt_tokens must be less than max_seq_len",
        r"(?:prompt_tokens|max_total_tokens) \(<tokens>\) must be less than (?:or equal to )?"
        r"max_seq_len \(<limit>\)",
        "siliconflow",
    ),
    wording(
        "request exceeds the available context size",
        r"request (?:\(<tokens> tokens\) )?exceeds the available context size"
        r"(?: \(<limit> tokens)?",
        "llama.cpp",
    ),
    wording(
        "requested tokens exceed context window",
        r"requested tokens (?:\(<tokens>\) )?exceed context window of <limit>",
        "llama.cpp",
    ),
    wording(
        "tokens to keep is greater than the context length",
        r"tokens to keep from the initial prompt is greater than the context length"
        r"(?: \(n_keep: <tokens>\s*>=\s*n_ctx: <limit>)?",
        "lm-studio",
    ),
    wording(
        "keep the first N tokens when context overflows",
        r"keep the first <tokens> tokens when (?:the )?context (?:the )?overflows"
        r"(?:.{0,60}context length of only <limit> tokens)?",
        "lm-studio",
    ),
    wording(
        "prompt too long; exceeded max context length",
        r"prompt too long; exceeded (?:max )?context length",
        "ollama",
    ),
    wording("input length exceeds the context length", r"input length exceeds the context length"),
    wording(
        "prompt token count exceeds the limit",
        r"prompt token count of <tokens> exceeds the limit of <limit>",
        "github-copilot",
    ),
    wording(
        "exceeded model token limit",
        r"exceeded model token limit(?:: <limit> \(re ?quested: <tokens>\))?",
        "kimi",
    ),
    wording("context window exceeds limit", r"context window exceeds limit", "minimax"),
    wording(
        "too large for model with N maximum context length",
        r"(?:prompt contains <tokens> tokens.{0,60})?too large for model with <limit>"
        r" maximum context length",
        "mistral",
    ),
    wording(
        "current length is N while limit is M",
        r"reduce the length of the messages or completion\. current length is <tokens>"
        r" while limit is <limit>",
        "cerebras",
    ),
    wording(
        "reduce the length of the messages",
        r"reduce the length of the (?:input )?(?:messages|prompt|either one)",
    ),
    wording(
        "range of input length should be",
        r"range of input length should be \[1, <limit>\]",
        "dashscope",
    ),
    wording("prompt exceeds max length", r"prompt exceeds max length", "zhipu"),
    wording(
        "prompt exceeds maximum length", r"prompt exceeds (?:the )?max(?:imum)? context length"
    ),
    wording(
        "prompt tokens exceed model maximum",
        r"prompt tokens \(<tokens>\) exceed model maximum \(<limit>\)",
        "bedrock",
    ),
    wording(
        "input is too long for requested model", r"input is too long for requested model", "bedrock"
    ),
    wording(
        "total number of tokens cannot exceed N",
        r"too many tokens: total number of tokens .{0,40}cannot exceed <limit>"
        r"(?: - received <tokens>)?",
        "cohere",
    ),
    wording(
        "too many tokens: size limit exceeded",
        r"too many tokens: size limit exceeded by <n> tokens",
        "cohere",
    ),
    wording(
        "prompt is larger than the configured context size",
        r"prompt has <tokens> tokens?, but the configured context size is <limit>",
    ),
    wording("context_length_exceeded", r"context_length_exceeded"),
    wording("model_context_window_exceeded", r"model_context_window_exceeded"),
    wording("exceed_context_size_error", r"exceed_context_size_error", "llama.cpp"),
    wording("out of room in the context window", r"ran out of room in the model'?s context window"),
    wording("prompt is too long", r"\bprompt (?:is )?too long\b"),
)

SHARE_OF_ANSWER: Final = re.compile(
    r"(?:\(|, (?:and )?|; )([\d,]+) (?:in|for|of) (?:the )?(?:completion|output)", re.IGNORECASE
)
"""Tokens kept for the answer, where a total was said."""
