"""Makes values safe to send: whole characters, finite numbers, and no shared values."""

import json
from typing import Any, NoReturn

from ...domain.blocks import Native

JsonObject = dict[str, Any]


def replace_half_characters(words: str) -> str:
    """Replace lone surrogates, because providers refuse requests that contain them."""
    if words.isascii():
        return words
    try:
        words.encode()
    except UnicodeEncodeError:
        return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return words


def parse_sendable_json(words: str) -> Any:
    """Return a JSON text as a value; raise ValueError if it is invalid or cannot be sent again."""
    try:
        value = _DECODER.decode(words)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not words.isascii() or "\\ud" in words or "\\uD" in words:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate raises a ValueError
    return value


def parse_native_item(native: Native | None, provider: str) -> JsonObject | None:
    """Return a provider's own item, to be sent back exactly as received; None if it cannot be."""
    if native is None or native.provider != provider:
        return None
    try:
        value = parse_sendable_json(native.item)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def copy_value(value: Any) -> Any:
    """Return a copy that the caller may change, so that the view stays as recorded."""
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


# Python accepts NaN and turns 1e999 into infinity; either would make a request invalid.
_DECODER = json.JSONDecoder(parse_float=_parse_finite, parse_constant=_refuse_constant)
