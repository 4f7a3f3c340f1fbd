"""Images between a rollout's data URLs and bytes."""

from .....domain.blocks import Media
from ..content.media_text import base64_of, bytes_of, in_address

_PNG = "image/png"


def picture(url: str) -> Media:
    """The image at a URL: its bytes, where the URL holds them and they make it again."""
    held = in_address(url)
    if held and (found := decoded(held[1])) is not None:
        return Media(type="image", mime=held[0], data=found)
    return Media(type="image", mime="image/*", url=url)


def decoded(data: str) -> bytes | None:
    """What this is base64 of; None where other base64 would be made of the bytes."""
    found = bytes_of(data)
    return found if found is not None and base64_of(found) == data else None


def generated(data: bytes) -> Media:
    """An image that a model made."""
    return Media(type="image", mime=_PNG, data=data)
