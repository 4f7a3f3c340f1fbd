"""Reads fields of unvalidated items, and checks their types."""

from typing import Any, TypeVar
from uuid import UUID

from ....domain.event import MAX_COUNT
from ....domain.session_events import Usage

JsonDict = dict[str, Any]
_T = TypeVar("_T")

_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a fraction",
    type(None): "null",
}


class MalformedError(ValueError):
    """A field that is missing or has the wrong type; the message names it and the expected type."""


class UnknownItemError(ValueError):
    """An item, or a part of one, of an unknown type, which the message names."""


def json_name(value: Any) -> str:
    return _NAMES[type(value)]


def require_object(value: Any, what: str = "") -> JsonDict:
    if isinstance(value, dict):
        return value
    raise MalformedError(f"{what}expected an object, got {json_name(value)}")


def require_field(owner: JsonDict, field: str, kind: type[_T], within: str = "") -> _T:
    """Return a required field of that type; `within` names its owner."""
    value = owner.get(field)
    if type(value) is not kind:  # booleans are not numbers here
        got = f"got {json_name(value)}" if field in owner else "but it is missing"
        raise MalformedError(f"{within}{field}: expected {_NAMES[kind]}, {got}")
    return value


def get_field(owner: JsonDict, field: str, kind: type[_T], within: str = "") -> _T | None:
    """Return a field that may be missing or null."""
    value = owner.get(field)
    if value is None or type(value) is kind:
        return value
    return require_field(owner, field, kind, within)


def read_usage(
    owner: JsonDict,
    within: str,
    *,
    is_total: bool = False,
    is_reasoning_apart: bool = False,
    **fields: str,
) -> Usage:
    """Return the usage of a call from a report's fields, by the names that they have there.

    A name may be a path, as `cache.read`. With `is_total`, its input tokens are all tokens of the
    prompt, with those of the cache; with `is_reasoning_apart`, its output has no reasoning tokens.
    """
    counts = {ours: _read_count(owner, theirs, within) for ours, theirs in fields.items()}
    if is_total and (prompt := counts["input"]) is not None:
        cached = (counts["cache_read"] or 0) + (counts.get("cache_write") or 0)
        counts["input"] = max(0, prompt - cached)
    if is_reasoning_apart and (output := counts["output"]) is not None:
        counts["output"] = output + (counts["reasoning"] or 0)
    return Usage(**counts)


def _read_count(owner: JsonDict, path: str, within: str) -> int | None:
    while "." in path:
        name, _, path = path.partition(".")
        owner, within = get_field(owner, name, dict, within) or {}, f"{within}{name}."
    return get_field(owner, path, int, within)


def as_number(value: Any) -> float | None:
    """Return a number that can be stored; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_COUNT else None


def find_text(owner: Any, *names: str) -> str | None:
    """Return the text at a path of fields; None if it is missing or empty."""
    for name in names:
        owner = owner.get(name) if isinstance(owner, dict) else None
    return owner if isinstance(owner, str) and owner else None


def require_name(owner: JsonDict, field: str) -> str:
    """Return a required text that may not be empty."""
    if found := require_field(owner, field, str):
        return found
    raise MalformedError(f"{field}: expected an id, but it is empty")


def require_type(item: Any) -> str:
    return require_field(require_object(item), "type", str)


def drop_fields(item: JsonDict, *fields: str) -> JsonDict:
    return {name: value for name, value in item.items() if name not in fields}


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID in its usual spelling."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
