"""Images between a rollout's data URLs and bytes."""

from .....domain.blocks import Media
from ..content.media_text import base64_to_bytes, bytes_to_base64, split_data_url

_PNG = "image/png"


def image_from_url(url: str) -> Media:
    """The image at a URL: its bytes, where the URL holds them and they make it again."""
    held = split_data_url(url)
    if held and (found := decode_exact_base64(held[1])) is not None:
        return Media(type="image", mime=held[0], data=found)
    return Media(type="image", mime="image/*", url=url)


def decode_exact_base64(data: str) -> bytes | None:
    """What this is base64 of; None where other base64 would be made of the bytes."""
    found = base64_to_bytes(data)
    return found if found is not None and bytes_to_base64(found) == data else None


def make_generated_image(data: bytes) -> Media:
    """An image that a model made."""
    return Media(type="image", mime=_PNG, data=data)
