"""Converts images and documents to text: base64 bytes, or a URL that may hold them."""

from base64 import b64decode, b64encode
from typing import Literal

from ....domain.blocks import Media
from .fields import MalformedError

MediaKind = Literal["image", "document"]


def bytes_to_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def base64_to_bytes(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def require_base64(text: str, within: str = "") -> bytes:
    """Decode base64; `within` names its owner in the error."""
    data = base64_to_bytes(text)
    if data is None:
        raise MalformedError(f"{within}not base64")
    return data


def media_kind_of(mime: str) -> MediaKind:
    return "image" if mime.startswith("image/") else "document"


def make_media_address(media: Media) -> str:
    """Return the URL in the form that providers accept."""
    if media.url is not None and not media.data:
        return media.url
    return f"data:{media.mime};base64,{bytes_to_base64(media.data)}"


def split_data_url(address: str) -> tuple[str, str] | None:
    """Return the media type and base64 of a data URL; None for another URL."""
    head, comma, data = address.partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64")
    return (mime, data) if comma and head == f"data:{mime};base64" else None
