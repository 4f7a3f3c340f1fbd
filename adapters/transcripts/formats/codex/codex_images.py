"""Converts images between data URLs and bytes."""

from .....domain.blocks import Media
from ..content.media_text import base64_to_bytes, bytes_to_base64, split_data_url

_PNG = "image/png"


def image_from_url(url: str) -> Media:
    """Return the image at a URL; with its bytes, if encoding them gives the same URL."""
    held = split_data_url(url)
    if held and (found := decode_exact_base64(held[1])) is not None:
        return Media(type="image", mime=held[0], data=found)
    return Media(type="image", mime="image/*", url=url)


def decode_exact_base64(data: str) -> bytes | None:
    """Decode base64; return None if encoding the bytes gives another text."""
    found = base64_to_bytes(data)
    return found if found is not None and bytes_to_base64(found) == data else None


def make_generated_image(data: bytes) -> Media:
    """Return an image that a model made."""
    return Media(type="image", mime=_PNG, data=data)
