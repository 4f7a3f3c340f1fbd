"""Recognizes what looks like an API key, so that messages never repeat it."""

import json
import re
from typing import Any

_NAME = re.compile(
    r"(^|[-_])(api)?(keys?|secrets?|passwords?|passwd|credentials?|token|auth|authorization)$",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"""
      \b(sk|rk|pk)[-_][\w-]{16,}                   # OpenAI, Anthropic, OpenRouter
    | \bAIza[\w-]{30,} | \bAQ\.[\w-]{30,}           # Google
    | \b(AKIA|ASIA)[0-9A-Z]{16}\b | \bABSK[\w+/=]{30,}  # Amazon
    | \b(gsk|xai|hf|pplx|nvapi|r8|fw|tgp_v1|gh[a-z]|github_pat)[-_][\w-]{20,}
    | \beyJ[\w-]{10,}\.[\w-]{10,}                   # a signed token
    | \b(?i:bearer|basic|x-api-key:?)\s+[\w+/=.~-]{12,}
    | ://[^/\s:@]*:[^/\s@]+@                        # a password in an address
    | (?i:password)\s*=\s*["']?[^\s=$"'{]+         # the same in libpq's notation
    """,
    re.VERBOSE,
)
_RANDOM = re.compile(r"(?=\S*\d)[\w+/=.~-]{24,}")
"""A long word with a digit may be an unknown kind of key."""
MAX_SHOWN_CHARACTERS = 60
"""The most characters of a value that a message repeats."""

REFUSAL = (
    "looks like a key, and keys do not belong in settings: remove it, and set the provider's own "
    "variable, such as ANTHROPIC_API_KEY or OPENAI_API_KEY"
)


def is_key_name(name: str) -> bool:
    return _NAME.search(name) is not None


def has_key(value: Any) -> bool:
    return isinstance(value, str) and _KEY.search(value) is not None


def hide_keys(sentence: str) -> str:
    """Hide keys in text from other sources, and in names chosen by users."""
    return _KEY.sub("<a key>", sentence)


def show_value(value: Any) -> str:
    """Return a value for a message: short, and without possible secrets."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if _KEY.search(text) or _RANDOM.search(text):
        return f"a text of {len(text):,} characters"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 1] + "…"
