"""What can be put into a request: whole characters, finite numbers, and no value that is shared."""

import json
from typing import Any, NoReturn

from ...domain.blocks import Native

JsonObject = dict[str, Any]


def replace_half_characters(words: str) -> str:
    """Whole characters only: providers refuse a request that holds half of a surrogate pair."""
    if words.isascii():
        return words
    try:
        words.encode()
    except UnicodeEncodeError:
        return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return words


def parse_sendable_json(words: str) -> Any:
    """A JSON text as a value; `ValueError` if it is none, or could not be sent again."""
    try:
        value = _DECODER.decode(words)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not words.isascii() or "\\ud" in words or "\\uD" in words:
        json.dumps(value, ensure_ascii=False).encode()  # half a character is a ValueError too
    return value


def parse_native_item(native: Native | None, provider: str) -> JsonObject | None:
    """A provider's own item, to go back exactly as it came; None where it cannot."""
    if native is None or native.provider != provider:
        return None
    try:
        value = parse_sendable_json(native.item)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def copy_value(value: Any) -> Any:
    """A copy that the caller may change: what a view holds stays as it was recorded."""
    if isinstance(value, str):
        return value if value.isascii() else replace_half_characters(value)
    if isinstance(value, dict):
        return {name: copy_value(part) for name, part in value.items()}
    if isinstance(value, list):
        return [copy_value(part) for part in value]
    return value


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{digits} has no place in JSON")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} has no place in JSON")


# Python reads NaN and makes 1e999 infinite; either would spoil the request that it goes into.
_DECODER = json.JSONDecoder(parse_float=_parse_finite, parse_constant=_refuse_constant)
