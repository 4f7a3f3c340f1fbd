"""Renders images and documents: as bytes in a request, as an address, or as a description."""

from base64 import b64encode

from ...domain.blocks import Media

SENDABLE_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""The image types that every provider accepts."""
PDF_TYPE = "application/pdf"


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


_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml"})
