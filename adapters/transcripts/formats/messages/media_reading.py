"""Reads images and documents in a message: as bytes if it holds them, else as a URL."""

from .....domain.blocks import Media
from ..content import media_text
from ..content.media_text import MediaKind
from ..content.placeholders import PlaceholderForm
from ..reading.fields import MalformedError


def read_media_url(
    url: str, what: MediaKind, name: str | None = None
) -> tuple[Media, PlaceholderForm | None]:
    """Return the media at a URL, and its encoding; None if the URL stays."""
    if not url.startswith("data:"):
        mime = "image/*" if what == "image" else "application/octet-stream"
        return Media(type=what, mime=mime, url=url, name=name), None
    held = media_text.split_data_url(url)
    if held is None:
        mime = url.removeprefix("data:").partition(",")[0].partition(";")[0]
        return Media(type=what, mime=mime or "text/plain", url=url, name=name), None
    mime, encoded = held
    data, is_exact = decode_media(encoded)
    return Media(type=what, mime=mime, data=data, name=name), "address" if is_exact else None


def decode_media(encoded: str) -> tuple[bytes, bool]:
    """Return the bytes, and whether encoding them gives the same text."""
    data = media_text.base64_to_bytes(encoded)
    if data is None:
        raise MalformedError("not base64")
    return data, media_text.bytes_to_base64(data) == encoded
