"""Images and documents in a message: as bytes where they stand in it, else as an address."""

from typing import Literal

from .....domain.blocks import Media
from ..content import media_text
from ..content.holes import Form
from ..reading.fields import MalformedError

What = Literal["image", "document"]


def from_url(url: str, what: What, name: str | None = None) -> tuple[Media, Form | None]:
    """What an address shows, and how it is written again; None where the address stays."""
    if not url.startswith("data:"):
        mime = "image/*" if what == "image" else "application/octet-stream"
        return Media(type=what, mime=mime, url=url, name=name), None
    held = media_text.in_address(url)
    if held is None:
        mime = url.removeprefix("data:").partition(",")[0].partition(";")[0]
        return Media(type=what, mime=mime or "text/plain", url=url, name=name), None
    mime, encoded = held
    data, is_exact = from_base64(encoded)
    return Media(type=what, mime=mime, data=data, name=name), "address" if is_exact else None


def from_base64(encoded: str) -> tuple[bytes, bool]:
    """The bytes, and whether encoding them gives the same text again."""
    data = media_text.bytes_of(encoded)
    if data is None:
        raise MalformedError("not base64")
    return data, media_text.base64_of(data) == encoded
