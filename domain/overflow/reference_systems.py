"""Copies what each reference system treats as an overflow.

For comparison and for replays; `recognize_overflow` knows more wordings than all of them, and rate
limits do not mislead it as they do some of them.
"""

import re
from collections.abc import Callable
from typing import Final

_OverflowTest = Callable[[str | None], bool]
"""Checks whether a system treats an error with this text as an overflow."""


def _match_substrings(*marks: str) -> _OverflowTest:
    def takes(text: str | None) -> bool:
        lowered = (text or "").lower()
        return any(mark in lowered for mark in marks)

    return takes


def _match_patterns(*patterns: str) -> _OverflowTest:
    compiled = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]

    def takes(text: str | None) -> bool:
        return bool(text) and any(pattern.search(text or "") for pattern in compiled)

    return takes


_KLAUDE = (
    r"prompt is too long",
    r"exceeds the context window",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds the limit of \d+",
    r"exceeds the available context size",
    r"greater than the context length",
    r"context length exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"^4(00|13|29)\s*(status code)?\s*\(no body\)",
)
_JS_ANY: Final = r"[^\n\r\u2028\u2029]"
_JS_SPACE: Final = r"[ \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"

REFERENCE_TESTS: Final[dict[str, _OverflowTest]] = {
    "kdcube": _match_substrings(
        "context_length",
        "context length",
        "maximum context",
        "max context",
        "max tokens",
        "token limit",
        "too many tokens",
        "input too long",
        "prompt too long",
    ),
    "tunacode": _match_substrings("context_length_exceeded", "maximum context length"),
    "klaude": _match_patterns(*_KLAUDE),
    "klaude@head": _match_patterns(*_KLAUDE, r"input is too long"),
    "pi": _match_patterns(
        r"prompt is too long",
        r"input is too long for requested model",
        r"exceeds the context window",
        rf"input token count{_JS_ANY}*exceeds the maximum",
        r"maximum prompt length is [0-9]+",
        r"reduce the length of the messages",
        r"maximum context length is [0-9]+ tokens",
        r"exceeds the limit of [0-9]+",
        r"exceeds the available context size",
        r"greater than the context length",
        r"context window exceeds limit",
        r"exceeded model token limit",
        r"too large for model with [0-9]+ maximum context length",
        r"model_context_window_exceeded",
        r"context[_ ]length[_ ]exceeded",
        r"too many tokens",
        r"token limit exceeded",
        rf"^4(00|13){_JS_SPACE}*(status code)?{_JS_SPACE}*\(no body\)",
    ),
}
"""By system. qbit and goat recognize no overflows. kdcube gets code and message as one text."""
