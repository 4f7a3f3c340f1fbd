"""Makes texts, JSON, images and documents safe to send to a provider."""

import json
from base64 import b64encode
from typing import Any, NoReturn

from ...domain.blocks import Media, Native

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


SENDABLE_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""The image types that every provider accepts."""
PDF_TYPE = "application/pdf"
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml"})


def encode_base64(media: Media) -> str:
    return b64encode(media.data).decode("ascii")


def make_data_url(media: Media) -> str:
    return f"data:{media.mime};base64,{encode_base64(media)}"


def find_address(media: Media) -> str | None:
    """Return the address from which a provider can fetch it, if there is one."""
    is_public = media.url is not None and media.url.startswith(("https://", "http://"))
    return media.url if is_public else None


def find_image_url(media: Media) -> str | None:
    """Return an image as one URL; None if no provider would accept it."""
    if media.type != "image":
        return None
    if media.data:
        return make_data_url(media) if media.mime in SENDABLE_IMAGES else None
    return find_address(media)


def decode_text(media: Media) -> str | None:
    if media.type != "document" or not (
        media.mime.startswith("text/") or media.mime in _TEXT_TYPES
    ):
        return None
    return media.data.decode("utf-8", "replace") if media.data.strip() else None


def is_file(media: Media) -> bool:
    """Check for a PDF or an office document, which some providers open themselves."""
    return media.mime == PDF_TYPE or media.mime.startswith("application/vnd.")


def describe_media(media: Media) -> str:
    """Return the text that replaces media that cannot be sent."""
    kind = " ".join(part for part in (media.type, media.name, media.mime) if part)
    size = f"{len(media.data):,} bytes" if media.data else (media.url or "empty")
    return f"[{kind}: {size}]"
