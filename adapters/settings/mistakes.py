"""Describes mistakes in settings, one sentence each, which never repeats an API key."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .section import (
    CONTRADICTION_TYPE,
    VALUE_PLACEHOLDER,
    Section,
    SettingPath,
    describe_unknown_name,
    find_nearest,
    find_setting_info,
)

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


def format_path(path: SettingPath) -> str:
    """Format a path as in TOML: `models."gpt-4o".context`, `hooks.commands[0].on`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        else:
            is_bare = step.replace("_", "").replace("-", "").isalnum() and step.isascii()
            words += ("." if words else "") + (step if is_bare else f'"{step}"')
    return words


def find_mistakes(error: ValidationError, root: type[Section]) -> Iterator[tuple[SettingPath, str]]:
    """Yield each mistake: its path, and the text that follows the setting's name."""
    for one in error.errors(include_url=False):
        path: SettingPath = one["loc"]
        if one["type"] == CONTRADICTION_TYPE:
            faults = one.get("ctx", {})["found"]
        elif one["type"] == "value_error":
            faults = [((), str(one.get("ctx", {})["error"]))]
        else:
            faults = [((), _describe_mistake(one, root))]
        for below, fault in faults:
            value = _get_at_path(one["input"], below)
            yield (*path, *below), fault.replace(VALUE_PLACEHOLDER, f"is {show_value(value)}")


def _describe_mistake(one: ErrorDetails, root: type[Section]) -> str:
    path: SettingPath = one["loc"]
    if one["type"] == "extra_forbidden":
        if is_key_name(str(path[-1])):
            return REFUSAL
        holder = find_setting_info(root, path[:-1])
        section = holder.section if holder and holder.section else root
        return describe_unknown_name(str(path[-1]), section.model_fields, "setting")
    about = find_setting_info(root, path)
    if one["type"] == "missing":
        return f"is missing; it takes {about.accepted_values}" if about else "is missing"
    value = show_value(one["input"])
    if one["type"] == "model_type":
        return f"is {value}; it takes a table"
    if about is None:
        return f"is {value}: {one['msg']}"
    is_element = about.is_list and not about.is_table and isinstance(path[-1], int)
    takes = about.scalar.accepted_values if is_element else about.accepted_values
    near = find_nearest(str(one["input"]), about.scalar.among)
    meant = f"did you mean {near}? It" if near else "it"
    return f"is {value}; {meant} takes {takes}"


def _get_at_path(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
        else:
            value = getattr(value, str(step), None)
    return value
