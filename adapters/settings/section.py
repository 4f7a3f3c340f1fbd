"""Defines the base of the file's sections, and describes mistakes without repeating an API key."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import Strict, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from ...domain.settings import Section, SettingInfo, describe_field

SettingPath = tuple[str | int, ...]
"""Keys and list indices, outermost first."""
TextTuple = Annotated[tuple[str, ...], Strict(strict=False)]
"""A list of strings, as in TOML and JSON."""

_CONTRADICTION = "contradiction"
"""The type of errors that name the place in the section and the fault."""
_MAX_SHOWN_CHARACTERS = 60
"""The most characters of a value that a message repeats."""
_KEY_NAME = re.compile(
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
KEY_REFUSAL = (
    "looks like a key, and keys do not belong in settings: remove it, and set the provider's own "
    "variable, such as ANTHROPIC_API_KEY or OPENAI_API_KEY"
)


class FileSection(Section):
    """A section whose values may also be texts, from a variable.

    A validator raises ValueError with the text that follows the setting's name, or
    `make_contradiction`.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _parse_text(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or info.field_name is None:
            return value
        return describe_field(info.field_name, cls.model_fields[info.field_name]).parse(value)


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """The file or the environment variable that a value is from; neither for a default."""

    file: str | None = None
    variable: str | None = None

    def __str__(self) -> str:
        return self.file or self.variable or "default"


def make_contradiction(*found: tuple[SettingPath, str]) -> PydanticCustomError:
    """Return the error for a validator to raise, with paths below its value and their faults."""
    return PydanticCustomError(_CONTRADICTION, "contradiction", {"found": found})


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return by_folded[near[0]] if near else None


def describe_unknown_name(name: str, known: Iterable[str], thing: str) -> str:
    """Return e.g. `is no policy; did you mean reserve-headroom?`, without repeating the name."""
    known = list(known)
    near = find_nearest(name, known)
    meant = f"did you mean {near}?" if near else f"there is {', '.join(known) or 'none'}"
    return f"is no {thing}; {meant}"


def is_key_name(name: str) -> bool:
    return _KEY_NAME.search(name) is not None


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
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[: _MAX_SHOWN_CHARACTERS - 1] + "…"


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


def find_mistakes(
    error: ValidationError, root: type[Section], thing: str = "setting"
) -> Iterator[tuple[SettingPath, str]]:
    """Yield each mistake: its path, and the text that follows the setting's name."""
    for one in error.errors(include_url=False):
        path: SettingPath = one["loc"]
        known = one.get("ctx", {})
        if one["type"] == _CONTRADICTION:
            yield from (((*path, *below), fault) for below, fault in known["found"])
        elif one["type"] == "value_error":
            yield path, str(known["error"])
        else:
            yield path, _describe_mistake(one, root, thing)


def _describe_mistake(one: ErrorDetails, root: type[Section], thing: str) -> str:
    path: SettingPath = one["loc"]
    if one["type"] == "extra_forbidden":
        if is_key_name(str(path[-1])):
            return KEY_REFUSAL
        holder = _find_setting(root, path[:-1])
        section = holder.section if holder and holder.section else root
        return describe_unknown_name(str(path[-1]), section.model_fields, thing)
    about = _find_setting(root, path)
    value = show_value(one["input"])
    if one["type"] == "model_type":
        return f"is {value}; it takes a table"
    if about is None:
        return f"is {value}: {one['msg']}"
    if one["type"] == "missing":
        return f"is missing; it takes {about.accepted_values}"
    if about.is_list and isinstance(path[-1], int):
        about = replace(about, is_list=False)
    near = find_nearest(str(one["input"]), about.among)
    meant = f"did you mean {near}? It" if near else "it"
    return f"is {value}; {meant} takes {about.accepted_values}"


def _find_setting(root: type[Section], path: SettingPath) -> SettingInfo | None:
    """Return the description of the setting, table or element at a path; None if there is none."""
    section: type[Section] | None = root
    about: SettingInfo | None = None
    for step in path:
        if section is None:  # the step is an index, or a name that the user chose
            section = about.section if about else None
        elif str(step) not in section.model_fields:
            return None
        else:
            about = describe_field(str(step), section.model_fields[str(step)])
            section = None if about.is_list or about.is_by_name else about.section
    return about
