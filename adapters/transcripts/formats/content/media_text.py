"""Images and documents as text: their bytes in base64, or an address that may hold them."""

from base64 import b64decode, b64encode
from typing import Literal

from .....domain.blocks import Media

MediaKind = Literal["image", "document"]


def bytes_to_base64(data: bytes) -> str:
    """Bytes as text."""
    return b64encode(data).decode("ascii")


def base64_to_bytes(text: str) -> bytes | None:
    """The same the other way round; None where it is no base64."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def is_base64_of(media: Media, text: str) -> bool:
    """Whether the bytes give this very text again: base64 can be written in several ways."""
    return bool(media.data) and bytes_to_base64(media.data) == text


def media_kind_of(mime: str) -> MediaKind:
    """What bytes of this type are."""
    return "image" if mime.startswith("image/") else "document"


def make_media_address(media: Media) -> str:
    """The address that providers take."""
    if media.url is not None and not media.data:
        return media.url
    return f"data:{media.mime};base64,{bytes_to_base64(media.data)}"


def encode_media(media: Media, form: str) -> str:
    """Bytes as `base64`, or as an `address`."""
    return bytes_to_base64(media.data) if form == "base64" else make_media_address(media)


def split_data_url(address: str) -> tuple[str, str] | None:
    """The type of the bytes that an address holds, and their base64; None where it holds none."""
    head, comma, data = address.partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64")
    return (mime, data) if comma and head == f"data:{mime};base64" else None
